"""Private functions of PyTorch's `torch.autograd` that other libraries call, implemented by `backward` and `grad`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ..device import Size
from ..tensor import Tensor, wrap
from .backward import backward, grad
from .gradient_edge import GradientEdge
from .roots import as_tuple, batched_grads, make_grads, metadata_of


def _make_grads(outputs: Sequence[Any], grads: Sequence[Tensor | None], is_grads_batched: bool) -> tuple[Any, ...]:
    """Return the initial gradients of a backward from `outputs`: the checked `grads`, with 1 in place of None."""
    if is_grads_batched:
        return tuple(batched_grads(as_tuple(outputs), tuple(grads)))
    return tuple(
        grad if isinstance(grad, Tensor) or grad is None else wrap(numpy.asarray(grad))
        for grad in make_grads(as_tuple(outputs), tuple(grads), False)
    )


def _calculate_shape(output: Tensor | GradientEdge, grad: Tensor, is_grads_batched: bool) -> tuple[Any, Any]:
    """Return the shape of an output, and the shape of its gradient (without the batch dimension)."""
    shape = grad._array.shape[1:] if is_grads_batched else grad._array.shape
    return Size(metadata_of(output)[0]), Size(shape)


def _tensor_or_tensors_to_tuple(tensors: Any, length: int) -> tuple[Any, ...]:
    """Convert one tensor, several tensors or None to a tuple of `length`."""
    return (None,) * length if tensors is None else as_tuple(tensors)


def _engine_run_backward(
    t_outputs: Sequence[Any],
    grad_tensors: Sequence[Tensor | None],
    keep_graph: bool,
    create_graph: bool,
    inputs: Sequence[Any] = (),
    allow_unreachable: bool = False,
    accumulate_grad: bool = False,
) -> tuple[Any, ...]:
    """Run `backward` if `accumulate_grad`, otherwise `grad`, with the arguments of PyTorch's engine."""
    if accumulate_grad:
        backward(t_outputs, grad_tensors, keep_graph, create_graph, inputs=inputs or None)
        return ()
    return grad(t_outputs, inputs, grad_tensors, keep_graph, create_graph, allow_unused=allow_unreachable)
