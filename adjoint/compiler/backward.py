"""The history of the results of a compiled function: one node, which runs a captured backward.

Also the capture of a backward.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy

from ..tape.edges import edge_of
from ..tape.node import FREED_MESSAGE, Node, sequence_numbers
from ..tape.versions import shared_counter
from ..tensor import LEAF, Tensor, as_array, wrap
from .tracer import Stop, Tracer


class CompiledFunctionBackward(Node):
    """The node that computes the gradients of all inputs of a compiled function from the values that its forward has saved.

    `saved`: these values, or None after they are freed, when nothing else is needed. `watched`: the tensors to which the
    values belong, with their versions. `again`: the function and its arguments, for gradients that are differentiated
    themselves, or None if the function changes an object.
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
        """Return the saved values, if they are unchanged."""
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


new_node: Any = functools.partial(object.__new__, CompiledFunctionBackward)


def tensors_of(result: Any) -> list[Tensor]:
    """Return the tensors in a nested result, in order."""
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, dict):
        result = list(result.values())
    return [each for item in result for each in tensors_of(item)] if isinstance(result, (list, tuple)) else []


def attach(roots: list[Tensor], origin: tuple[Any, int], kept: tuple[Any, ...] | None = None) -> None:
    """Make one node the history of `roots`, the results of a compiled function.

    `origin`: the instruction of the user's code that created the first root when the function was captured. `kept`: the
    saved values, the function that computes gradients, the targets, whose edges are those of the node, the watched tensors,
    and `again`. It is None if the graph has been freed.
    """
    node = new_node()
    node._hooks, node._sequence, (node._code, node._lasti) = None, next(sequence_numbers), origin
    array = roots[0]._array
    node._grad_shape, node._grad_dtype = array.shape, array.dtype
    if kept is None:
        node._edges, node.saved = (), None
    else:
        node.saved, node.function, node.targets, watched, node.again = kept
        node._edges = tuple(map(edge_of, node.targets))
        node.watched = [(tensor, shared_counter(tensor)[0]) for tensor in watched] if watched else watched
    if len(roots) == 1:
        roots[0]._edge = node, 0
        return
    node._grad_shape = [root._array.shape for root in roots]
    node._grad_dtype = [root._array.dtype for root in roots]
    for number, root in enumerate(roots):
        root._edge = (node, number)


def gradients_of(tracer: Tracer, roots: list[Tensor], places: dict[int, str]) -> tuple[list[tuple[str, Tensor]], bool]:
    """Append the backward of `roots` to the program.

    Return the inputs that get gradients, and whether the graph has been freed.
    """
    import adjoint as torch

    program = tracer.program
    targets = [
        each.tensor for each in program.inputs.values() if each.kind != "grad" and edge_of(each.tensor) is not None
    ]
    grads = [torch.ones_like(root) for root in roots]
    program.roots = [tracer.values[id(root._array)] for root in roots]
    numbers = [tracer.name(grad._array) for grad in grads]
    program.seeds = numbers
    position = len(program.instructions)
    try:
        with ending_at(targets, roots) as ends, tracer, torch.autocast("cpu", enabled=False):
            found = torch.autograd.grad(roots, ends, grads, retain_graph=True, allow_unused=True)
    except RuntimeError as error:
        if "second time" not in str(error):
            raise Stop(f"the backward fails: {error}") from error
        del program.instructions[position:]
        program.seeds = []
        return [], True
    if tracer.reason is not None:
        raise Stop(tracer.reason)
    used = [(target, grad) for target, grad in zip(targets, found, strict=True) if grad is not None]
    program.gradients = [tracer.known(grad._array) for _, grad in used]
    return [(places.get(id(target), ""), target) for target, _ in used], False


@contextmanager
def ending_at(targets: list[Tensor], roots: list[Tensor]) -> Iterator[list[Tensor]]:
    """A context in which the graph of `roots` ends at the uses of `targets`.

    It yields the leaves at these ends, one for each target.
    """
    ends: dict[Any, Tensor] = {}
    leaves = []
    for target in targets:
        edge = edge_of(target)
        leaf = target
        if type(edge) is tuple:
            leaf = wrap(target._array)
            leaf._edge = LEAF
            ends.setdefault((id(edge[0]), edge[1]), leaf)
        leaves.append(leaf)
    before: dict[Any, Any] = {}
    nodes = [edge[0] for edge in map(edge_of, roots) if type(edge) is tuple]
    try:
        for node in nodes if ends else ():  # the list grows during the loop
            if node in before:
                continue
            before[node] = node._edges
            node._edges = tuple(
                [ends.get((id(each[0]), each[1]), each) if type(each) is tuple else each for each in node._edges]
            )
            nodes += [each[0] for each in node._edges if type(each) is tuple]
        yield leaves
    finally:
        for node, edges in before.items():
            node._edges = edges
