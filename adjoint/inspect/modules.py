"""The module that created each node, derived from parameters, code objects and the order of operations.

A node that takes a parameter belongs to the module of the parameter. The code that created a node is often the
`forward` of a module class with many instances: the parameters that the same call has used determine the instance. A
remaining node belongs to the common module of the nodes before and after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import Any, NamedTuple

from .names import Names


class Place(NamedTuple):
    """The code position and the operation of a node, and the names of each parameter it takes (there may be several names)."""

    code: CodeType | None
    lasti: int
    operation: str
    parameters: list[list[str]]


def modules_of(places: Sequence[Place], names: Names) -> list[str]:
    """The path of the module that created each node, in the order of creation; empty for none."""
    owners = [_owner(place, names) for place in places]
    found: list[str | None] = list(owners)
    _fill_calls(places, owners, found)
    _fill_forwards(places, owners, found, names)
    return _filled(found)


def ancestors(path: str) -> list[str]:
    """`path` and the paths of the enclosing modules, the innermost first, the model itself (an empty path) last."""
    parts = path.split(".") if path else []
    return [".".join(parts[:count]) for count in range(len(parts), -1, -1)]


def common(first: str, second: str) -> str:
    """The innermost module that contains both paths."""
    if first == second:
        return first
    parts = []
    for one, other in zip(first.split("."), second.split("."), strict=False):
        if one != other:
            break
        parts.append(one)
    return ".".join(parts)


def _owner(place: Place, names: Names) -> str | None:
    """The module whose parameters the node takes."""
    module = None
    for alternatives in place.parameters:
        path = alternatives[0].rpartition(".")[0]
        if len(alternatives) > 1:
            path = _likely([name.rpartition(".")[0] for name in alternatives], place.operation, names)
        module = path if module is None else common(module, path)
    return module


def _likely(paths: list[str], operation: str, names: Names) -> str:
    """Of the modules that share a parameter, the one whose class has the name of the operation, else the first."""
    matrix_product = operation in ("mm", "addmm", "t", "transpose", "matmul", "bmm")
    wanted = "linear" if matrix_product else operation.replace("_", "")
    return next((path for path in paths if wanted in names.classes.get(path, "").lower()), paths[0])


def _fill_calls(places: Sequence[Place], owners: list[str | None], found: list[str | None]) -> None:
    """Nodes of one call of a library module, such as `self.layers(x)`: all consecutive nodes of one instruction."""
    start = 0
    for end in range(1, len(places) + 1):
        here = places[start]
        if end < len(places) and places[end].code is here.code and places[end].lasti == here.lasti:
            continue
        owned = [owner for owner in owners[start:end] if owner is not None]
        if owned and len(owned) < end - start:
            before, rest = None, iter(owned)
            after = next(rest, None)
            for index in range(start, end):
                if owners[index] is not None:
                    before, after = after, next(rest, None)
                elif before is None or after is None:
                    found[index] = before if after is None else after
                else:
                    found[index] = common(before, after)
        start = end


def _fill_forwards(places: Sequence[Place], owners: list[str | None], found: list[str | None], names: Names) -> None:
    """Nodes that the code of a module class created: in a call that used a parameter, the parameter determines the instance."""
    by_code: dict[int, list[int]] = {}
    for index, place in enumerate(places):
        if place.code is not None:
            by_code.setdefault(id(place.code), []).append(index)
    neighbours = _neighbours(owners)
    for indices in by_code.values():
        instances = _instances(places[indices[0]].code, names)
        current: str | None = None
        waiting: list[int] = []
        last = (-1, -1)
        for index in indices:
            lasti, owner = places[index].lasti, owners[index]
            of = None if owner is None else _instance(places[index], owner, instances, names)
            if of is not None:
                for each in waiting:
                    found[each] = of
                waiting, current = [], of
            elif found[index] is None:
                if lasti < last[0] or (lasti == last[0] and index != last[1] + 1):
                    current = None  # back to the beginning: another call, or the next iteration of a loop
                if current is None:
                    waiting.append(index)
                else:
                    found[index] = current
            last = (lasti, index)
        if instances:
            for index in waiting:
                found[index] = _beside(neighbours[index], instances)


def _instances(code: Any, names: Names) -> frozenset[str]:
    """The modules of the class that `code` is a method of."""
    if id(code) in names.forwards:
        return frozenset(names.forwards[id(code)])
    name = code.co_qualname.rpartition(".")[0].rpartition(".")[2]
    return frozenset(path for path, cls in names.classes.items() if cls == name) if name else frozenset()


def _instance(place: Place, owner: str, instances: frozenset[str], names: Names) -> str | None:
    """The module whose method used a parameter of the module `owner`."""
    if instances:
        return next((path for path in ancestors(owner) if path in instances), None)
    if names.classes or place.code is None or "." not in place.code.co_qualname:
        return None
    parts = place.parameters[0][0].split(".")
    for count in range(len(parts) - 1, -1, -1):
        if parts[count] in place.code.co_names:  # `self.attention(x)`, `self.weight`
            return ".".join(parts[:count])
    return None


def _beside(neighbours: tuple[str | None, str | None], instances: frozenset[str]) -> str | None:
    """The one of `instances` nearest to the modules of the parameters that were used last before and first after."""
    best: str | None = None
    depth = -1
    parents: dict[str, str] = {}
    for path in sorted(instances, reverse=True):
        parents[path.rpartition(".")[0]] = path
    for around in neighbours:
        for path in ancestors(around) if around is not None else ():
            candidate = path if path in instances else parents.get(path)
            if candidate is not None:
                if path.count(".") > depth:
                    best, depth = candidate, path.count(".")
                break
    return best


def _neighbours(found: Sequence[str | None]) -> list[tuple[str | None, str | None]]:
    """For each node, the last known path before it and the first known path after it."""
    following: list[str | None] = []
    after: str | None = None
    for own in reversed(found):
        following.append(after)
        after = after if own is None else own
    before: str | None = None
    result = []
    for own, after in zip(found, reversed(following), strict=True):
        result.append((before, after))
        before = before if own is None else own
    return result


def _filled(found: list[str | None]) -> list[str]:
    """The paths; a node without one gets the common path of its neighbours."""
    return [
        own if own is not None else "" if before is None or after is None else common(before, after)
        for own, (before, after) in zip(found, _neighbours(found), strict=True)
    ]
