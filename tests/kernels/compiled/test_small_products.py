"""Compiled kernels of stacks of products of small matrices."""

import numpy
import pytest

pytest.importorskip("llvmlite")

from adjoint.codegen.acceleration import LOOPS
from adjoint.kernels.compiled.linalg.small_products import product
from adjoint.kernels.linalg import matmul as kernels

SIZES = [(1, 1, 1), (1, 3, 1), (3, 1, 2), (2, 2, 2), (4, 3, 1), (3, 5, 4), (1, 64, 1)]


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 7, 70, 3001])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products_in_all_layouts(size, count, kind):
    rows, depth, columns = size
    generator = numpy.random.default_rng(count)
    a, b = (generator.standard_normal(n).astype(kind) for n in ((count, rows, depth), (count, depth, columns)))
    exact = a.astype(numpy.longdouble) @ b.astype(numpy.longdouble)
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        places = numpy.argsort(order)
        left, right = (numpy.ascontiguousarray(item.transpose(order)).transpose(places) for item in (a, b))
        found = product(left, right[::-1].copy()[::-1])
        assert found.dtype == a.dtype and found.flags.c_contiguous
        numpy.testing.assert_allclose(found, exact, rtol=0, atol=8 * numpy.finfo(kind).eps * (depth + 4))
        assert product(a, right).tobytes() == found.tobytes()
    one = numpy.broadcast_to(a[:1], a.shape)
    assert product(one, b).tobytes() == product(one.copy(), b).tobytes()


def test_numbers_that_are_not_finite_stay_in_their_matrices():
    a, b = numpy.ones((100, 2, 2), "f"), numpy.ones((100, 2, 2), "f")
    a[3, 0, 0], b[50, 1, 1] = numpy.nan, numpy.inf
    expected = numpy.full((100, 2, 2), 2.0, "f")
    expected[3, 0], expected[50, :, 1] = numpy.nan, numpy.inf
    numpy.testing.assert_array_equal(product(a, b), expected)


def test_only_stacks_of_small_matrices_take_it(monkeypatch):
    calls = []
    run = LOOPS.run
    monkeypatch.setattr(LOOPS, "run", lambda path, *args, **options: calls.append(path) or run(path, *args, **options))
    for rows, depth, columns in ((4, 4, 4), (4, 5, 4), (1, 32, 1), (2, 32, 1)):
        a, b = numpy.ones((9000, rows, depth), "f"), numpy.ones((9000, depth, columns), "f")
        assert (kernels.bmm(a, b) == depth).all()
    small, other = "linalg.small_products.product", "linalg.products.product"
    assert calls == [small, other, small]
