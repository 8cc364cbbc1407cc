"""Checkpointing: saved values, and the messages of errors."""

import functools
import gc
import weakref
from typing import Any

import numpy
import pytest

import adjoint as torch
from adjoint.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    create_selective_checkpoint_contexts,
    set_checkpoint_debug_enabled,
)


@pytest.mark.parametrize("reentrant", [True, False])
def test_intermediate_results_are_not_kept(reentrant: bool) -> None:
    alive: list[weakref.ref[torch.Tensor]] = []

    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.exp()
        alive.append(weakref.ref(y))
        return y.sin().exp()

    x = torch.ones(3, requires_grad=True)
    arrays = []

    def counted(x: torch.Tensor) -> torch.Tensor:
        z = function(x)
        arrays.append(weakref.ref(z.detach().numpy()))
        return z.exp()

    y = checkpoint(counted, x, use_reentrant=reentrant)
    gc.collect()
    assert all(reference() is None for reference in alive + arrays)
    y.sum().backward()
    expected = x.detach().clone().requires_grad_()
    expected.exp().sin().exp().exp().sum().backward()
    assert numpy.allclose(x.grad.numpy(), expected.grad.numpy())


def test_no_cycle_is_left_behind() -> None:
    gc.collect()
    gc.disable()
    try:
        x = torch.ones(3, requires_grad=True)
        y = checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False)
        node = weakref.ref(y.grad_fn)
        y.sum().backward()
        del y
        assert node() is None
    finally:
        gc.enable()


def test_debugging_names_the_lines() -> None:
    runs = []

    def function(x: torch.Tensor) -> torch.Tensor:
        runs.append(1)
        return x.sin().exp() if len(runs) == 1 else x.cos()

    x = torch.ones(3, requires_grad=True)
    with set_checkpoint_debug_enabled(True):
        y = checkpoint(function, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match=r"x\.sin") as caught:
        y.sum().backward()
    assert "test_checkpoint.py" in str(caught.value)
    assert "You are seeing this error because you passed `debug=True` to checkpoint" in str(caught.value)


def test_every_part_of_a_deep_model_may_be_checkpointed() -> None:
    model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()) for _ in range(6)])
    x = torch.randn(2, 4)
    model(x).sum().backward()
    expected = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    torch.utils.checkpoint.checkpoint_sequential(model, 3, x, use_reentrant=False).sum().backward()
    for parameter, grad in zip(model.parameters(), expected, strict=True):
        assert torch.equal(parameter.grad, grad)


def test_a_policy_selects_operators_of_the_program() -> None:
    """The policy receives a custom operator, not the operators inside, and its stored result is not computed again."""
    calls: list[str] = []
    seen: list[str] = []

    @torch.library.custom_op("checkpointed::sine", mutates_args=())
    def sine(x: torch.Tensor) -> torch.Tensor:
        calls.append("sine")
        return x.sin()

    def save(ctx: Any, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs)

    sine.register_autograd(lambda ctx, grad: grad * ctx.saved_tensors[0].cos(), setup_context=save)

    def policy(context: Any, op: Any, *args: Any) -> bool:
        seen.append(str(op))
        return op is torch.ops.checkpointed.sine.default

    def function(x: torch.Tensor) -> torch.Tensor:
        return sine(x.exp()).cos()

    x = torch.ones(2, requires_grad=True)
    keep = functools.partial(create_selective_checkpoint_contexts, policy)
    checkpoint(function, x, use_reentrant=False, context_fn=keep).sum().backward()
    assert calls == ["sine"]
    assert seen == ["aten.exp.default", "checkpointed.sine.default", "aten.cos.default"]
    again = torch.ones(2, requires_grad=True)
    function(again).sum().backward()
    assert torch.equal(x.grad, again.grad)


def test_contexts_of_selective_checkpoints_are_bound_by_with_statements_and_show_their_storage() -> None:
    made: list[Any] = []

    def contexts() -> Any:
        made.extend(create_selective_checkpoint_contexts([torch.ops.aten.mm.default]))
        return made

    x = torch.ones(2, 2, requires_grad=True)
    total = checkpoint(lambda x: (x @ x).sin(), x, use_reentrant=False, context_fn=contexts).sum()
    names = [type(each).__name__ for each in made]
    assert names == ["_CachingTorchDispatchMode", "_CachedTorchDispatchMode"]
    first, again = made
    assert first.storage is again.storage
    mm, sin = torch.ops.aten.mm.default, torch.ops.aten.sin.default
    assert set(first.storage) == {mm, sin} and len(first.storage[mm]) == 1
    total.backward()
    assert not any(first.storage.values())
    with first as bound:
        assert bound is first


def test_an_unchecked_recomputation_of_other_shapes_raises_an_error_that_names_the_sizes() -> None:
    runs: list[int] = []

    def function(x: torch.Tensor) -> torch.Tensor:
        runs.append(1)
        return torch.cat([x] * len(runs)).sin()

    x = torch.ones(3, 2, requires_grad=True)
    total = checkpoint(function, x, use_reentrant=False, determinism_check="none").sum()
    sizes = r"The size of tensor a \(3\) must match the size of tensor b \(6\) at non-singleton dimension 0"
    with pytest.raises(RuntimeError, match=sizes) as refused:
        total.backward()
    assert "in the backward of SinBackward0" in refused.value.__notes__[0]


def test_errors_of_numpy_in_the_backward_of_a_custom_function_are_not_changed() -> None:
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            return torch.from_numpy(grad.numpy() + numpy.ones(2, numpy.float32))

    with pytest.raises(ValueError, match="operands could not be broadcast"):
        Broken.apply(torch.ones(3, requires_grad=True)).backward(torch.ones(3))
