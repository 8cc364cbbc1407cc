"""The backward of a compiled function: one node, which runs a captured backward, and the capture of a backward."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy

from ..autograd.accumulate import made
from ..dispatch.source import compile_source
from ..tape.edges import edge_of
from ..tape.node import FREED_MESSAGE, Node, sequence_numbers
from ..tape.versions import shared_counter
from ..tensor import LEAF, Tensor, as_array, wrap
from .program import Source
from .tracer import Stop, Tracer


class CompiledFunctionBackward(Node):
    """The node that computes the gradients of all inputs of a compiled function from the values that its forward has saved.

    `saved`: the saved values, or None after they have been freed. `watched`: the tensors to which the values belong, with their
    versions. `again`: an `Again`, its arguments, and the versions of its inputs, for second derivatives, or None if the function
    changes an object. `reach`: for each target, the numbers of the results that depend on it.
    """

    __slots__ = ("again", "function", "reach", "saved", "targets", "watched")
    __module__ = "builtins"

    again: Any
    function: Any
    reach: list[frozenset[int]]
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
        if any(each is None for each in grads):
            arrived = [number for number, each in enumerate(grads) if each is not None]
            results = tuple(
                None if roots.isdisjoint(arrived) else each for each, roots in zip(results, self.reach, strict=True)
            )
            if self.again is not None and not all(each is None or numpy.isfinite(each).all() for each in results):
                # Zeros, which replaced missing gradients, may have been multiplied by infinite derivatives.
                found = self.of_function([None if each is None else made(as_array(each)) for each in grads], False)
                return tuple(None if each is None else each._array for each in found)
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
        return self.of_function(grad if type(self._grad_shape) is list else [grad], torch.is_grad_enabled())

    def of_function(self, grads: list[Any], create_graph: bool) -> tuple[Any, ...]:
        """Return the gradients of the function, which runs again."""
        import adjoint as torch

        again, *given = self.again
        pairs = [(root, each) for root, each in zip(again(*given), grads, strict=True) if each is not None]
        return torch.autograd.grad(
            [root for root, _ in pairs],
            self.targets,
            [each for _, each in pairs],
            create_graph=create_graph,
            allow_unused=True,
        )


class Again:
    """Runs a function again if the objects that it reads have not changed.

    `source`: the code that tests the conditions and returns the values that must be unchanged. `positions`: the positions of the
    results with history among the tensors in the result. `precision`: the dtype of autocast, or None if it is off.
    """

    def __init__(
        self, function: Any, source: str, namespace: dict[str, Any], positions: list[int], precision: Any
    ) -> None:
        self.function, self.source, self.namespace = function, source, namespace
        self.positions, self.precision = positions, precision

    def __call__(self, args: Any, kwargs: Any, before: tuple[Any, ...]) -> list[Tensor]:
        """Return the results with history."""
        import adjoint as torch

        namespace = dict(self.namespace)
        compile_source(self.source, "<adjoint conditions>", namespace)
        now = namespace["run"](args, kwargs)
        if type(now) is not tuple or not all(map(is_same, now, before)):
            raise RuntimeError(
                "this gradient needs a compiled function again, but what the function reads has changed; call it without "
                "torch.compile"
            )
        with torch.enable_grad(), torch.autocast("cpu", self.precision, self.precision is not None):
            found = tensors_of(self.function(*args, **kwargs))
        return [found[position] for position in self.positions]


def again_source(
    function: Any,
    source: Source,
    given: Iterable[Any],
    watched: list[str],
    conditions: list[str],
    positions: list[int],
    precision: Any,
) -> str:
    """Return the source of `again`, whose `conditions` are the lines that test what the function reads.

    The versions of the tensors in `watched` are tested elsewhere. The elements of containers, and gradients, may be replaced.
    """
    reads = []
    for each in given:
        is_argument = each.kind == "argument"
        place = each.source if is_argument else f"{source.tensor(each.source)}{'._grad' * (each.kind == 'grad')}"
        is_replaceable = each.kind == "grad" or (is_argument and place.count("[") > 1)
        reads += [f"{place}, "] if is_replaceable else []
        reads += [] if place in watched else [f"{place}._counter and {place}._counter[0], "]
    now = f"({''.join(reads)})"
    lines = "\n".join([*conditions, f"    return {now}"])
    again = source.constant(Again(function, lines, source.namespace, positions, precision))
    return f"({again}, args, kwargs, {now})"


def is_same(one: Any, other: Any) -> bool:
    """Return whether two values are the same tensor or the same version.

    A version is 0 initially, or None if nothing counts versions.
    """
    return one is other or (type(one) is not Tensor and type(other) is not Tensor and (one or 0) == (other or 0))


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
    `again` and `reach`. It is None if the graph has been freed.
    """
    node = new_node()
    node._hooks, node._sequence, (node._code, node._lasti) = None, next(sequence_numbers), origin
    array = roots[0]._array
    node._grad_shape, node._grad_dtype = array.shape, array.dtype
    if kept is None:
        node._edges, node.saved = (), None
    else:
        node.saved, node.function, node.targets, watched, node.again, node.reach = kept
        node._edges = tuple(map(edge_of, node.targets))
        node.watched = [(tensor, shared_counter(tensor)[0]) for tensor in watched] if watched else watched
    if len(roots) == 1:
        roots[0]._edge = node, 0
        return
    node._grad_shape = [root._array.shape for root in roots]
    node._grad_dtype = [root._array.dtype for root in roots]
    for number, root in enumerate(roots):
        root._edge = (node, number)


def gradients_of(
    tracer: Tracer, roots: list[Tensor], places: dict[int, str]
) -> tuple[list[tuple[str, Tensor, frozenset[int]]], bool]:
    """Append the backward of `roots` to the program.

    Return the inputs that get gradients, with the results that depend on them, and whether the graph has been freed.
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
            reach = reach_of(roots, ends)
    except RuntimeError as error:
        if "second time" not in str(error):
            raise Stop(f"the backward fails: {error}") from error
        del program.instructions[position:]
        program.seeds = []
        return [], True
    if tracer.reason is not None:
        raise Stop(tracer.reason)
    used = [each for each in zip(targets, found, reach, strict=True) if each[1] is not None]
    program.gradients = [tracer.known(grad._array) for _, grad, _ in used]
    return [(places.get(id(target), ""), target, from_roots) for target, _, from_roots in used], False


def reach_of(roots: list[Tensor], ends: list[Tensor]) -> list[frozenset[int]]:
    """Return, for each end of a graph, the numbers of the roots that reach it."""
    reached: dict[int, set[int]] = {id(end): set() for end in ends}
    for number, root in enumerate(roots):
        edges, seen = [edge_of(root)], set()
        for edge in edges:  # the list grows during the loop
            if type(edge) is tuple and id(edge[0]) not in seen:
                seen.add(id(edge[0]))
                edges += edge[0]._edges
            elif id(edge) in reached:
                reached[id(edge)].add(number)
    return [frozenset(reached[id(end)]) for end in ends]


@contextmanager
def ending_at(targets: list[Tensor], roots: list[Tensor]) -> Iterator[list[Tensor]]:
    """A context in which the graph of `roots` ends at leaves in place of `targets`.

    It yields these leaves, one for each target.
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
