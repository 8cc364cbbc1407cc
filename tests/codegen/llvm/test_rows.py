"""Compiled loops of row programs against NumPy: contiguous and strided rows, half types, sums over rows, special values."""

from __future__ import annotations

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.llvm.host import HOST
from adjoint.codegen.rows import RowProgram, row_program
from adjoint.codegen.tracing import PerColumn, PerRow, column, row, xp
from adjoint.dtypes import bfloat16
from adjoint.kernels.nn import softmax
from adjoint.kernels.runtime.parallel import get_num_threads, set_num_threads

Array = numpy.ndarray

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy warns of overflow and nan


@row_program()
def normalize(x: Array, weight: PerColumn, bias: PerColumn | None, eps: float):
    mean = row.mean(x)
    centred = x - mean
    rstd = xp.rsqrt(row.mean(centred * centred) + eps)
    normalized = centred * rstd * weight
    return (normalized if bias is None else normalized + bias), mean, rstd


@row_program()
def normalize_backward(grad: Array, x: Array, mean: PerRow, rstd: PerRow, weight: PerColumn):
    normalized = (x - mean) * rstd
    weighted = grad * weight
    result = (weighted - row.mean(weighted) - normalized * row.mean(weighted * normalized)) * rstd
    return result, column.sum(grad * normalized), column.sum(grad)


@row_program()
def between_extremes(x: Array):
    shifted = x - row.max(x)
    exponential = xp.exp(shifted)
    total = row.sum(exponential)
    return xp.log(total) - row.min(x), exponential / total


def fresh(program):
    """Return the same program, not yet compiled."""
    return RowProgram(program.function, program.refuse)


def compared(program, arrays, dim, scalars=(), rtol=None, atol=None):
    """Assert that NumPy and the compiled program agree."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LOOPS, "_enabled", False)
        expected = program.run(arrays, dim, scalars)
        patch.setattr(LOOPS, "_enabled", True)
        patch.setattr(LOOPS, "every_size", True)
        patch.setattr(LOOPS, "failures", {})
        found = program.run(arrays, dim, scalars)
        assert not LOOPS.failures
    if type(expected) is not tuple:
        expected, found = (expected,), (found,)
    tolerance = {8: 1e-12, 4: 4e-6, 2: 2e-2}[arrays[0].itemsize]
    for one, other in zip(expected, found, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        numpy.testing.assert_allclose(
            other.astype("f8"), one.astype("f8"), rtol=rtol or tolerance, atol=tolerance if atol is None else atol
        )
    return found


GEOMETRIES = [((50, 1000), -1), ((7, 33), 1), ((5, 40, 37), 1), ((300, 17), 0), ((3, 5), 0), ((1, 4000), 1), ((4, 1), 1),
              ((2, 3, 64, 4), 2), ((9,), 0), ((100, 7), 1), ((32, 16), 1), ((3, 11, 2), 2),
              ((33, 80), 1), ((16, 41), 1), ((45, 19), 1), ((40, 31), 1)]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float64, numpy.float16, bfloat16.numpy])
@pytest.mark.parametrize(("shape", "dim"), GEOMETRIES)
def test_rows_of_any_geometry(shape, dim, dtype):
    random = numpy.random.default_rng(0)
    x, y = (random.standard_normal((2, *shape)) * 2).astype(dtype)
    compute = numpy.float32 if numpy.dtype(dtype).itemsize == 2 else dtype
    length = shape[dim]
    (result,) = compared(softmax.softmax_rows, (x,), dim)
    compared(softmax.log_softmax_rows, (x,), dim)
    compared(softmax.softmax_backward_rows, (y, result), dim)
    weight = random.standard_normal(length).astype(compute)
    if length > 4:
        compared(normalize, (x, weight, None), dim, (1e-5,))
        compared(normalize, (x, weight, weight), dim, (1e-5,))
    mean, rstd = x.astype("f8").mean(dim).astype(compute), (1 / (1 + x.astype("f8").std(dim))).astype(compute)
    compared(normalize_backward, (y, x, mean, rstd, weight), dim, atol=1e-4 if compute == numpy.float32 else None)
    compared(between_extremes, (x,), dim)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_arrays_in_any_order_of_memory(dtype):
    x = numpy.random.default_rng(2).standard_normal((40, 30, 20)).astype(dtype)
    for view in (x.transpose(2, 1, 0), x[:, ::2], x[::-1, :, ::-1], numpy.broadcast_to(x[:1], x.shape)):
        for dim in range(3):
            compared(softmax.softmax_rows, (view,), dim)


@pytest.mark.parametrize("dim", [0, 1])
def test_nan_and_infinity_are_numpys(dim):
    x = numpy.random.default_rng(3).standard_normal((6, 40)).astype("f4")
    x[0, 3], x[1, 5], x[2, :], x[3, 39] = numpy.nan, numpy.inf, -numpy.inf, numpy.nan
    compared(softmax.softmax_rows, (x,), dim)
    compared(softmax.log_softmax_rows, (x,), dim)
    compared(between_extremes, (x,), dim)


@pytest.mark.thorough
def test_long_sums_are_as_exact_as_pairwise_ones():
    x = numpy.random.default_rng(4).uniform(0, 1, (2, 1 << 20)).astype("f4")
    mean = compared(normalize, (x, numpy.ones(1 << 20, "f4"), None), -1, (1e-5,))[1]
    exact = x.astype("f8").mean(1, keepdims=True)
    assert (numpy.abs(mean - exact) <= 4e-7 * exact).all()


@pytest.mark.parametrize("length", [130, 7])
def test_sums_over_rows_do_not_depend_on_threads(length):
    random = numpy.random.default_rng(5)
    grad, x = random.standard_normal((2, 3000, length)).astype("f4")
    mean, rstd = random.standard_normal((2, 3000)).astype("f4")
    weight = numpy.ones(length, "f4")
    threads = get_num_threads()
    try:
        results = []
        for count in (1, 2, 3):
            set_num_threads(count)
            results.append(normalize_backward.run((grad, x, mean, rstd, weight), -1))
    finally:
        set_num_threads(threads)
    for other in results[1:]:
        assert all((one == two).all() for one, two in zip(results[0], other, strict=True))


@pytest.mark.thorough
@pytest.mark.parametrize("vector_bytes", [16, 32])
def test_other_vectors_compute_the_same(vector_bytes, monkeypatch):
    monkeypatch.setattr(HOST, "vector_bytes", vector_bytes)
    x = numpy.random.default_rng(6).standard_normal((20, 77)).astype("f4")
    compared(fresh(softmax.softmax_rows), (numpy.ascontiguousarray(x[:, :7]),), 1)
    for dim in (0, 1):
        compared(fresh(softmax.softmax_rows), (x,), dim)
        compared(fresh(normalize_backward), (x, x, x[0] if dim == 0 else x[:, 0], x[0] if dim == 0 else x[:, 0],
                                             x[:, 0] if dim == 0 else x[0]), dim, atol=1e-3)  # fmt: skip


@pytest.mark.parametrize("dim", [0, 1])
def test_nan_anywhere_in_a_row_makes_its_maximum_nan(dim):
    x = numpy.random.default_rng(0).standard_normal((40, 131)).astype("f4")
    for place in (0, 17, 64, 130):
        x[place % 40, place] = -numpy.nan
    compared(softmax.softmax_rows, (x,), dim)
    compared(softmax.logsumexp_rows, (x,), dim)
