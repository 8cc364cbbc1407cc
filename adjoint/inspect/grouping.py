"""Groups of nodes that can be shown as one box: modules, functions, blocks, and repetitions.

A group contains consecutively recorded nodes. All edges between two groups therefore have the same direction, and a
picture with folded groups has no cycles.
"""

from __future__ import annotations

import re
from collections.abc import Container, Hashable, Mapping, Sequence
from itertools import count
from math import isqrt
from types import CodeType
from typing import Any, Literal, NamedTuple

from .model import Group, NodeBox, Snapshot
from .modules import Call

LONGEST = 4096
"""The longest period in the search for repetitions."""

CANDIDATES = 4
LEAST_TIMES = 3
LARGE = 8
"""Parts with at least this many nodes are folded even if there are only two equal parts."""


class Code(NamedTuple):
    """The instruction that recorded a node."""

    code: CodeType | None
    lasti: int


class Repeat(NamedTuple):
    """A repetition of `times` parts with `period` items each, starting at `start`."""

    start: int
    period: int
    times: int


def repeats(signatures: Sequence[Hashable], sizes: Sequence[int], longest: int = LONGEST) -> list[Repeat]:
    """Return the repetitions in a list of items, from left to right.

    Args:
        signatures: the signatures of the items. Items with equal signatures are equal.
        sizes: the number of nodes in each item.
        longest: the longest period to search for.

    >>> repeats("abababc", [1] * 7)
    [Repeat(start=0, period=2, times=3)]
    """
    following = _next_of_the_same(signatures)
    count, start = len(signatures), 0
    found = []
    while start < count:
        best = None
        other = start
        for _ in range(CANDIDATES):
            other = following[other]
            period = other - start
            if other >= count or period > longest:
                break
            matching = other
            while matching < count and signatures[matching] == signatures[matching - period]:
                matching += 1
            times = (matching - start) // period
            if times >= LEAST_TIMES or (times == 2 and sum(sizes[start:other]) >= LARGE):
                best = Repeat(start, period, times)
                break
        if best is None:
            start += 1
        else:
            found.append(best)
            start += best.period * best.times
    return found


def _next_of_the_same(signatures: Sequence[Hashable]) -> list[int]:
    """Return, for each item, the position of the next equal item, or the length of the list."""
    last: dict[Hashable, int] = {}
    following = [len(signatures)] * len(signatures)
    for index in range(len(signatures) - 1, -1, -1):
        following[index] = last.get(signatures[index], len(signatures))
        last[signatures[index]] = index
    return following


MOST_ITEMS = 240
"""A group with more items is divided into blocks."""


class Part:
    """A group under construction. Its items are nodes and other parts, in the order of recording."""

    __slots__ = ("items", "kind", "label", "path", "signature", "size", "times")

    def __init__(
        self, kind: Literal["module", "block", "repeat"], label: str, path: tuple[str, ...] = (), items: Any = ()
    ) -> None:
        self.kind = kind
        self.label = label
        self.path = path
        self.items: list[Part | NodeBox] = list(items)
        self.times = 1
        self.signature: Hashable = None
        self.size = 0


def group(
    picture: Snapshot, codes: Sequence[Code], calls: Sequence[Call | None], arguments: Container[str | None] = ()
) -> None:
    """Set the modules of the nodes and the groups of `picture`.

    Args:
        codes, calls: the code and the innermost module call that recorded each node (except `AccumulateGrad`), in
            order.
        arguments: the `AccumulateGrad` nodes of leaves that are arguments of models. They are outside modules.
    """
    nodes = [node for node in picture.nodes if not node.accumulate]
    for node, call in zip(nodes, calls, strict=True):
        node.module = None if call is None else call.path or call.kind
    whole = _calls(nodes, calls) if any(calls) else _functions(nodes, codes)
    signatures = _Signatures(nodes, codes, {each.node: each.name for each in picture.operations})
    _tidy(whole)
    _fold(whole, signatures)
    _divide(whole)
    _emit(whole, picture, arguments)


# --- modules and functions ----------------------------------------------------------------------------------------


def _calls(nodes: Sequence[NodeBox], calls: Sequence[Call | None]) -> Part:
    """Return the nodes in nested parts, with one part for each module call that recorded nodes."""
    whole = Part("block", "")
    parts: dict[int, Part] = {}

    def part_of(call: Call | None) -> Part:
        if call is None:
            return whole
        part = parts.get(id(call))
        if part is None:
            part = parts[id(call)] = Part("module", call.label, tuple(call.path.split(".")))
            part_of(call.parent).items.append(part)
        return part

    for node, call in zip(nodes, calls, strict=True):
        part_of(call).items.append(node)
    return whole


def _functions(nodes: Sequence[NodeBox], codes: Sequence[Code]) -> Part:
    """Group the nodes by the function whose line recorded them.

    The function that contains the last node, and therefore all nodes, forms no group.
    """
    whole = Part("block", "")
    outermost = codes[-1].code if codes else None
    latest: CodeType | None = None
    for node, (code, _) in zip(nodes, codes, strict=True):
        if code is None or code is outermost:
            whole.items.append(node)
        else:
            name = _function(code)
            if code is not latest and not (latest is not None and _function(latest) == name):
                whole.items.append(Part("block", name, (name,)))
            part = whole.items[-1]
            assert isinstance(part, Part)
            part.items.append(node)
        latest = None if code is outermost else code
    return whole


_COMPREHENSION = re.compile(r"\.<locals>\.<(genexpr|(list|set|dict)comp)>")


def _function(code: CodeType) -> str:
    """Return the name of a function. For a comprehension, return the name of the enclosing function."""
    return _COMPREHENSION.sub("", code.co_qualname)


def _tidy(part: Part) -> None:
    """Remove parts that hold a single item, except the parts of modules."""
    for index, item in enumerate(part.items):
        if isinstance(item, Part):
            _tidy(item)
            if len(item.items) == 1 and item.kind != "module":
                part.items[index] = item.items[0]


# --- repetitions --------------------------------------------------------------------------------------------------


class _Signatures:
    """Signatures of items and their names.

    Signatures are numbers. Two signatures are equal if names, lines and inner structures are equal.
    """

    def __init__(self, nodes: Sequence[NodeBox], codes: Sequence[Code], operations: Mapping[str | None, str]) -> None:
        self.operations = operations
        self.numbers: dict[Hashable, int] = {}
        self.of_nodes = {
            id(node): self.number((node.name, id(code.code), code.lasti))
            for node, code in zip(nodes, codes, strict=True)
        }

    def number(self, key: Hashable) -> int:
        return self.numbers.setdefault(key, len(self.numbers))

    def of(self, item: Part | NodeBox) -> Hashable:
        """Return the signature of an item. The signature of a part is computed once, after its content has been folded."""
        if not isinstance(item, Part):
            return self.of_nodes[id(item)]
        if item.signature is None:
            label = _general(item.path[-1] if item.path else item.label)
            inside = tuple(map(self.of, item.items)) if item.kind != "repeat" else (self.of(item.items[0]), item.times)
            item.signature = self.number((item.kind, label, inside))
            item.size = sum(each.size if isinstance(each, Part) else 1 for each in item.items)
        return item.signature

    def name(self, item: Part | NodeBox) -> str:
        """Return the label of a part, or the name of a node's operation."""
        return item.label if isinstance(item, Part) else self.operations.get(item.id, item.name)


def _general(label: str) -> str:
    """Return a label that is the same for all modules of a list. The path in the label has no numbers.

    The number in the name of the class remains.
    """
    return re.sub(r"\d+(?![^(]*\)$)", "#", label)


def _fold(part: Part, signatures: _Signatures) -> None:
    """Fold consecutive repetitions into separate parts, starting with the innermost."""
    for item in part.items:
        if isinstance(item, Part):
            _fold(item, signatures)
    longest = 1  # short periods first, to find a loop within a loop
    while longest <= min(2 * len(part.items), LONGEST):
        marks = [signatures.of(item) for item in part.items]
        sizes = [item.size if isinstance(item, Part) else 1 for item in part.items]
        found = repeats(marks, sizes, longest)
        if not found or (len(found) == 1 and _is_all(found[0], part)):
            longest *= 2
            continue
        items: list[Part | NodeBox] = []
        end = 0
        for each in found:
            items += part.items[end : each.start]
            end = each.start + each.period * each.times
            items.append(_repeated(part.items[each.start : end], each, signatures))
        part.items = items + part.items[end:]


def _is_all(found: Repeat, part: Part) -> bool:
    """Return whether `part` contains only the repetition, and is already marked as a repetition."""
    return part.kind == "repeat" and found.period * found.times == len(part.items)


def _repeated(items: list[Part | NodeBox], found: Repeat, signatures: _Signatures) -> Part:
    names = [signatures.name(item) for item in items]
    shared = [
        _general(name) if isinstance(item, Part) and any(item.path) else name
        for name, item in zip(names, items[: found.period], strict=False)
    ]
    part = Part("repeat", _summary(shared), items=items)
    part.times = found.times
    if found.period > 1:
        rounds = [slice(start, start + found.period) for start in range(0, len(items), found.period)]
        part.items = [Part("block", _summary(names[each]), items=items[each]) for each in rounds]
    return part


def _summary(names: Sequence[str]) -> str:
    """Return a name for several items: the names of the first few. Module classes appear only if there is a single item."""
    words = [re.sub(r" \(\w+\)$", "", name) for name in names] if len(names) > 1 else names
    return ", ".join(words[:3]) + (", …" if len(names) > 3 else "")


def _divide(part: Part) -> None:
    """Divide parts with very many items into blocks, and large blocks again."""
    for item in part.items:
        if isinstance(item, Part):
            _divide(item)
    total, span = len(part.items), 1
    while len(part.items) > MOST_ITEMS:
        step = isqrt(len(part.items))
        span *= step
        blocks: list[Part | NodeBox] = []
        for start in range(0, len(part.items), step):
            first = span * (start // step) + 1
            label = f"{first} to {min(first + span - 1, total)} of {total}"
            blocks.append(Part("block", label, items=part.items[start : start + step]))
        part.items = blocks


# --- the result ---------------------------------------------------------------------------------------------------


def _emit(whole: Part, picture: Snapshot, arguments: Container[str | None]) -> None:
    """Write the parts as groups, outer parts first. A leaf belongs to the innermost group that contains all its users."""
    home: dict[str, Group] = {}
    depths: dict[str, int] = {}
    groups: dict[str, Group] = {}
    numbers = count(1)
    stack: list[tuple[Part, Group | None]] = [(whole, None)]
    while stack:
        part, own = stack.pop()
        inner: list[tuple[Part, Group | None]] = []
        for item in part.items:
            if isinstance(item, Part):
                made = Group(
                    f"g{next(numbers)}", item.label, item.kind, own.id if own is not None else None, [], item.times
                )
                depths[made.id] = depths[own.id] + 1 if own else 0
                groups[made.id] = made
                picture.groups.append(made)
                inner.append((item, made))
            elif own is not None:
                own.nodes.append(item.id)
                home[item.id] = own
        stack.extend(reversed(inner))
    users: dict[str, list[Group | None]] = {}
    for node in picture.nodes:
        for target, _ in node.next:
            if target is not None:
                users.setdefault(target, []).append(home.get(node.id))
    for node in picture.nodes:
        if node.accumulate:
            place = _around(users.get(node.id, []), groups, depths)
            outer = place
            while outer is not None:
                parent = groups[outer.parent] if outer.parent else None
                if outer.kind == "module" and node.id in arguments:
                    place = parent
                outer = parent
            if place is not None:
                place.nodes.append(node.id)


def _around(places: list[Group | None], groups: dict[str, Group], depths: dict[str, int]) -> Group | None:
    """Return the innermost group that contains all `places`."""
    if not places:
        return None
    here = places[0]
    for other in places[1:]:
        while here is not other:
            if here is None or other is None:
                return None
            if depths[here.id] >= depths[other.id]:
                here = groups[here.parent] if here.parent else None
            else:
                other = groups[other.parent] if other.parent else None
    return here
