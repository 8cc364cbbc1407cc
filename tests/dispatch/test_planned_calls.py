"""Calls of one signature are planned once. Later calls find the plan, and compute the same bits."""

from __future__ import annotations

import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint as torch
import adjoint.nn.functional as F
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.plans import Plans
from adjoint.kernels.compiled.nn import convolution as compiled
from adjoint.kernels.nn import normalization


def operands():
    torch.manual_seed(0)
    given = {"x": (6, 32), "v": (32,), "g": (2, 4, 9, 9), "k": (6, 4, 3, 3), "c": (4,), "a": (1, 2, 8, 8)}
    return {name: torch.randn(shape, requires_grad=True) for name, shape in given.items()} | {
        "t": torch.tensor([1, 3, 0, 5, 31, 2]),
        "p": torch.full((4,), 0.25),
    }


CALLS = {
    "batch_norm": lambda g, c, **_: F.batch_norm(g, None, None, c, c, True),
    "batch_norm of columns": lambda x, v, **_: F.batch_norm(x, None, None, v, None, True),
    "batch_norm of channels last": lambda g, c, **_: F.batch_norm(
        g.contiguous(memory_format=torch.channels_last), None, None, c, c, True
    ),
    "group_norm": lambda g, c, **_: F.group_norm(g, 2, c, c),
    "layer_norm": lambda x, v, **_: F.layer_norm(x, (32,), v, v),
    "layer_norm of two": lambda g, **_: F.layer_norm(g, (9, 9)),
    "softmax": lambda x, **_: x.softmax(0),
    "log_softmax": lambda x, **_: x.log_softmax(-1),
    "logsumexp": lambda x, **_: x.logsumexp(1),
    "cross_entropy": lambda x, t, **_: F.cross_entropy(x, t),
    "nll_loss": lambda x, t, **_: F.nll_loss(x, t, ignore_index=3, reduction="sum"),
    "max_pool2d": lambda g, **_: F.max_pool2d(g, 3, 2, 1),
    "avg_pool2d": lambda g, **_: F.avg_pool2d(g, 3, 2, 1),
    "conv2d": lambda g, k, **_: F.conv2d(g, k, padding=1),
    "conv_transpose2d": lambda g, k, **_: F.conv_transpose2d(g, k.transpose(0, 1)),
    "attention": lambda a, **_: F.scaled_dot_product_attention(a, a, a),
    "norm": lambda x, **_: x.norm(dim=1),
    "normalize": lambda x, **_: F.normalize(x),
    "cosine_similarity": lambda x, **_: F.cosine_similarity(x, x.detach() + 1),
}


def bits(name):
    given = operands()
    result = CALLS[name](**given)
    result.backward(torch.ones_like(result))
    found = [result, *(tensor.grad for tensor in given.values() if tensor.grad is not None)]
    return [tensor.detach().numpy().tobytes() for tensor in found]


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_planned_once_and_keeps_its_bits(name, monkeypatch):
    monkeypatch.setattr(LOOPS, "enabled", True)
    first = bits(name)

    def planning(self, key, plan):
        raise AssertionError(f"{key} is planned again")

    monkeypatch.setattr(Plans, "keep", planning)
    for _ in range(3):
        assert bits(name) == first
    assert not LOOPS.failures


@pytest.mark.parametrize("name", CALLS)
def test_numpy_and_compiled_loops_agree(name, monkeypatch):
    found = []
    for enabled in (True, False):
        monkeypatch.setattr(LOOPS, "enabled", enabled)
        given = operands()
        result = CALLS[name](**given)
        result.backward(torch.ones_like(result))
        found.append([result.detach(), *(tensor.grad for tensor in given.values() if tensor.grad is not None)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=2e-5)


def test_arrays_that_do_not_fit_are_refused_and_not_read(monkeypatch):
    monkeypatch.setattr(LOOPS, "enabled", True)
    x, short, image = torch.randn(4, 32).numpy(), torch.randn(3).numpy(), torch.randn(2, 4, 9, 9).numpy()
    kernel, ones = torch.randn(6, 4, 3, 3).numpy(), (1, 1)
    for call in (
        lambda: normalization.layer_norm(x, (32,), short, None, 1e-5),
        lambda: normalization.group_norm(image, short, None, 2, 1e-5),
        lambda: normalization.batch_norm(image, short, None, None, None, True, 1e-5),
    ):
        with pytest.raises((ValueError, IndexError)):
            call()
    for plan in (
        compiled.conv_forward(image, kernel, short, ones, ones, ones, 1),
        compiled.conv_forward(image[:, :3], kernel, None, ones, ones, ones, 1),
        compiled.conv_weight_grad(image, image, (6, 4, 3, 3), ones, ones, ones, 1),
        compiled.transposed(image, kernel, None, (2, 4, 9, 9), ones, ones, ones, 1),
    ):
        assert plan is NotImplemented
