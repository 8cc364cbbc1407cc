"""Compiled functions of complex numbers give NumPy's results, including special values."""

from __future__ import annotations

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.compiled_complex import FUNCTIONS

PARTS = [0.0, -0.0, 1, -1, numpy.inf, -numpy.inf, numpy.nan, 100, -100, 1e30, 1e-30, 20, -20]


def _both(function, *arrays, monkeypatch):
    """Return the results of compiled loops and of NumPy."""
    tensors = [torch.from_numpy(array) for array in arrays]
    monkeypatch.setattr(LOOPS, "_enabled", True)
    found = function(*tensors)
    monkeypatch.setattr(LOOPS, "_enabled", False)
    expected = function(*tensors)
    assert found.dtype == expected.dtype and found.stride() == expected.stride()
    return found.numpy(), expected.numpy()


def _complex(dtype, strided=False):
    rng = numpy.random.default_rng(0)
    usual = (3 * rng.standard_normal(40_000) + 3j * rng.standard_normal(40_000)).astype(dtype)
    if strided:
        return usual.reshape(200, 200).T
    return numpy.concatenate([numpy.array([complex(a, b) for a in PARTS for b in PARTS], dtype), usual])


@pytest.mark.parametrize("dtype", ["F", "D"])
@pytest.mark.parametrize("name", list(FUNCTIONS))
@pytest.mark.long_cases
def test_complex_functions(name, dtype, monkeypatch):
    for array in (_complex(dtype), _complex(dtype, strided=True)):
        other = numpy.random.default_rng(1).permutation(array.reshape(-1)).reshape(array.shape)
        operands = (array, other) if name in ("add", "subtract", "multiply", "divide") else (array,)
        found, expected = _both(getattr(torch, name), *operands, monkeypatch=monkeypatch)
        if name == "square":  # NumPy's `square` rounds less often, so results differ near overflow
            with numpy.errstate(all="ignore"):
                expected.real = array.real * array.real - array.imag * array.imag
                expected.imag = 2 * (array.real * array.imag)
        with numpy.errstate(all="ignore"):
            near = numpy.abs(found - expected) <= 8 * numpy.finfo(dtype).eps * numpy.abs(expected)
        for one, wanted in ((found.real, expected.real), (found.imag, expected.imag)):
            same = (one == wanted) | (numpy.isnan(one) & numpy.isnan(wanted))
            assert (same | (near & numpy.isfinite(expected))).all()
    assert not LOOPS.failures


FORMULAS = [
    "a * b.conj()", "a.conj() / b.conj()", "-a.conj()", "a + b.conj()", "2 * a - 1", "a * 2j", "a.square()", "a**3", "a / 3",
    "a * b[:1]", "a[:, ::2].conj() * b[:, ::2]", "a.mT * b.mT", "a * c.conj()", "a.addcmul(b, b.conj(), value=0.5)",
    "a.reciprocal()", "a.cumsum(1)", "a.cumsum(0)", "(a / 10).cumprod(1)", "a.sum(1)", "a.mean(0)", "a.sum()",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["F", "D"])
@pytest.mark.parametrize("formula", FORMULAS)
def test_formulas_of_complex_numbers_and_their_gradients(formula, dtype, monkeypatch):
    rng = numpy.random.default_rng(0)
    first, second, grad = (rng.standard_normal((3, 210, 302, 2)) + 0.1).astype(dtype.lower()).view(dtype)[..., 0]

    def computed():
        a, b = torch.tensor(first).requires_grad_(), torch.tensor(second).requires_grad_()
        c = torch.tensor(second[3, 4]).requires_grad_()
        result = eval(formula, {"a": a, "b": b, "c": c})
        result.backward(torch.tensor(grad.ravel()[: result.numel()].reshape(result.shape)))
        return [item.detach().resolve_conj().numpy() for item in (result, a.grad, b.grad, c.grad) if item is not None]

    monkeypatch.setattr(LOOPS, "_enabled", True)
    found = computed()
    monkeypatch.setattr(LOOPS, "_enabled", False)
    for one, wanted in zip(found, computed(), strict=True):
        assert one.dtype == wanted.dtype and one.strides == wanted.strides
        assert numpy.abs(one - wanted).max() <= 100 * numpy.finfo(dtype).eps * numpy.abs(wanted).max()
    assert not LOOPS.failures


@pytest.mark.parametrize("shape", [(300, 41), (41, 300), (70_000,), (3, 5, 700), (2, 40_000), (9000, 3)])
@pytest.mark.parametrize("dtype", ["F", "D"])
def test_sums_of_complex_numbers(shape, dtype, monkeypatch):
    monkeypatch.setattr(LOOPS, "_enabled", True)
    array = numpy.random.default_rng(0).standard_normal((*shape, 2)).astype(dtype.lower()).view(dtype)[..., 0]
    for x in (array, array.T):
        for dims in (None, 0, -1, tuple(range(len(shape))), (0, -1)):
            if dims == (0, -1) and len(shape) < 2:
                continue
            for keepdim in (False, True):
                found = torch.sum(torch.from_numpy(x), dims, keepdim).numpy()
                expected = x.astype("D").sum(dims, keepdims=keepdim)
                assert found.shape == expected.shape and found.dtype == dtype
                assert (
                    numpy.abs(found - expected) <= 300 * numpy.finfo(dtype).eps * numpy.maximum(1, abs(expected))
                ).all()


def test_real_and_imaginary_parts_are_joined(monkeypatch):
    parts = numpy.random.default_rng(0).standard_normal((2, 300, 301)).astype("f4")
    found, expected = _both(torch.complex, parts[0], parts[1, :1], monkeypatch=monkeypatch)
    assert (found == expected).all()


PAIRS = {
    "fmod": torch.fmod,
    "remainder": torch.remainder,
    "floor_divide": torch.floor_divide,
    "trunc_divide": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "logical_and": torch.logical_and,
    "logical_xor": torch.logical_xor,
    "add": lambda x, y: torch.add(x, y, alpha=2),
    "sign": lambda x, y: torch.sign(x),
    "angle": lambda x, y: torch.angle(x),
    "nan_to_num": lambda x, y: torch.nan_to_num(x),
    "nan_to_num of numbers": lambda x, y: torch.nan_to_num(x, 1.0, 2.0, 3.0),
    "logical_not": lambda x, y: torch.logical_not(x),
    "logaddexp": torch.logaddexp,
    "logaddexp2": torch.logaddexp2,
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", list(PAIRS))
def test_functions_of_floats(name, dtype, monkeypatch):
    values = numpy.array([*PARTS, 2.5, -2.5, 1e-40, -1e-40, 7, -7, 0.3, 1e10, -1e10])
    rng = numpy.random.default_rng(0)
    wide = rng.standard_normal(40_000) * 10 ** rng.uniform(-5, 8, 40_000)
    x = numpy.concatenate([numpy.repeat(values, len(values)), wide]).astype(dtype)
    y = numpy.concatenate([numpy.tile(values, len(values)), rng.permutation(wide) / 1e4]).astype(dtype)
    found, expected = _both(PAIRS[name], x, y, monkeypatch=monkeypatch)
    if name.startswith("logaddexp"):
        numpy.testing.assert_allclose(
            found, expected, rtol=4e-7 if dtype == "f4" else 1e-15, atol=4e-7 if dtype == "f4" else 1e-15
        )
    else:
        numpy.testing.assert_array_equal(found, expected)
        assert (numpy.signbit(found) == numpy.signbit(expected))[~numpy.isnan(expected)].all()
