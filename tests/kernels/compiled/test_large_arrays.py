"""Operators with special compiled loops for large arrays give the results of NumPy's form."""

from __future__ import annotations

import math

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS
from adjoint.nn import functional

F = functional


@pytest.fixture
def both(monkeypatch):
    """Return the results and gradients of a function, computed by compiled loops (for any size) and by NumPy."""

    def compute(function, *arrays, **options):
        tensors = [torch.tensor(array) for array in arrays]
        leaves = [item.requires_grad_() for item in tensors if item.is_floating_point()]
        result = function(*tensors, **options)
        found = [result.detach().numpy()]
        if result.requires_grad:
            weights = torch.arange(1.0, result.numel() + 1, dtype=result.dtype).reshape(result.shape).sin()
            gradients = torch.autograd.grad((result * weights).sum(), leaves, allow_unused=True)
            found += [item.numpy() for item in gradients if item is not None]
        return found

    def run(function, *arrays, tolerance=1e-5, **options):
        monkeypatch.setattr(LOOPS, "every_size", True)
        compiled = compute(function, *arrays, **options)
        monkeypatch.setattr(LOOPS, "every_size", False)
        monkeypatch.setattr(LOOPS, "_enabled", False)
        written = compute(function, *arrays, **options)
        monkeypatch.setattr(LOOPS, "_enabled", True)
        assert len(compiled) == len(written)
        for first, second in zip(compiled, written, strict=True):
            assert first.dtype == second.dtype
            if first.dtype.kind in "fc":
                scale = numpy.abs(second[numpy.isfinite(second)]).max(initial=0)
                numpy.testing.assert_allclose(first, second, tolerance, tolerance * scale)
            else:
                numpy.testing.assert_array_equal(first, second)
        return compiled

    return run


def sample(*shape, dtype="float32", seed=0):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(dtype)


def integers(low, high, *shape, dtype="int64", seed=0):
    return numpy.random.default_rng(seed).integers(low, high, shape).astype(dtype)


BITS = {
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "not": lambda a, b: ~a,
    "up": lambda a, b: a << b, "down": lambda a, b: a >> b, "by number": lambda a, b: (a << 3) >> 1,
    "clamp": lambda a, b: a.clamp(-3, 50), "clamp between": lambda a, b: a.clamp(b, b + 9), "abs": lambda a, b: abs(a),
    "maximum": torch.maximum, "clamp in place": lambda a, b: a.clone().clamp_(1, 20),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["int64", "int16", "uint8"])
@pytest.mark.parametrize("name", BITS)
def test_bits_and_bounds_of_integers(name, dtype, both):
    if dtype == "uint8" and name == "clamp":
        return
    low = 0 if dtype == "uint8" else -100
    both(BITS[name], integers(low, 120, 3, 41, dtype=dtype), integers(max(low, -2), 70, 3, 41, dtype=dtype, seed=1))


@pytest.mark.parametrize("dtype", ["int64", "int16", "uint8"])
@pytest.mark.long_cases
def test_quotients_of_integers(dtype, both):
    low = 0 if dtype == "uint8" else -100
    x, y = integers(low, 120, 211, dtype=dtype), integers(low, 120, 211, dtype=dtype, seed=1)
    y[y == 0] = 3
    if dtype == "int64":
        x[40:60], y[50:70] = integers(-(2**62), 2**62, 20), integers(1, 2**62, 20)
    for divide in (
        torch.floor_divide,
        torch.remainder,
        torch.fmod,
        lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    ):
        both(divide, x, y)
    y[77] = 0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.remainder(torch.tensor(numpy.tile(x, 99)), torch.tensor(numpy.tile(y, 99)))


def test_clamp_in_place_refuses_another_kind_of_number():
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type long int"):
        torch.ones(3, dtype=torch.int64).clamp_(0.5)


@pytest.mark.parametrize("shape", [(7, 5), (2, 5, 3, 9), (5,)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_negative_log_likelihood(shape, weighted, reduction, both):
    classes = shape[0] if len(shape) == 1 else shape[1]
    target = integers(0, classes, *(shape[:1] + shape[2:] if len(shape) > 1 else ()))
    weight = torch.tensor(numpy.abs(sample(classes))) if weighted else None
    for ignore in (-100, 2):
        both(
            lambda x, target, ignore=ignore: F.nll_loss(x, target, weight, ignore_index=ignore, reduction=reduction),
            sample(*shape), numpy.asarray(target),
        )  # fmt: skip


@pytest.mark.thorough
def test_ctc_loss(both):
    target = integers(1, 7, 4, 5)
    target[:, :2] = 3
    for lengths in [(12, 9, 12, 3), (12, 12, 0, 1)]:  # the last loss is infinite
        for zero_infinity in (False, True):
            both(
                lambda x, target, lengths=lengths, zero=zero_infinity: F.ctc_loss(
                    x.log_softmax(2), target, lengths, (5, 2, 0, 4), reduction="none", zero_infinity=zero
                ),
                sample(12, 4, 7), target, tolerance=1e-4,
            )  # fmt: skip


@pytest.mark.parametrize("p", [0, 0.5, 1, 2, math.inf])
@pytest.mark.parametrize("width", [5, 40])
@pytest.mark.long_cases
def test_distances(p, width, both):
    x, y = sample(9, width, dtype="float64"), sample(2, 6, width, dtype="float64", seed=1)
    x[3] = x[5]
    x[:, 0] = 1
    exact = "donot_use_mm_for_euclid_dist"
    both(lambda x: F.pdist(x, p), x, tolerance=1e-9)
    both(lambda x, y: torch.cdist(x, y, p, exact), x, y, tolerance=1e-9)


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_running_extrema_of_rows(name, rows, both):
    x = sample(rows, 700)
    x[0, 300] = math.nan
    for array in (x, numpy.sort(x), integers(0, 9, rows, 333)):
        for which in (0, 1):
            both(lambda x, which=which: getattr(torch, name)(x, 1)[which], array)


@pytest.mark.parametrize("n", [2, 4, 30, 64, 1000, 41])
def test_inverse_transforms_to_real_numbers(n, both):
    x = (sample(3, n // 2 + 1) + 1j * sample(3, n // 2 + 1, seed=1)).astype("complex64")
    for norm in ("backward", "ortho"):
        both(lambda x, norm=norm: torch.fft.irfft(x, n, norm=norm), x)


@pytest.mark.parametrize("shape", [(6, 35), (2, 3, 64), (1009,), (4, 101)])
def test_sums_of_complex_numbers(shape, both):
    x = (sample(*shape) + 1j * sample(*shape, seed=1)).astype("complex64")
    for dim in (None, *range(len(shape))):
        for keepdim in (False, True):
            both(lambda x, dim=dim, keepdim=keepdim: x.sum(dim, keepdim), x)
            both(lambda x, dim=dim, keepdim=keepdim: x.mean(dim, keepdim), x)


def test_half_types_in_formulas_and_products(both):
    for dtype in (torch.bfloat16, torch.float16):
        both(lambda a, b, dtype=dtype: (a.to(dtype) * b.to(dtype) + 2).float(), sample(9, 20), sample(9, 20, seed=1))
        both(
            lambda a, b, dtype=dtype: (a.to(dtype) @ b.to(dtype)).float(), sample(9, 20), sample(20, 7), tolerance=1e-2
        )
        both(lambda a, b, dtype=dtype: a.to(dtype) > b.to(dtype), sample(9, 20), sample(9, 20, seed=1))


SPECIAL = {
    "ndtr": torch.special.ndtr, "log_ndtr": torch.special.log_ndtr, "erfcx": torch.special.erfcx,
    "trigamma": lambda x: torch.polygamma(1, x),
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.long_cases
def test_special_functions(name, both):
    edges = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-300, 1e300, -1e300, 5e150, 27.0, -27.0, 1.0, -1.0, -0.3, -2.5]
    x = numpy.concatenate([sample(600, dtype="float64") * 8, edges])
    with numpy.errstate(over="ignore"):
        single = x.astype("float32")
    for array in (x, single):
        both(lambda x: SPECIAL[name](x.detach()), array, tolerance=1e-6 if array.itemsize == 4 else 3e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nextafter(dtype, both):
    edges = numpy.array([0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, numpy.finfo(dtype).max], dtype)
    smallest = numpy.finfo(dtype).smallest_subnormal
    x = numpy.concatenate([edges, [smallest, -smallest]]).astype(dtype)
    pairs = [numpy.tile(item, (9, 10)) for item in numpy.meshgrid(x, x)]
    found, *_ = both(lambda a, b: torch.nextafter(a.detach(), b.detach()), *pairs, tolerance=0)
    with numpy.errstate(all="ignore"):
        expected = numpy.nextafter(*pairs)
    numpy.testing.assert_array_equal(found, expected)
    numpy.testing.assert_array_equal(numpy.signbit(found), numpy.signbit(expected))


def test_masked_assignment(both):
    mask = sample(9, 30, seed=1) > 0

    def assigned(x, mask, value):
        x = x.detach().clone()
        x[mask] = value
        return x

    for array in (sample(9, 30), integers(0, 9, 9, 30)):
        both(assigned, array, mask, value=3)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "int8"])
def test_members_by_a_table(dtype):
    low = 0 if dtype == "uint8" else -100
    elements, tests = integers(low, 120, 40, 30, dtype=dtype), integers(low, 120, 90, dtype=dtype, seed=1)
    expected = numpy.isin(elements, tests)
    numpy.testing.assert_array_equal(torch.isin(torch.tensor(elements), torch.tensor(tests)).numpy(), expected)
    far = numpy.array([2**63 - 1, -(2**63), 5])
    assert torch.isin(torch.tensor(far), torch.arange(60)).tolist() == [False, False, True]


def test_products_of_integers_are_exact():
    small, large = integers(-99, 99, 80, 70), numpy.full((80, 80), 2**40)
    numpy.testing.assert_array_equal((torch.tensor(small) @ torch.tensor(small.T)).numpy(), small @ small.T)
    numpy.testing.assert_array_equal((torch.tensor(large) @ torch.tensor(large)).numpy(), large @ large)
    bytes_ = integers(0, 255, 80, 80, dtype="uint8")
    numpy.testing.assert_array_equal((torch.tensor(bytes_) @ torch.tensor(bytes_)).numpy(), bytes_ @ bytes_)


@pytest.mark.parametrize(
    ("row", "column", "offset"), [(5, 3, 0), (3, 5, 1), (4, 4, -2), (3, 3, 7), (3, 3, -7), (0, 4, 0), (4, 0, 1)]
)
def test_indices_of_triangles(row, column, offset):
    for name in ("tril", "triu"):
        expected = numpy.stack(getattr(numpy, f"{name}_indices")(row, offset, column))
        numpy.testing.assert_array_equal(getattr(torch, f"{name}_indices")(row, column, offset).numpy(), expected)


def test_parts_of_one_array_side_by_side_are_copied():
    x = torch.arange(20000.0).reshape(100, 200)
    x[:, :100] = x[:, 100:]
    x[:, 1:100] = x[:, :99]  # source and target overlap
    assert x[3, :3].tolist() == [700.0, 700.0, 701.0]
