"""Large results bypass the cache. The numbers are correct for every alignment in memory."""

from __future__ import annotations

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint as torch
from adjoint.codegen import compiled_pointwise
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.compiled_ufuncs import LargeUfunc
from adjoint.codegen.llvm import streaming
from adjoint.kernels.compiled.memory import copying

DTYPES = ["float32", "float64", "float16", "int32"]


@pytest.fixture(autouse=True)
def every_result_is_streamed(monkeypatch):
    monkeypatch.setattr(streaming, "STREAMED_BYTES", 1)
    monkeypatch.setattr(streaming, "LINES_UNREAD", {})
    monkeypatch.setattr(LOOPS, "every_size", True)
    copying._plan.cache_clear()
    yield
    copying._plan.cache_clear()


@pytest.mark.parametrize("n", [1, 15, 16, 17, 63, 64, 65, 1000, 4099])
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements(n, dtype):
    add, less = LargeUfunc(numpy.add, False), LargeUfunc(numpy.less, False)
    memory = (numpy.arange(2 * n + 40) % 100).astype(dtype)
    for begin in (0, 1, 5, 16):
        x, y = memory[begin : begin + n], memory[n + begin : 2 * n + begin]
        results = [add(x, y) for _ in range(3)]  # at different addresses
        for result in results:
            numpy.testing.assert_array_equal(result, x + y)
        numpy.testing.assert_array_equal(less(x, y), x < y)


def test_rows_that_are_not_contiguous():
    add = LargeUfunc(numpy.add, False)
    x = numpy.random.default_rng(0).standard_normal((37, 129)).astype("float32")
    numpy.testing.assert_array_equal(add(x[:, :100], x[:, 29:]), x[:, :100] + x[:, 29:])
    numpy.testing.assert_array_equal(add(x[:, ::2], x[:1, ::2]), x[:, ::2] + x[:1, ::2])
    numpy.testing.assert_array_equal(add(x.T, x.T), x.T + x.T)


@pytest.mark.parametrize("shape", [(3, 1000), (40, 77), (4099,), (1, 5)])
@pytest.mark.parametrize("dtype", [*DTYPES, "int8"])
def test_copies(shape, dtype):
    source = (numpy.arange(numpy.prod(shape)) % 100).astype(dtype).reshape(shape)
    for begin in (0, 1, 3, 8):
        target = numpy.zeros(source.size + begin, dtype)[begin:].reshape(shape)
        for given in (source, source[..., :1], source[:1]):
            assert copying.copy_into(target, given) is target
            numpy.testing.assert_array_equal(target, numpy.broadcast_to(given, shape))


def test_the_gradient_of_a_sum_is_written_out():
    x = torch.zeros(300, 500, requires_grad=True)
    x.sum(1).backward(torch.arange(300.0))
    assert x.grad.is_contiguous()
    numpy.testing.assert_array_equal(x.grad, numpy.repeat(numpy.arange(300.0), 500).reshape(300, 500))


def test_results_that_fit_in_the_cache_are_not_streamed(monkeypatch):
    monkeypatch.setattr(streaming, "STREAMED_BYTES", 1 << 24)
    assert not streaming.is_streamed(1 << 20)
    assert streaming.is_streamed(1 << 24)
    assert compiled_pointwise.LARGE < streaming.STREAMED_BYTES
