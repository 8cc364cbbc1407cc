"""Compiled samplers draw the same bits as samplers in Python, and leave the stream at the same position."""

from __future__ import annotations

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

from adjoint.codegen import plans
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.plans import compiled
from adjoint.kernels.compiled.create.twister import next_fraction, next_word, words
from adjoint.kernels.create import random
from adjoint.kernels.create.mt19937 import Stream

FLOATS = [numpy.dtype(numpy.float32), numpy.dtype(numpy.float64)]
RNG = numpy.random.default_rng(0)
RATES = numpy.abs(RNG.standard_normal(3000)) * 20
CONCENTRATIONS = numpy.concatenate([[0.0, -1.0, numpy.nan, 1.0, 1e-3], numpy.abs(RNG.standard_normal(3000))])
TRIALS = numpy.concatenate([[0, 5, numpy.nan, 5, 5], RNG.integers(0, 100, 3000)])
PROBS = numpy.concatenate([[0.5, 0.0, 0.5, 1.0, numpy.nan], RNG.random(3000)])

SAMPLERS = {
    "randn": lambda stream, dtype: random.normal_(stream, numpy.empty((70, 51), dtype)),
    "normal_": lambda stream, dtype: random.normal_(stream, numpy.empty(5003, dtype), 0.3, 1.7),
    "randperm": lambda stream, dtype: random.randperm(stream, 3001, numpy.dtype(numpy.int64)),
    "poisson": lambda stream, dtype: random.poisson(stream, RATES.astype(dtype)),
    "rand": lambda stream, dtype: random.uniform_(stream, numpy.empty((70, 51), dtype)),
    "randint": lambda stream, dtype: random.random_(stream, numpy.empty((70, 51), numpy.dtype(numpy.int64)), -3, 900),
    "uniform_": lambda stream, dtype: random.uniform_(stream, numpy.empty((7, 51), dtype)),
    "uniform_ in an interval": lambda stream, dtype: random.uniform_(stream, numpy.empty((7, 51), dtype), -0.3, 1.7),
    "uniform_ in a short interval": lambda stream, dtype: random.uniform_(
        stream, numpy.empty(701, dtype), 1.0, float(numpy.nextafter(dtype.type(1), dtype.type(2)))
    ),
    "few normal_": lambda stream, dtype: random.normal_(stream, numpy.empty((5, 7), dtype), -0.2, 0.6),
    "few integers": lambda stream, dtype: random.random_(
        stream, numpy.empty((5, 7), numpy.dtype(numpy.int64)), -3, 900
    ),
    "few in random order": lambda stream, dtype: random.randperm(stream, 37, numpy.dtype(numpy.int64)),
    "few pairs": lambda stream, dtype: random.normal_(stream, numpy.empty((3, 5), dtype), -0.2, 0.6),
    "exponential_": lambda stream, dtype: random.exponential_(stream, numpy.empty((5, 7), dtype), 0.7),
    "bernoulli_": lambda stream, dtype: random.bernoulli_(stream, numpy.empty((5, 7), dtype), 0.3),
    "bernoulli": lambda stream, dtype: random.bernoulli(stream, numpy.linspace(0, 1, 700, dtype=dtype)),
    "dropout_mask": lambda stream, dtype: random.dropout_mask(stream, numpy.empty((5, 7), dtype), 0.7),
    "randint of 64 bits": lambda stream, dtype: random.random_(
        stream, numpy.empty((70, 51), numpy.dtype(numpy.int64)), 0, 2**40
    ),
    "standard_gamma": lambda stream, dtype: random.standard_gamma(stream, CONCENTRATIONS.astype(dtype)),
    "binomial": lambda stream, dtype: random.binomial(stream, TRIALS.astype(dtype), PROBS.astype(dtype)),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", SAMPLERS)
def test_same_bits_as_without_the_compiler(name, dtype, monkeypatch):
    results, states = [], []
    for every_size, enabled in ((True, True), (False, False)):
        monkeypatch.setattr(LOOPS, "every_size", every_size)
        monkeypatch.setattr(LOOPS, "_enabled", enabled)
        stream = Stream(7)
        stream.words32(5)
        results.append(SAMPLERS[name](stream, dtype))
        states.append(stream.get_state())
    compiled, plain = results
    assert compiled.dtype == plain.dtype
    bits = f"u{plain.itemsize}"
    same = (compiled.view(bits) == plain.view(bits)) | (numpy.isnan(compiled) & numpy.isnan(plain))
    assert same.all()
    assert (states[0] == states[1]).all()
    assert not LOOPS.failures


def test_a_loop_that_small_arrays_use_begins_after_many_of_them(monkeypatch):
    monkeypatch.setattr(LOOPS, "every_size", False)
    monkeypatch.setattr(LOOPS, "_enabled", True)
    monkeypatch.setattr(plans, "CALLS", 3)
    form = compiled("create.twister.permutation", least=100, cost=1)
    stream, order = Stream(7), numpy.empty(10, numpy.int64)
    begun = [form.run(10, order, stream) is order for _ in range(5)]
    assert begun == [False, False, False, True, True]
    monkeypatch.setattr(LOOPS, "_enabled", False)
    assert form.run(10, order, stream) is NotImplemented
    monkeypatch.setattr(LOOPS, "_enabled", True)
    assert compiled("create.twister.permutation", least=10, cost=1).run(10, order, stream) is order


def test_words_are_numpys_across_twists(monkeypatch):
    monkeypatch.setattr(LOOPS, "every_size", False)
    plain, compiled = Stream(5), Stream(5)
    word = next_word.compiled()
    for n in (3, 623, 1000):
        expected = plain.words32(n).astype(numpy.uint64).tolist()
        assert [word(compiled.state_address) for _ in range(n)] == expected
    for n in (1, 622, 624, 1249):
        assert words(compiled, n, numpy.dtype(numpy.uint32)).tolist() == plain.words32(n).tolist()
        assert words(compiled, n, numpy.dtype(numpy.uint64)).tolist() == plain.words64(n).tolist()
    assert next_fraction.compiled()(compiled.state_address) == plain.double()
    assert (plain.get_state() == compiled.get_state()).all()
