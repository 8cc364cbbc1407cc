"""The history of what a compiled function returns: one node, which runs the captured backward."""

from __future__ import annotations

from typing import Any

import numpy

from ..tape.edges import edge_of
from ..tape.node import FREED_MESSAGE, Node, sequence_numbers
from ..tape.versions import shared_counter
from ..tensor import Tensor, as_array


class CompiledFunctionBackward(Node):
    """Computes the gradients of all inputs of a compiled function from the values that its forward has kept.

    `saved`: these values; None once they are freed. `watched`: the tensors that they belong to, with their versions. `again`:
    the function and its arguments, for gradients that are themselves differentiated; None if it changes something.
    """

    __slots__ = ("again", "function", "saved", "targets", "watched")
    __module__ = "builtins"

    again: Any
    function: Any
    saved: Any
    targets: list[Tensor]
    watched: list[tuple[Tensor, Any]]

    def backward(self, grad: Any, retain_graph: bool, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run the captured backward."""
        saved = self.checked()
        grads = grad if type(self._grad_shape) is list else [grad]
        shapes = self._grad_shape if type(self._grad_shape) is list else [self._grad_shape]
        kinds = self._grad_dtype if type(self._grad_dtype) is list else [self._grad_dtype]
        given = [
            numpy.zeros(shape, kind) if each is None else as_array(each)
            for each, shape, kind in zip(grads, shapes, kinds, strict=True)
        ]
        if not retain_graph:
            self.saved = None
        results: tuple[Any, ...] = self.function(saved, given)
        return results

    def checked(self) -> Any:
        """What is saved, if nothing has changed it."""
        if self.saved is None:
            raise RuntimeError(FREED_MESSAGE)
        for tensor, version in self.watched:
            current = tensor._counter
            if (0 if current is None else current[0]) != version:
                found = 0 if current is None else current[0]
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: a tensor "
                    f"of shape {list(tensor.shape)}, used by a compiled function, is at version {found}; expected version "
                    f"{version} instead."
                )
        return self.saved

    def backward_recorded(self, grad: Any, retain_graph: bool, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run the function again, eagerly, and record its gradients."""
        import adjoint as torch

        self.checked()
        if self.again is None:
            raise RuntimeError(
                "a compiled function that draws random numbers or changes tensors in place cannot be differentiated twice; call "
                "it without torch.compile"
            )
        function, args, kwargs = self.again
        grads = grad if type(self._grad_shape) is list else [grad]
        with torch.enable_grad():
            roots = [each for each in tensors_of(function(*args, **kwargs)) if edge_of(each) is not None]
            pairs = [(root, each) for root, each in zip(roots, grads, strict=True) if each is not None]
            return torch.autograd.grad(
                [root for root, _ in pairs],
                self.targets,
                [each for _, each in pairs],
                create_graph=True,
                allow_unused=True,
            )


def tensors_of(result: Any) -> list[Tensor]:
    """The tensors in a nested result, in order."""
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, dict):
        result = list(result.values())
    return [each for item in result for each in tensors_of(item)] if isinstance(result, (list, tuple)) else []


def attach(
    roots: list[Tensor],
    targets: list[Tensor],
    saved: Any,
    function: Any,
    watched: list[Tensor],
    again: Any,
    origin: tuple[Any, int],
) -> None:
    """Make one node the history of `roots`, results of a compiled function; its edges are those of `targets`.

    `origin`: the instruction of the user's code that made the first root when the function was captured.
    """
    node = object.__new__(CompiledFunctionBackward)
    node._edges, node._hooks, node._sequence = (
        tuple([edge_of(target) for target in targets]),
        None,
        next(sequence_numbers),
    )
    node._code, node._lasti = origin
    node.saved, node.function, node.targets, node.again = saved, function, targets, again
    node.watched = [(tensor, shared_counter(tensor)[0]) for tensor in watched]
    if len(roots) == 1:
        array = roots[0]._array
        node._grad_shape, node._grad_dtype = array.shape, array.dtype
    else:
        node._grad_shape = [root._array.shape for root in roots]
        node._grad_dtype = [root._array.dtype for root in roots]
    for number, root in enumerate(roots):
        root._edge = (node, number)
