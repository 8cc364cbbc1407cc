"""Optimizers in compiled code take the same steps, bit for bit, as in NumPy."""

from __future__ import annotations

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS

CASES = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9}),
    ("SGD", {"momentum": 0.9, "weight_decay": 0.01, "nesterov": True}),
    ("SGD", {"momentum": 0.9, "dampening": 0.1, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.01}),
    ("Adam", {"betas": (0.4, 0.7), "maximize": True}),
    ("AdamW", {"weight_decay": 0.1}),
    ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {}),
    ("RAdam", {"weight_decay": 0.1}),
    ("Adagrad", {"lr_decay": 0.1}),
    ("Adadelta", {}),
    ("RMSprop", {"centered": True, "momentum": 0.5}),
    ("RMSprop", {"weight_decay": 0.1}),
    ("Rprop", {}),
    ("ASGD", {"weight_decay": 0.1, "t0": 2}),
]
SHAPES = [(3, 5), (), (40, 41), (1,), (0, 4), (129,)]


def _trained(name, options, dtype, enabled, monkeypatch):
    monkeypatch.setattr(LOOPS, "every_size", enabled)
    monkeypatch.setattr(LOOPS, "_enabled", enabled)
    generator = numpy.random.default_rng(3)
    params = [torch.tensor(generator.standard_normal(shape)).to(dtype).requires_grad_() for shape in SHAPES]
    optimizer = getattr(torch.optim, name)(params, lr=0.01, **options)
    for step in range(8):
        for param in params:
            grad = generator.standard_normal(param.shape) * (0.5 if step else 1.0)
            param.grad = torch.tensor(grad).to(dtype)
        optimizer.step()
    return [param.detach() for param in params]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("name", "options"), CASES, ids=lambda value: str(value))
def test_same_bits_as_numpy(name, options, dtype, monkeypatch):
    compiled = _trained(name, options, dtype, True, monkeypatch)
    plain = _trained(name, options, dtype, False, monkeypatch)
    assert not LOOPS.failures
    for ours, expected in zip(compiled, plain, strict=True):
        assert torch.equal(ours, expected)


def test_parameters_that_share_memory_or_are_transposed_are_left_to_numpy(monkeypatch):
    monkeypatch.setattr(LOOPS, "every_size", True)
    base = torch.arange(12.0).view(3, 4)
    param = base.t().requires_grad_()
    param.grad = torch.ones(4, 3)
    torch.optim.SGD([param], lr=1.0).step()
    assert torch.equal(base, torch.arange(12.0).view(3, 4) - 1)
