"""The text of tensors within function transforms, and functions that unwrap them.

Only batching wraps tensors. Reverse and forward mode are displayed as wrappers of the tensors that they differentiate.
"""

from __future__ import annotations

import textwrap

from .._runtime.late_bound import LATE
from ..autograd.engine import discover
from ..tape import modes
from ..tape.edges import edge_of
from ..tape.interpreters import Transform
from ..tensor import Tensor
from .batched_tensor import BatchedTensor

__all__ = ["debug_unwrap"]


def tracking(tensor: Tensor) -> list[Transform]:
    """Return the running transforms that differentiate `tensor` itself (not the batch that it represents), innermost first."""
    edge = edge_of(tensor)
    nodes, leaves = ((), ()) if edge is None else discover([edge])
    found = []
    for transform in reversed(modes.STATE.transforms):
        beginnings = [edge_of(each) for each in getattr(transform, "inputs", ())]
        if any(
            id(each) in leaves if isinstance(each, Tensor) else each[0] in nodes
            for each in beginnings
            if each is not None
        ) or (hasattr(transform, "tangent_of") and transform.tangent_of(tensor) is not None):
            found.append(transform)
    return found


def text(tensor: Tensor) -> str | None:
    """Return the text of a tensor that belongs to running transforms, or None for any other tensor."""
    if not (modes.STATE.transforms or type(tensor) is BatchedTensor):
        return None
    wrapped = tracking(tensor)
    if type(tensor) is BatchedTensor:
        value = repr(tensor.value)
        inner = value if tensor.bdim is None else _wrapped("BatchedTensor", tensor.level.number, value, tensor.bdim)
    elif wrapped:
        inner = repr(tensor.detach())
    else:
        return None
    for transform in reversed(wrapped):
        inner = _wrapped("GradTrackingTensor", transform.number, inner)
    return inner


def _wrapped(kind: str, number: int, inner: str, bdim: int | None = None) -> str:
    dim = "" if bdim is None else f"bdim={bdim}, "
    return f"{kind}(lvl={number}, {dim}value=\n{textwrap.indent(inner, '    ')}\n)"


LATE.text_within_transforms = text


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """Unwrap a tensor that a transformed function sees: return the whole batch, without the history of the transform.

    Use it for printing in a debugger. `recurse`: whether to unwrap all transforms, and not only the innermost transform.

    Raises:
        TypeError: if `tensor` is not a tensor.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"debug_unwrap(): argument 'tensor' (position 1) must be Tensor, not {type(tensor).__name__}")
    if tracking(tensor):
        inner: Tensor = tensor.without_history() if type(tensor) is BatchedTensor else tensor.detach()
        if not recurse:
            return inner
        tensor = inner
    if type(tensor) is not BatchedTensor:
        return tensor
    return debug_unwrap(tensor.value) if recurse else tensor.value
