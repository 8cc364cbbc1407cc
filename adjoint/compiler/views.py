"""Results that are views of an argument, of an outside tensor, or of another result. Operators create them from these tensors."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from ..tape.edges import edge_of
from ..tensor import Tensor
from .program import Constant, Program
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


def chain(program: Program, tracer: Tracer, view: Tensor, base: Tensor) -> list[int]:
    """Return the numbers of the views that instructions create one from another, from `base` to `view`.

    Raises:
        Stop: if other operators than views, or another history, lie between them.
    """
    number, end = tracer.values.get(id(view._array)), tracer.values.get(id(base._array))
    made = {result: each for each in program.instructions[: program.boundary] for result in each.results}
    edge, found = edge_of(view), list[Any]()
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
        found.insert(0, number)
        number = each.operands[0].number
    if not found or number != end or not is_same(edge, edge_of(base)) or view.is_inference():
        raise Stop("a result has the memory of an argument or of another result")
    return found


def is_same(edge: Any, other: Any) -> bool:
    """Return whether two edges are equal."""
    if type(edge) is tuple and type(other) is tuple:
        return edge[0] is other[0] and edge[1] == other[1]
    return edge is other


class Tail(NamedTuple):
    """The lines that create the results. `views`: the arguments of `source_of` for the results that are views."""

    first: list[str]
    views: list[tuple[list[int], str]]
    last: list[str]

    def lines(self, program: Program, source: Any) -> list[str]:
        """Return the lines for a program at some sizes."""
        views = [f"w{position} = {source_of(program, source, *each)}" for position, each in enumerate(self.views)]
        return [*self.first, *views, *self.last]


def source_of(program: Program, source: Any, numbers: list[int], place: str) -> str:
    """Return the source that creates views one from another. `place`: the source of the base of the first."""
    made = {result: each for each in program.instructions[: program.boundary] for result in each.results}
    for number in numbers:
        each = made[number]
        given = [place, *map(source.operand, each.operands[1:])]
        place = f"{source.constant(each.kernel.function)}({', '.join(given)})"
        place += f"[{each.results.index(number)}]" if each.several else ""
    return place
