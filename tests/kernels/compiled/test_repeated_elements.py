"""Compiled code copies arrays that repeat elements in memory, such as gradients of sums, before it computes with them."""

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

from adjoint.codegen.acceleration import LOOPS
from adjoint.kernels.index import scatter
from adjoint.kernels.nn import pooling

WIDTH = 4096


@pytest.fixture(autouse=True)
def every_size(monkeypatch):
    monkeypatch.setattr(LOOPS, "every_size", True)


def test_plans_read_repeated_elements():
    grad = numpy.broadcast_to(numpy.float32(0.7), (64, 32, 32))
    spread = pooling.adaptive_avg_pool_backward
    assert numpy.array_equal(spread(grad, (64, 128, 128), 2), spread(grad.copy(), (64, 128, 128), 2))


def test_loops_read_repeated_elements():
    values = numpy.broadcast_to(numpy.float32(1), (16, WIDTH))
    places, target = numpy.tile(numpy.arange(WIDTH), (16, 1)), numpy.zeros((16, 2 * WIDTH), numpy.float32)
    scatter.combine(target, target.shape, 1, places, values, numpy.add)
    assert target[:, :WIDTH].all()
    assert not target[:, WIDTH:].any()


def test_kernels_write_to_repeated_elements_themselves():
    row = numpy.zeros(WIDTH, numpy.float32)
    repeated = numpy.lib.stride_tricks.as_strided(row, (16, WIDTH), (0, 4))
    places = numpy.tile(numpy.arange(WIDTH), (16, 1))
    scatter.combine(repeated, repeated.shape, 1, places, numpy.ones((16, WIDTH), numpy.float32), None)
    assert row.all()
