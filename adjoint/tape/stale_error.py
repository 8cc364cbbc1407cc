"""The object that an error concerns, and the error for a saved tensor that was changed in place."""

from __future__ import annotations

from typing import Any

from ..dtypes import from_numpy
from ..kernels.runtime.meta_array import Meta
from ..tensor import Tensor, is_recorded
from . import modes, origin
from .node import Node


class Subject:
    """The node or the tensor that an error concerns, with statistics of gradients and results after a NaN."""

    def __init__(
        self, node: Node | None = None, tensor: Tensor | None = None, grads: Any = (), results: Any = None
    ) -> None:
        self.node, self.tensor, self.grads, self.results = node, tensor, grads, results

    def __reduce__(self) -> tuple[type[Subject], tuple[()]]:
        return Subject, ()


_TRACE = (
    "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
    "torch.autograd.set_detect_anomaly(True, check_nan=False)."
)
_TRACED = (
    "Hint: the backtrace further above shows the operation that failed to compute its gradient. The variable in question was "
    "changed in there or anywhere later. Good luck!"
)


def stale_error(
    node: Node | None, array: Any, counter: list[Any], expected: int, output_nr: int | None, edge: Any
) -> RuntimeError:
    """Return the error for a saved tensor that was changed in place, with the lines that saved and changed it."""
    described = f"[{_tensor_type(array)} [{', '.join(map(str, array.shape))}]]"
    if output_nr is not None and node is not None:
        described += f", which is output {output_nr} of {node._operation()},"
    elif is_recorded(edge):
        described += f", which is output {edge[1]} of {edge[0]._operation()},"
    error = RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"{described} is at version {int(counter[0])}; expected version {int(expected)} instead. "
        f"{_TRACED if modes.ANOMALY.enabled else _TRACE}"
    )
    error.subject = Subject(node=node)  # type: ignore[attr-defined]
    if node is not None:
        error.add_note(f"{node.name()} saved it at {node.describe_origin()}")
    if counter[1] is not None:
        code, lasti, name = counter[1]
        error.add_note(f"{name} changed it in place at {origin.describe(code, lasti)}")
    return error


def _tensor_type(array: Any) -> str:
    name = from_numpy(array.dtype).scalar_type
    if isinstance(array, Meta):
        return f"Meta{name}Type"
    return f"torch.{name}Tensor" if array.dtype.kind in "fiub" else f"CPU{name}Type"
