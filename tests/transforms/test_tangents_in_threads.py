"""Levels of forward mode apply to all threads, so a tensor keeps its tangent in another thread."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import adjoint as torch
import adjoint.autograd.forward_ad as fwAD
from adjoint.func import jvp
from adjoint.tape import modes
from adjoint.testing import assert_close


def points(*shape):
    return torch.linspace(0.3, 1.7, torch.Size(shape).numel(), dtype=torch.float64).reshape(shape)


def _of_a_layer(kind):
    layer = (
        torch.nn.LSTM(3, 2, dtype=torch.float64)
        if kind == "LSTM"
        else torch.nn.TransformerEncoderLayer(3, 1, 4, dropout=0.0, dtype=torch.float64)
    )
    return lambda x: layer(x)[0]


def _gradient(x):
    return torch.autograd.grad((x.requires_grad_() ** 3).sum(), x)[0]


IN_A_THREAD = {
    "an operator": lambda x: x * x,
    "a view": lambda x: x[1] * 2,
    "in place": lambda x: torch.zeros(2, 3, dtype=torch.float64).add_(x).mul_(x),
    "in place on a view": lambda x: _changed(x * 1),
    "out of a list": lambda x: torch.cat([x, x * 2]),
    "a custom function": lambda x: _Doubled.apply(x),
    "a gradient": _gradient,
    "vmap": lambda x: torch.vmap(lambda row: row.sin() * row.sum())(x),
    "func.jvp": lambda x: torch.func.jvp(lambda y: y**3, (x,), (torch.ones_like(x),))[1],
    "func.grad": lambda x: torch.func.grad(lambda y: (y**3).sum())(x),
    "LSTM": _of_a_layer("LSTM"),
    "an encoder": _of_a_layer("encoder"),
    "a pool": lambda x: torch.nn.functional.max_pool1d(x[None], 2, 1),
    "a checkpoint": lambda x: torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False),
    "group norm": lambda x: torch.nn.functional.group_norm(x, 1),
    "a level of its own": lambda x: _with_a_level_of_its_own(x),
}


def _changed(x):
    x[0].mul_(x[1])
    return x


def _with_a_level_of_its_own(x):
    with fwAD.dual_level():
        primal, tangent = fwAD.unpack_dual(fwAD.make_dual(x, x * 1).sin())
        return primal * tangent


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * 2


@pytest.mark.parametrize("began", ["before", "within"])
@pytest.mark.parametrize("kind", IN_A_THREAD)
def test_tangents_reach_other_threads(kind, began):
    function, x, direction = IN_A_THREAD[kind], points(2, 3), points(2, 3).flip(0)
    with ThreadPoolExecutor(1) as before, ThreadPoolExecutor(1) as within:
        before.submit(lambda: torch.ones(2) * 2).result()
        with fwAD.dual_level():
            if kind == "a level of its own":
                expected = jvp(lambda y: y.sin() * (y * y.cos()), (x,), (direction,))[1]
            else:
                expected = fwAD.unpack_dual(function(fwAD.make_dual(x, direction))).tangent
            dual = fwAD.make_dual(x, direction)
            thread = before if began == "before" else within
            assert_close(fwAD.unpack_dual(thread.submit(function, dual).result()).tangent, expected)
            assert_close(thread.submit(lambda: fwAD.unpack_dual(function(dual)).tangent).result(), expected)
            plain = thread.submit(function, x).result()
            assert fwAD.unpack_dual(plain).tangent is None
        assert thread.submit(lambda: fwAD.unpack_dual(dual).tangent).result() is None
        assert not thread.submit(lambda: modes.STATE.interpreters or modes.FLAGS.special).result()


def test_levels_of_several_threads_do_not_mix():
    both, x = threading.Barrier(2), points(2, 3)

    def in_a_level(factor):
        both.wait()
        with fwAD.dual_level():
            dual = fwAD.make_dual(x, factor * x)
            both.wait()
            tangents = [fwAD.unpack_dual(dual * dual).tangent for _ in range(50)]
            both.wait()
        return tangents, fwAD.unpack_dual(dual).tangent

    with ThreadPoolExecutor(2) as threads:
        for factor, (tangents, after) in zip((1, 2), threads.map(in_a_level, (1, 2)), strict=True):
            assert all(torch.equal(each, factor * 2 * x * x) for each in tangents) and after is None


def test_a_level_ends_in_any_thread():
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(fwAD.enter_dual_level).result() == 0
        dual = fwAD.make_dual(points(2), points(2))
        assert fwAD.unpack_dual(dual * 1).tangent is not None
        fwAD.exit_dual_level()
        assert thread.submit(lambda: fwAD._current_level).result() == -1 and fwAD.unpack_dual(dual).tangent is None


def test_levels_of_forward_mode_that_threads_enter_and_leave_at_once_are_all_left():
    def entering():
        for _ in range(300):
            with fwAD.dual_level():
                pass

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=entering) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert modes.FLAGS.levels == ()
    assert not modes.FLAGS.special
