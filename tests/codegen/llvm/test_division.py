"""Compiled loops that divide integers by a number agree with Python's exact integers, for every type, size and sign."""

import itertools

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.llvm.host import HOST
from adjoint.kernels.math import arithmetic

DTYPES = ["int8", "int16", "int32", "int64", "uint8"]


@pytest.fixture(autouse=True)
def every_size(monkeypatch):
    monkeypatch.setattr(LOOPS, "every_size", True)
    monkeypatch.setattr(LOOPS, "failures", {})


KERNELS = {("floor", False): arithmetic.floor_divide, ("floor", True): arithmetic.remainder,
           ("trunc", False): arithmetic.trunc_divide, ("trunc", True): arithmetic.fmod}  # fmt: skip


def by_number(x, d, rounding, remainder):
    return KERNELS[rounding, remainder](x, numpy.asarray(d, x.dtype))


def numbers(dtype, n):
    limits = numpy.iinfo(dtype)
    rng = numpy.random.default_rng(n)
    x = rng.integers(limits.min, limits.max, n, dtype, endpoint=True)
    x[::3] >>= limits.bits // 2
    edges = [limits.min, limits.max, 0, 1, limits.max - 1, limits.min + 1]
    x[: len(edges)] = edges[:n]
    return x


def divisors(dtype):
    limits = numpy.iinfo(dtype)
    found = [
        1,
        2,
        3,
        7,
        100,
        limits.max,
        limits.max // 2,
        -2,
        -3,
        -7,
        limits.min,
        (1 << 51) - 1,
        1 - (1 << 51),
        1 << 40,
    ]
    return [d for d in [*found, 1 << 62] if limits.min <= d <= limits.max and d]


def truncated(a, b):
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


@pytest.mark.parametrize("width", [64, 32, 16])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [6, 8, 37, 1000])
def test_quotients_and_remainders_are_exact(dtype, n, width, monkeypatch):
    if width > HOST.vector_bytes:
        pytest.skip("this processor has no such registers")
    monkeypatch.setattr(HOST, "vector_bytes", width)
    x = numbers(dtype, n)
    for d in divisors(dtype):
        expected = {
            ("floor", False): [a // d for a in x.tolist()],
            ("floor", True): [a % d for a in x.tolist()],
            ("trunc", False): [truncated(a, d) for a in x.tolist()],
            ("trunc", True): [a - d * truncated(a, d) for a in x.tolist()],
        }
        for (rounding, remainder), values in expected.items():
            found = by_number(x, d, rounding, remainder)
            assert found.dtype == x.dtype
            assert found.tolist() == values, (d, rounding, remainder)


def test_numbers_that_are_exact_in_float64_alone_are_put_right():
    """Near multiples of the divisor, a rounded quotient is most often wrong by one."""
    for d, bits in itertools.product((3, 7, 1000, 99_991, (1 << 31) - 1, (1 << 40) + 1), (31, 51)):
        quotients = numpy.unique(numpy.concatenate([numpy.arange(50), (1 << bits) // d - numpy.arange(1, 50)]))
        x = numpy.concatenate([quotients * d + shift for shift in (-1, 0, 1)] * 2)
        x[len(x) // 2 :] *= -1
        assert by_number(x, d, "floor", False).tolist() == [a // d for a in x.tolist()]
        assert by_number(x, d, "floor", True).tolist() == [a % d for a in x.tolist()]


def test_operators_use_it():
    x = torch.arange(-50, 50).reshape(10, 10)
    values = x.flatten().tolist()
    assert (x % 7).flatten().tolist() == [a % 7 for a in values]
    assert (x % -7).flatten().tolist() == [a % -7 for a in values]
    assert (x // 7).flatten().tolist() == [a // 7 for a in values]
    assert torch.fmod(x, 7).flatten().tolist() == [a - 7 * truncated(a, 7) for a in values]
    assert torch.div(x, -7, rounding_mode="trunc").flatten().tolist() == [truncated(a, -7) for a in values]
    assert (x.t() % 7).tolist() == (x % 7).t().tolist()
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x % 0
    assert (x // -1).flatten().tolist() == [-a for a in values]
    assert not LOOPS.failures
