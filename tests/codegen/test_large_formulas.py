"""For large gradients, formulas run as compiled loops.

The loops give the values, dtypes and layouts of the formulas in Python.
"""

import numpy
import pytest

pytest.importorskip("llvmlite")

import adjoint as torch
from adjoint.codegen import large_formulas
from adjoint.codegen.large_formulas import LargeFormula, is_arithmetic
from adjoint.codegen.observed_kernels import KERNELS


@pytest.fixture(autouse=True)
def numpy_alone() -> None:
    """Compile the formulas in this file. The other files of this folder test formulas in Python."""


LARGE = (190, 240)

FUNCTIONS = {
    "product": lambda x, y: x * y,
    "quotient": lambda x, y: x / (y + 3),
    "difference": lambda x, y: torch.sub(x, y, alpha=0.5),
    "hypot": lambda x, y: torch.hypot(x, y + 3),
    "atan2": lambda x, y: torch.atan2(x, y + 3),
    "tanh": lambda x, y: torch.tanh(x) * y,
    "rsqrt": lambda x, y: (x * x + 1).rsqrt() + y.cosh(),
    "lerp": lambda x, y: torch.lerp(x, y, 0.25),
    "addcdiv": lambda x, y: torch.addcdiv(x, y, x + 5, value=0.5),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", [LARGE, (240,), (190, 1)], ids=["same", "row", "column"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.long_cases
def test_gradients_of_large_arrays_are_those_of_their_parts(name, shape, dtype):
    torch.manual_seed(0)
    function = FUNCTIONS[name]
    x = torch.randn(*LARGE, dtype=dtype, requires_grad=True)
    y = torch.rand(*shape, dtype=dtype, requires_grad=True)
    weight = torch.randn(*LARGE, dtype=dtype)
    found = torch.autograd.grad((function(x, y) * weight).sum(), (x, y))
    expected_x, expected_y = [], torch.zeros(LARGE[0], *LARGE[1:], dtype=torch.float64)
    for part in range(0, LARGE[0], 10):  # small enough for the formula in Python
        here = slice(part, part + 10)
        small_x = x.detach()[here].double().requires_grad_()
        small_y = y.detach().double().expand(LARGE)[here].clone().requires_grad_()
        grads = torch.autograd.grad((function(small_x, small_y) * weight[here].double()).sum(), (small_x, small_y))
        expected_x.append(grads[0])
        expected_y[here] = grads[1]
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype is torch.float32 else {"rtol": 1e-11, "atol": 1e-11}
    assert found[0].dtype == found[1].dtype == dtype
    assert torch.allclose(found[0].double(), torch.cat(expected_x), **tolerance)
    assert found[1].shape == y.shape
    assert torch.allclose(found[1].double(), expected_y.sum_to_size(*shape), **tolerance)


def test_second_derivatives_agree_with_those_of_small_arrays():
    torch.manual_seed(0)
    x = torch.randn(*LARGE, dtype=torch.float64, requires_grad=True)

    def second(x):
        (first,) = torch.autograd.grad((x.tanh() * x).sum(), x, create_graph=True)
        return torch.autograd.grad((first * first).sum(), x)[0]

    expected = torch.cat([second(x.detach()[k : k + 10].requires_grad_()) for k in range(0, LARGE[0], 10)])
    assert torch.allclose(second(x), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(not torch.backends.llvm.enabled, reason="needs compiled kernels")
def test_a_formula_is_one_loop():
    x = torch.randn(*LARGE, requires_grad=True)
    (first,) = torch.autograd.grad(x.tanh().sum(), x, create_graph=True)
    first.sum().backward()
    assert "tanh_backward_grad_output_float32" in [found.code.name for found in KERNELS.functions]


def test_what_is_no_arithmetic_of_elements_is_computed_as_written():
    moved = lambda grad, self_shape: grad.reshape(self_shape)
    passed = lambda grad: grad
    assert not is_arithmetic(moved)
    assert not is_arithmetic(passed)
    scaled = lambda grad, alpha: grad if alpha == 1 else grad * alpha
    assert is_arithmetic(scaled)
    grad = numpy.ones(LARGE, "float32")
    assert LargeFormula(scaled, "scaled", [], None)(grad, 1) is grad
    assert (LargeFormula(scaled, "scaled", [], None)(grad, 3) == 3).all()


@pytest.mark.parametrize("kind", ["float16", "complex64", "int64"])
def test_other_dtypes_are_computed_as_written(kind):
    product = lambda grad, other: grad * other.conj()
    large = LargeFormula(product, "product_of_any", ["other"], None)
    grad, other = numpy.full(LARGE, 3, kind), numpy.full(LARGE, 2, kind)
    assert large(grad, other).dtype == kind
    assert (large(grad, other) == 6).all()
    assert (large(grad.real.astype("float32"), numpy.full(LARGE, 2.0)) == 6).all()


def test_formulas_are_large_from_the_size_at_which_loops_repay(monkeypatch):
    monkeypatch.setattr(large_formulas.LOOPS, "every_size", True)
    assert large_formulas.large_from() == 0
    monkeypatch.setattr(large_formulas.LOOPS, "every_size", False)
    assert large_formulas.large_from() > 1000


@pytest.mark.parametrize("shape", [(3, 16, 40, 50), (2, 7, 130, 31)], ids=str)
def test_gradients_of_reshaped_and_unbound_views_of_scattered_tensors(shape):
    torch.manual_seed(0)
    x = torch.randn(shape[2], shape[0], shape[1], shape[3], requires_grad=True)
    flat = x.view(shape[2], -1)
    parts = flat.view(x.shape).permute(1, 2, 0, 3).unbind(0)
    weights = [torch.randn(part.shape).transpose(0, 1).contiguous().transpose(0, 1) for part in parts]
    sum((part * weight).sum() for part, weight in zip(parts, weights, strict=True)).backward()
    assert torch.equal(x.grad, torch.stack(weights).permute(2, 0, 1, 3))
