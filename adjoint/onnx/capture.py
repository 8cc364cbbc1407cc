"""The operators of a run of a module for export, with their input and output tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import adjoint as torch

from ..utils._python_dispatch import TorchDispatchMode
from ..utils._pytree import tree_leaves  # type: ignore[attr-defined]


class Call:
    """One operator: its overload, its arguments, and the tensors that it returned."""

    __slots__ = ("args", "func", "keywords", "outputs")

    def __init__(self, func: Any, args: tuple[Any, ...], keywords: dict[str, Any], outputs: list[Any]) -> None:
        self.func, self.args, self.keywords, self.outputs = func, args, keywords, outputs

    @property
    def name(self) -> str:
        """The name of the operator, without its overload."""
        name: str = self.func.overloadpacket.__name__
        return name


class Capture(TorchDispatchMode):
    """A context that records the operators which compute with the inputs of a module.

    A result that depends only on parameters and constants is a constant, and its operators are dropped.

    Args:
        inputs: the tensors whose operators are recorded.
        parameters: the parameters and buffers of the module.
    """

    def __init__(self, inputs: Iterable[Any], parameters: Iterable[Any]) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.every: list[Call] = []
        """All operators, including the operators that compute constants."""
        self.alive = [*inputs]  # so that no two tensors have the same identity
        self.computed = {id(tensor) for tensor in self.alive}
        self.transposed: dict[int, Any] = {}
        """The parameters whose transpose is the tensor, by the identity of the tensor."""
        self.parameters = {id(tensor) for tensor in parameters}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        outputs = tree_leaves(result)
        self.alive += [each for each in outputs if isinstance(each, torch.Tensor)]
        call = Call(func, args, dict(kwargs or {}), outputs)
        self.every.append(call)
        given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        if any(id(each) in self.computed for each in given):
            self._check(func, given, outputs)
            self.calls.append(call)
            self.computed |= {id(each) for each in outputs if isinstance(each, torch.Tensor)}
        elif func.overloadpacket.__name__ == "t" and id(args[0]) in self.parameters:
            self.transposed[id(result)] = args[0]
        return result

    @staticmethod
    def _check(func: Any, given: list[Any], outputs: list[Any]) -> None:
        if (
            func._schema is not None
            and func._schema.is_mutable
            and any(id(each) in {id(one) for one in given} and each._is_view() for each in outputs)
        ):
            raise RuntimeError(
                f"{func} changes a view in place, which a graph of ONNX cannot say: compute a new tensor"
            )
        if not any(isinstance(each, torch.Tensor) for each in outputs):
            raise RuntimeError(
                f"{func} reads an element of what depends on the inputs: the graph would hold for these inputs only. Compute "
                "with tensors (torch.where) instead."
            )
