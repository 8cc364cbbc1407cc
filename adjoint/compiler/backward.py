"""The backward of a compiled function: one node, which runs a captured backward, and the capture of a backward."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import FunctionType
from typing import Any

import numpy

from ..dispatch.source import compile_source
from ..tape.edges import edge_of
from ..tape.node import FREED_MESSAGE, Node, sequence_numbers
from ..tape.versions import shared_counter
from ..tensor import LEAF, Tensor, as_array, wrap
from .buffers import Buffers
from .dims import Numbers, at
from .native import Empty, fused
from .objects import compile_deferred
from .program import Instruction, Program, Source, numbers_in, used
from .symbols import is_record
from .tracer import Stop, Tracer


class CompiledFunctionBackward(Node):
    """The node that computes the gradients of all inputs of a compiled function from the values that its forward has saved.

    `saved`: the saved values, or None after they have been freed. `watched`: the tensors to which the values belong, with their
    versions. `again`: an `Again`, its arguments, the versions of its inputs, and how things were before the effects of the call,
    for second derivatives, or None if an effect cannot be undone.
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
        if saved and not retain_graph:
            self.saved = None
        results: tuple[Any, ...] = self.function(saved, [None if each is None else as_array(each) for each in grads])
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
        again, *given = self.again
        grads = grad if type(self._grad_shape) is list else [grad]
        pairs = [(root, each) for root, each in zip(again(*given), grads, strict=True) if each is not None]
        roots = [root for root, _ in pairs]
        with ending_at(self.targets, roots) as ends:  # an argument may depend on another target
            return torch.autograd.grad(
                roots, ends, [each for _, each in pairs], create_graph=torch.is_grad_enabled(), allow_unused=True
            )


class Gradients:
    """Computes the gradients of a program's inputs: a function for each set of results without a gradient.

    Such a function lacks the instructions whose gradients would all be zeros, because zero times an infinite derivative
    would be NaN.
    `saved`: the values that the forward saves.
    """

    def __init__(self, program: Program, saved: list[int], source: Source) -> None:
        self.program, self.saved, self.source = program, saved, source
        self.functions: dict[tuple[int, ...], Any] = {}
        self.fixed = {*source.namespace}
        self.complete = self.written(set())

    def __call__(self, saved: list[Any], grads: list[Any]) -> tuple[Any, ...]:
        """Return the gradients for these values. A gradient that does not arrive is None."""
        absent = tuple([seed for seed, grad in zip(self.program.seeds, grads, strict=True) if grad is None])
        function = self.functions.get(absent) or self.compiled(absent)
        found: tuple[Any, ...] = function(saved, grads)
        return found

    def for_numbers(self, numbers: Numbers) -> Gradients:
        """Return the functions for other sizes."""
        new, names = copy.copy(self), self.complete.__globals__
        own = {name: at(value, numbers) for name, value in names.items() if name not in self.fixed}
        new.program, new.functions = numbers.program, {}
        new.complete = FunctionType(self.complete.__code__, {**names, **own})
        return new

    def compiled(self, absent: tuple[int, ...]) -> Any:
        """Return the function for this set of absent gradients, after its native functions have been compiled."""
        function = self.written({*absent}) if absent else self.complete
        if not compile_deferred(function.__globals__):
            function = self.written({*absent})
        self.functions[absent] = function
        return function

    def written(self, absent: set[int]) -> Any:
        """Write the function."""
        program = self.program
        instructions, zeros = without(program, absent) if absent else (program.instructions[program.boundary :], [])
        results = [each.number for each in program.gradients]
        wanted = {number for number in results if number not in absent}
        lasting = {*wanted, *self.saved, *program.seeds, *zeros}
        source = self.source.copy()
        source.run(fused(program, instructions, used(instructions, wanted), lasting), lasting, program.shapes)
        lines = [
            "def gradients(saved, grads):",
            f"    [{', '.join(f'v{number}' for number in self.saved)}] = saved",
            f"    [{', '.join(f'v{number}' for number in program.seeds)}] = grads",
            *(f"    {line}" for each in program.seeds if each not in absent for line in lay_out(program, source, each)),
            *(f"    v{number} = {zeros_source(program, source, number)}" for number in zeros),
            *(f"    {line}" for line in source.lines),
            f"    return ({''.join('None, ' if number in absent else f'v{number}, ' for number in results)})",
        ]
        return compile_source("\n".join(lines) + "\n", "<adjoint compiled backward>", source.namespace)["gradients"]


def without(program: Program, absent: set[int]) -> tuple[list[Instruction], list[int]]:
    """Return the instructions of a backward whose results are not all zeros, and the values of zeros that they read.

    `absent`: the gradients of results that do not arrive. All other zero gradients are added to this set.
    """
    later, buffers = program.instructions[program.boundary :], Buffers(program).of
    changed = {buffers.get(number) for each in later if each.changes for number in numbers_in(each.operands[:1])}
    depend, kept = set(program.seeds), []
    read_as_zeros: dict[int, None] = {}
    for each in later:
        read = depend.intersection(each.reads())
        written = [number for number in each.results if number is not None]
        if each.changes:
            targets = {buffers.get(number) for number in numbers_in(each.operands[:1])}
            written += [number for number in buffers if buffers[number] in targets]
        if read:
            depend.update(written)
        if read and read <= absent and not each.changes and changed.isdisjoint(map(buffers.get, written)):
            absent.update(written)
        elif not (read and read <= absent and each.changes):
            kept.append(each)
            read_as_zeros |= dict.fromkeys(read & absent)
    return kept, [*read_as_zeros]


def lay_out(program: Program, source: Source, number: int) -> list[str]:
    """Return the lines that give a gradient the memory layout that it had at the capture."""
    strides, _ = program.memory[number]  # type: ignore[misc]
    wanted, copied = source.constant(strides), source.constant(partial(Empty.filled, Empty(program, number)))
    return [f"if v{number}.strides != {wanted}:", f"    v{number} = {copied}(v{number})"]


def zeros_source(program: Program, source: Source, number: int) -> str:
    """Return the source of an array of zeros with the memory layout that a value had at the capture."""
    (shape, dtype), (strides, _) = program.shapes[number], program.memory[number]  # type: ignore[misc]
    return f"{source.constant(partial(zeros, shape, dtype, strides))}()"


def zeros(shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...]) -> Any:
    """Return an array of zeros with these strides."""
    steps = [step * (size - 1) for step, size in zip(strides, shape, strict=True) if size]
    before = -sum(step for step in steps if step < 0)
    kind = numpy.dtype(dtype)
    elements = numpy.zeros((before + sum(step for step in steps if step > 0)) // kind.itemsize + 1, kind)
    return numpy.ndarray(shape, kind, elements, before, strides)


new_node: Any = partial(object.__new__, CompiledFunctionBackward)


def tensors_of(result: Any) -> list[Tensor]:
    """Return the tensors in a nested result, in order."""
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, dict) or is_record(result):
        result = list((result if isinstance(result, dict) else vars(result)).values())
    return [each for item in result for each in tensors_of(item)] if isinstance(result, (list, tuple)) else []


def attach(roots: list[Tensor], origin: tuple[Any, int], kept: tuple[Any, ...] | None = None) -> None:
    """Make one node the history of `roots`, the results of a compiled function.

    `origin`: the instruction of the user's code that created the first root when the function was captured. `kept`: the
    saved values, the function that computes gradients, the targets (the node gets their edges), the watched tensors and
    `again`. `kept` is None if the graph has been freed.
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
    """Append the backward of `roots`. Return the inputs that get gradients, and whether the graph has been freed."""
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
    except Exception as error:  # eager code raises it in a backward, if there is one
        if "second time" not in str(error):
            raise Stop(f"the backward fails: {error}") from error
        del program.instructions[position:]
        program.seeds = []
        return [], True
    if tracer.reason is not None:
        raise Stop(tracer.reason)
    reached = [each for each in zip(targets, found, strict=True) if each[1] is not None]
    program.gradients = [tracer.known(grad._array) for _, grad in reached]
    return [(places.get(id(target), ""), target) for target, _ in reached], False


@contextmanager
def ending_at(targets: list[Tensor], roots: list[Tensor]) -> Iterator[list[Tensor]]:
    """A context in which the graph of `roots` ends at leaves in place of `targets`. It yields the leaves."""
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
