"""Row programs store their plans for small arrays."""

from __future__ import annotations

import numpy
import pytest

from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.rows import SmallCall, row_program
from adjoint.codegen.tracing import PerColumn, PerRow, column, row
from adjoint.kernels.runtime.parallel import get_num_threads, set_num_threads

Array = numpy.ndarray


@row_program()
def each(x: Array, by_row: PerRow, by_column: PerColumn):
    return x * by_row + by_column, row.sum(x), column.sum(x * x)


@pytest.fixture
def numpy_alone(monkeypatch):
    monkeypatch.setattr(LOOPS, "enabled", False)


@pytest.mark.usefixtures("numpy_alone")
@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("order", ["C", "F"])
def test_plans_of_small_arrays_are_kept_and_fit(dim, order):
    rng = numpy.random.default_rng(1)
    for _ in range(3):
        x = numpy.asarray(rng.standard_normal((3, 4, 5)), order=order)
        kept = list(x.shape)
        kept[dim] = 1
        by_row, by_column = rng.standard_normal(kept), rng.standard_normal((2, x.shape[dim]))[::2].reshape(-1)
        result, sums, squares = each.run((x, by_row, by_column), dim)
        spread = by_column.reshape([size if n == dim % 3 else 1 for n, size in enumerate(x.shape)])
        numpy.testing.assert_allclose(result, x * by_row + spread)
        numpy.testing.assert_allclose(sums, x.sum(dim, keepdims=True))
        numpy.testing.assert_allclose(squares, (x * x).sum(tuple(n for n in range(3) if n != dim % 3)))
        assert result.flags.c_contiguous and squares.shape == (x.shape[dim],)
    assert any(type(plan.run) is SmallCall for plan in each._plans.values())


@pytest.mark.usefixtures("numpy_alone")
def test_a_plan_is_for_one_signature():
    rng = numpy.random.default_rng(2)
    for dtype in ("f4", "f8", "f2"):
        for shape in ((4, 6), (6, 4), (1, 3), (3, 1), (0, 3)):
            x = rng.standard_normal(shape).astype(dtype)
            result, sums, _ = each.run((x, x[:, :1].copy(), numpy.ones(shape[1], dtype)), 1)
            assert result.dtype == dtype and sums.shape == (shape[0], 1)
            wide = x.astype("f8")
            numpy.testing.assert_allclose(result, wide * wide[:, :1] + 1, rtol=1e-3 if dtype == "f2" else 1e-5)


@pytest.mark.usefixtures("numpy_alone")
@pytest.mark.parametrize("shape", [(3000, 130, 1), (2, 300, 3000), (40, 50, 200)])
def test_sums_over_rows_do_not_depend_on_threads(shape):
    rng = numpy.random.default_rng(3)
    x = rng.standard_normal(shape).astype("f4")
    by_row, by_column = numpy.ones((shape[0], 1, shape[2]), "f4"), numpy.ones(shape[1], "f4")
    threads = get_num_threads()
    try:
        found = []
        for count in (1, 2, 3):
            set_num_threads(count)
            found.append(each.run((x, by_row, by_column), 1)[2])
    finally:
        set_num_threads(threads)
    for other in found[1:]:
        numpy.testing.assert_array_equal(found[0], other)
