"""Results that are views of an argument, of an outside tensor, or of another result. Operators create them from these tensors."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..tape.edges import edge_of
from ..tensor import Tensor
from .program import Constant, Instruction, Program
from .tracer import Stop, Tracer


def bases_of(outputs: list[Tensor], inputs: list[Tensor]) -> dict[int, Tensor]:
    """Return the bases that an output shares with an input, a base of an input, or another output, by the identity of the output.

    Raises:
        Stop: if an input is a view of the same base.
    """
    counts = Counter(id(each._base) for each in outputs)
    given = {id(each) for each in [*inputs, *outputs]}
    if any(each._base is not None and any(each._base is other._base for other in inputs) for each in outputs):
        raise Stop("a result is a view of the memory of an argument that is a view")
    return {
        id(each): each._base
        for each in outputs
        if each._base is not None and (id(each._base) in given or counts[id(each._base)] > 1)
    }


def chain(program: Program, tracer: Tracer, view: Tensor, base: Tensor) -> list[Instruction]:
    """Return the instructions that create a view of `base`.

    Raises:
        Stop: if other operators than views, or another history, lie between them.
    """
    number, end = tracer.values.get(id(view._array)), tracer.values.get(id(base._array))
    made = {result: each for each in program.instructions[: program.boundary] for result in each.results}
    edge, found = edge_of(view), list[Instruction]()
    while number != end:
        each = made.get(number)
        if each is None or not each.is_view or each.kernel is None or each.kernel.keyword_only:
            break
        if edge is not None:
            if type(edge) is not tuple or type(edge[0]) is not each.kernel.node_class:
                break
            edge = edge[0]._edges[0]
        if not all(isinstance(other, Constant) for other in each.operands[1:]):
            break
        found.insert(0, each)
        number = each.operands[0].number
    if not found or number != end or not is_same(edge, edge_of(base)) or view.is_inference():
        raise Stop("a result has the memory of an argument or of another result")
    return found


def is_same(edge: Any, other: Any) -> bool:
    """Return whether two edges are equal."""
    if type(edge) is tuple and type(other) is tuple:
        return edge[0] is other[0] and edge[1] == other[1]
    return edge is other


def source_of(program: Program, tracer: Tracer, source: Any, view: Tensor, base: Tensor, place: str) -> str:
    """Return the source that creates a view. `place`: the source of its base."""
    instructions = chain(program, tracer, view, base)
    numbers = [each.operands[0].number for each in instructions[1:]] + [tracer.values[id(view._array)]]
    for each, number in zip(instructions, numbers, strict=True):
        given = [place, *map(source.operand, each.operands[1:])]
        place = f"{source.constant(each.kernel.function)}({', '.join(given)})"
        place += f"[{each.results.index(number)}]" if each.several else ""
    return place
