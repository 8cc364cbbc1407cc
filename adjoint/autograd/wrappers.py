"""What tensors are within the transforms of functions: their text, and what is inside.

Only batching wraps tensors; reverse and forward mode are shown as if they did, for the tensors they differentiate.
"""

from __future__ import annotations

import textwrap

from .. import printing
from ..tape import modes
from ..tape.edges import edge_of
from ..tape.levels import Transform
from ..tensor import Tensor
from .batching import BatchedTensor
from .engine import discover

__all__ = ["debug_unwrap"]


def tracking(tensor: Tensor) -> list[Transform]:
    """The running transforms that differentiate `tensor` itself, not the batch it is an example of; innermost first."""
    edge = edge_of(tensor)
    nodes, leaves = ((), ()) if edge is None else discover([edge])
    found = []
    for transform in reversed(modes.STATE.transforms):
        beginnings = [edge_of(each) for each in getattr(transform, "inputs", ())]
        if any(
            each in leaves if isinstance(each, Tensor) else each[0] in nodes for each in beginnings if each is not None
        ) or (hasattr(transform, "tangent_of") and transform.tangent_of(tensor) is not None):
            found.append(transform)
    return found


def text(tensor: Tensor) -> str | None:
    """The text of a tensor that belongs to running transforms; None for any other."""
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


printing.within_transforms = text  # type: ignore[assignment]


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor inside a tensor as a function being transformed sees it: of all examples, and without the history.

    For printing in a debugger. `recurse`: through all transforms, not only the innermost.

    Raises:
        TypeError: for what is no tensor.
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
