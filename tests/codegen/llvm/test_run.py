"""The parameters of a kernel say which arrays `run` takes."""

from __future__ import annotations

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

from adjoint.codegen.llvm.kernels import BITS, FLOATS, HOST, Int, Pointer, Static, T, i64, loops


@loops(T=FLOATS, copied="x")
def scaled(
    out: Pointer[T], x: Pointer[T], places: Pointer[i64], factor: T, n: Int, TWICE: Static, start: Int, stop: Int
) -> None:
    """Compute `x[row, places] * factor` for rows `start` to `stop`, twice that if `TWICE`."""
    for row in range(start, stop):
        for i in range(n):
            out[row * n + i] = x[row * n + places[i]] * factor * (T(2) if TWICE else T(1))


@loops(T=BITS)
def moved(out: Pointer[T], x: Pointer[T], start: Int, stop: Int) -> None:
    """Copy elements."""
    for i in range(start, stop):
        out[i] = x[i]


@loops
def widths(out: Pointer[i64], x: Pointer[T], W: Static, start: Int, stop: Int) -> None:
    """Write the width of a vector."""
    for i in range(start, stop):
        out[i] = W


PLACES = numpy.array([2, 0, 1])


def run(x, dtype=None, places=PLACES, **static):
    out = numpy.empty(x.shape, dtype or x.dtype)
    return scaled.run(len(x), x.nbytes, out, x, places, 3, 3, **(static or {"TWICE": False}))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("twice", [False, True])
def test_code_is_compiled_for_the_dtype_and_static_values(dtype, twice):
    x = numpy.arange(6, dtype=dtype).reshape(2, 3)
    found = run(x, TWICE=twice)
    assert found.dtype == dtype
    assert found.tolist() == (x[:, PLACES] * (6 if twice else 3)).tolist()


def test_arrays_that_may_be_copied_need_not_be_row_major():
    x = numpy.arange(6.0).reshape(3, 2).T
    assert run(x).tolist() == (x[:, PLACES] * 3).tolist()
    assert run(numpy.broadcast_to(x[:1], (2, 3))).tolist() == (x[[0, 0]][:, PLACES] * 3).tolist()


def test_other_arrays_are_left_to_numpy():
    x = numpy.arange(6.0).reshape(2, 3)
    assert run(x.astype("i8")) is NotImplemented
    assert run(x.astype("f2")) is NotImplemented
    assert run(x, "f4") is NotImplemented  # one type variable stands for one dtype
    assert run(x, places=PLACES.astype("i4")) is NotImplemented
    assert run(x, places=numpy.repeat(PLACES, 2)[::2]) is NotImplemented
    out = numpy.empty((3, 2)).T
    assert scaled.run(2, 48, out, x, PLACES, 3, 3, TWICE=False) is NotImplemented


def test_kernels_that_move_elements_take_all_dtypes_of_one_size():
    for dtype in ("f4", "i4", "c8", "f2", "?"):
        x = numpy.ones(5, dtype)
        assert moved.run(5, 8, numpy.zeros(5, dtype), x).tolist() == x.tolist()
    assert moved.run(5, 8, numpy.zeros(5, "i4"), numpy.ones(5, "f4")) is NotImplemented
    assert moved.run(5, 8, numpy.zeros(5, "c16"), numpy.ones(5, "c16")) is NotImplemented


def test_a_vector_is_as_wide_as_the_elements_of_the_first_array_permit():
    out, x = numpy.zeros(1, "i8"), numpy.ones(1)
    assert widths.run(1, 8, out, x)[0] == HOST.vector_bytes // 8
    assert widths.run(1, 8, out, x, W=3)[0] == 3


def test_wrong_names_are_errors():
    x = numpy.ones((1, 3))
    with pytest.raises(TypeError, match="TWICE"):
        scaled.run(1, 24, x.copy(), x, PLACES, 3, 3)
    with pytest.raises(TypeError, match="ONCE"):
        run(x, TWICE=False, ONCE=True)
    with pytest.raises(TypeError, match="explict"):
        loops(explict=True)(lambda x: x)
