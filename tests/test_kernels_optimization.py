import itertools
import math

import ml_dtypes
import numpy
import pytest

from adjoint.kernels.nn.optimization import adam_step, sgd_step

BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)
SHAPES = [(), (7,), (5, 4), (300, 200)]


def sample(shape, dtype="f8", seed=0):
    return numpy.asarray(numpy.random.default_rng(seed).standard_normal(shape)).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("transposed", [False, True])
def test_sgd(shape, transposed):
    for momentum, dampening, decay, nesterov, maximize in itertools.product(
        (0, 0.9), (0, 0.3), (0, 0.1), (False, True), (False, True)
    ):
        if nesterov and (momentum == 0 or dampening):
            continue
        p = numpy.ascontiguousarray(sample(shape).T).T if transposed else sample(shape)
        expected, velocity, buffer = p.copy(), None, None
        for step in range(3):
            g = sample(shape, seed=step + 1)
            before = g.copy()
            returned = sgd_step(p, g, buffer, 0.1, momentum, dampening, decay, nesterov, maximize)
            assert buffer is None or returned is buffer
            buffer = returned
            numpy.testing.assert_array_equal(g, before)
            change = (-g if maximize else g) + decay * expected
            if momentum:
                velocity = change if velocity is None else momentum * velocity + (1 - dampening) * change
                change = change + momentum * velocity if nesterov else velocity
            expected = expected - 0.1 * change
        numpy.testing.assert_allclose(p, expected, rtol=1e-12, atol=1e-14)
        assert (buffer is None) == (momentum == 0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("beta1", [0.9, 0.3])
def test_adam(shape, beta1):
    lr, beta2, eps = 0.01, 0.99, 1e-6
    for decay, decoupled, amsgrad, maximize in itertools.product((0, 0.1), (False, True), (False, True), (False, True)):
        p = sample(shape)
        m, v, largest = numpy.zeros(shape), numpy.zeros(shape), numpy.zeros(shape) if amsgrad else None
        e, em, ev, el = p.copy(), m.copy(), v.copy(), numpy.zeros(shape)
        for step in range(1, 5):
            g = sample(shape, seed=step) * 2 ** (3 - step)
            adam_step(p, g, m, v, largest, step, lr, beta1, beta2, eps, decay, decoupled, maximize)
            g = -g if maximize else g
            if decoupled:
                e = e * (1 - lr * decay)
            else:
                g = g + decay * e
            em = beta1 * em + (1 - beta1) * g
            ev = beta2 * ev + (1 - beta2) * g * g
            el = numpy.maximum(el, ev)
            square = (el if amsgrad else ev) / (1 - beta2**step)
            e = e - lr * em / (1 - beta1**step) / (numpy.sqrt(square) + eps)
        for ours, expected in ((p, e), (m, em), (v, ev)):
            numpy.testing.assert_allclose(ours, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("dtype", ["f2", BFLOAT16], ids=str)
def test_halves_are_rounded_once_per_step(dtype):
    p, g = sample((50, 3), dtype), sample((50, 3), dtype, 1)
    expected = (p.astype("f4") - numpy.float32(0.1) * g.astype("f4")).astype(dtype)
    sgd_step(p, g, None, 0.1)
    numpy.testing.assert_array_equal(p, expected)
    m, v = numpy.zeros_like(p), numpy.zeros_like(p)
    adam_step(p, g, m, v, None, 1, 0.01, 0.9, 0.999, 1e-4)
    numpy.testing.assert_allclose(v.astype("f8"), 0.001 * g.astype("f8") ** 2, rtol=2e-2, atol=1e-7)
    assert math.isfinite(float(p.astype("f8").sum()))


def test_tiles_cover_large_parameters():
    whole, g = sample((1_000_001,), "f4"), sample((1_000_001,), "f4", 1)
    parts = whole.copy()
    m, v = numpy.zeros_like(whole), numpy.zeros_like(whole)
    m2, v2 = m.copy(), v.copy()
    adam_step(whole, g, m, v, None, 1, 0.01, 0.9, 0.999, 1e-8)
    for start in range(0, len(parts), 10_000):
        cut = slice(start, start + 10_000)
        adam_step(parts[cut], g[cut], m2[cut], v2[cut], None, 1, 0.01, 0.9, 0.999, 1e-8)
    numpy.testing.assert_array_equal(whole, parts)
    numpy.testing.assert_array_equal(v, v2)
