"""The object that an error concerns, for `explain`. Pickling an error drops the object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..tensor import Tensor
    from .node import Node


class Subject:
    """The node or the tensor that an error concerns, with statistics of gradients and results after a NaN."""

    def __init__(
        self, node: Node | None = None, tensor: Tensor | None = None, grads: Any = (), results: Any = None
    ) -> None:
        self.node, self.tensor, self.grads, self.results = node, tensor, grads, results

    def __reduce__(self) -> tuple[type[Subject], tuple[()]]:
        return Subject, ()
