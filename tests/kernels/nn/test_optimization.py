"""Formulas of optimizers on arrays: lists of small arrays, large arrays in tiles, half types, and shared memory."""

import itertools
import math
from types import SimpleNamespace

import ml_dtypes
import numpy
import pytest

from adjoint.kernels.nn.optimization import update
from adjoint.optim import SGD, Adam, RMSprop

BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)
SHAPES = [(), (7,), (5, 4), pytest.param((300, 200), marks=pytest.mark.thorough)]


def sample(shape, dtype="f8", seed=0):
    return numpy.asarray(numpy.random.default_rng(seed).standard_normal(shape)).astype(dtype)


def sgd_step(param, grad, buffer, lr, momentum=0, dampening=0, weight_decay=0, nesterov=False, maximize=False):
    options = SimpleNamespace(
        lr=lr,
        momentum=momentum,
        dampening=dampening,
        weight_decay=weight_decay,
        nesterov=nesterov,
        maximize=maximize,
        is_first_step=buffer is None,
    )
    if momentum and buffer is None:
        buffer = numpy.empty_like(param)
    assert update(SGD._update, options, [[param], [grad], *([[buffer]] if momentum else [])], True)
    return buffer


def adam_options(step, lr, beta1, beta2, eps, weight_decay=0, decoupled=False, maximize=False):
    return SimpleNamespace(
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        maximize=maximize,
        weight_decay=0 if decoupled else weight_decay,
        shrink=1 - lr * weight_decay if decoupled else 1,
        root=(1 - beta2**step) ** 0.5,
        size=lr / (1 - beta1**step),
    )


def adam_step(param, grad, mean, square, largest, *options):
    state = [[mean], [square], *([] if largest is None else [[largest]])]
    assert update(Adam._update, adam_options(*options), [[param], [grad], *state], True)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("transposed", [False, True])
def test_sgd(shape, transposed):
    for momentum, dampening, decay, nesterov, maximize in itertools.product(
        (0, 0.9), (0, 0.3), (0, 0.1), (False, True), (False, True)
    ):
        if nesterov and (momentum == 0 or dampening):
            continue
        p = numpy.array(sample(shape), order="F") if transposed else sample(shape)
        expected, velocity, buffer = p.copy(), None, None
        for step in range(3):
            g = sample(shape, seed=step + 1)
            before = g.copy()
            buffer = sgd_step(p, g, buffer, 0.1, momentum, dampening, decay, nesterov, maximize)
            numpy.testing.assert_array_equal(g, before)
            change = (-g if maximize else g) + decay * expected
            if momentum:
                velocity = change if velocity is None else momentum * velocity + (1 - dampening) * change
                change = change + momentum * velocity if nesterov else velocity
            expected = expected - 0.1 * change
        numpy.testing.assert_allclose(p, expected, rtol=1e-12, atol=1e-14)
        if momentum:
            numpy.testing.assert_allclose(buffer, velocity, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("beta1", [0.9, 0.3])
@pytest.mark.long_cases
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
@pytest.mark.parametrize("count", [1, 3])
def test_halves_are_rounded_once_per_step(dtype, count):
    params, grads = ([sample((50, 3), dtype, seed + i) for i in range(count)] for seed in (0, 10))
    expected = [
        (p.astype("f4") - numpy.float32(0.1) * g.astype("f4")).astype(dtype) for p, g in zip(params, grads, strict=True)
    ]
    options = SimpleNamespace(lr=0.1, maximize=False, weight_decay=0)
    assert update(SGD._update, options, [params, grads], True)
    for p, e in zip(params, expected, strict=True):
        numpy.testing.assert_array_equal(p, e)
    means, squares = ([numpy.zeros_like(p) for p in params] for _ in range(2))
    assert update(Adam._update, adam_options(1, 0.01, 0.9, 0.999, 1e-4), [params, grads, means, squares], True)
    for v, g in zip(squares, grads, strict=True):
        numpy.testing.assert_allclose(v.astype("f8"), 0.001 * g.astype("f8") ** 2, rtol=2e-2, atol=1e-7)
    assert all(math.isfinite(float(p.astype("f8").sum())) for p in params)


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


def rmsprop(lists):
    options = SimpleNamespace(lr=0.1, alpha=0.9, eps=1e-8, weight_decay=0.1, momentum=0, maximize=False, centered=False)
    return update(RMSprop._update, options, lists)


def lists_of(shapes, dtype="f4"):
    return [[sample(shape, dtype, seed + i) for i, shape in enumerate(shapes)] for seed in (0, 100)] + [
        [numpy.asarray(numpy.abs(sample(shape, dtype, 200 + i))) for i, shape in enumerate(shapes)]
    ]


def sequential_fallback(lists):
    copies = [[array.copy() for array in arrays] for arrays in lists]
    for arrays in zip(*copies, strict=True):
        assert rmsprop([[array] for array in arrays])
    return copies


def test_a_list_is_updated_as_its_members_are():
    shapes = [(3,), (), (0, 2), (4, 5), (70, 70), (200, 200), (63, 63), (63, 63), (63, 63), (63, 63), (63, 63), (9,)]
    lists = lists_of(shapes)
    lists[0][3] = numpy.asfortranarray(lists[0][3])
    expected = sequential_fallback(lists)
    assert rmsprop(lists)
    for arrays, ours in zip(expected, lists, strict=True):
        for array, our in zip(arrays, ours, strict=True):
            numpy.testing.assert_array_equal(our, array)


def test_dtypes_may_be_mixed():
    lists = [list(both) for both in zip(*(lists_of([(3,)], dtype) for dtype in ("f4", "f8")), strict=True)]
    lists = [[arrays[0][0], arrays[1][0]] for arrays in lists]
    expected = sequential_fallback(lists)
    assert rmsprop(lists)
    for arrays, ours in zip(expected, lists, strict=True):
        for array, our in zip(arrays, ours, strict=True):
            assert our.dtype == array.dtype
            numpy.testing.assert_array_equal(our, array)


def test_parameters_on_one_memory_are_updated_in_turn():
    memory = numpy.ones(4)
    params = [memory[:3], memory[1:]]
    options = SimpleNamespace(lr=0.5, maximize=False, weight_decay=1)
    assert update(SGD._update, options, [params, [numpy.zeros(3), numpy.zeros(3)]], True)
    assert memory.tolist() == [0.5, 0.25, 0.25, 0.5]


@pytest.mark.parametrize(
    "change",
    [
        lambda lists: lists[1].__setitem__(0, numpy.ones((1, 3), "f4")),
        lambda lists: lists[2].__setitem__(1, numpy.ones(4)),
        lambda lists: [arrays.__setitem__(0, arrays[0].astype("f2")) for arrays in lists],
        lambda lists: [arrays.__setitem__(0, arrays[0].astype("c8")) for arrays in lists],
    ],
)
def test_what_arrays_do_not_take_is_left_alone(change):
    lists = lists_of([(3,), (4,)])
    change(lists)
    before = [[array.copy() for array in arrays] for arrays in lists]
    assert not rmsprop(lists)
    for arrays, ours in zip(before, lists, strict=True):
        for array, our in zip(arrays, ours, strict=True):
            numpy.testing.assert_array_equal(our, array)
