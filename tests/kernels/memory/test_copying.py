"""Conversions between float32 and half types."""

import numpy
import pytest

from adjoint.codegen.acceleration import LOOPS
from adjoint.kernels.memory.copying import rounded, widen
from adjoint.kernels.runtime.floating import FLOAT16, FLOAT32, HALVES


@pytest.mark.parametrize("compiled", [False, True])
def test_every_float16_number_is_widened_exactly(monkeypatch, compiled):
    monkeypatch.setattr(LOOPS, "enabled", compiled)
    every = numpy.arange(1 << 16, dtype=numpy.uint16).view(FLOAT16)
    for halves in (every, every[: 31 << 10], every.reshape(256, 256)[:, ::2]):
        wide = widen(halves)
        assert wide.dtype == FLOAT32
        numpy.testing.assert_array_equal(wide, halves.astype(FLOAT32))
        assert (numpy.signbit(wide) == numpy.signbit(halves)).all()


@pytest.mark.parametrize("half", HALVES)
def test_results_of_half_types_are_rounded_once(half):
    numbers = (numpy.random.default_rng(0).standard_normal(5000) * 1000).astype(FLOAT32)
    for size in (1, 5000):
        numpy.testing.assert_array_equal(rounded(numbers[:size], half), numbers[:size].astype(half))
    assert rounded(numbers, FLOAT32) is numbers
