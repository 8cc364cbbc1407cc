"""The calls of modules that recorded the nodes of a graph, as `Module.__call__` notes them, and the names of the modules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..sequence import module_calls
from .names import Names, is_module


@dataclass(slots=True)
class Call:
    """One call of a module: it recorded the nodes with numbers between `first` and `last`."""

    module: Any
    first: int
    last: int
    parent: Call | None = None
    path: str = ""

    @property
    def label(self) -> str:
        """The path and the class of the module."""
        name = type(self.module).__name__
        return f"{self.path} ({name})" if self.path else name


def calls_of(numbers: Sequence[int]) -> list[Call]:
    """The calls that recorded the nodes with these sequence numbers (ascending), outer calls first.

    If two threads recorded at the same time, no call says which nodes are its own, and there are none.
    """
    if not numbers:
        return []
    calls: list[Call] = []
    for reference, first, last in sorted(module_calls.copy(), key=lambda note: (note[1], -note[2])):
        if last < numbers[0] or first > numbers[-1] or not _recorded(numbers, first, last):
            continue
        module = reference()
        if module is not None:
            calls.append(Call(module, first, last))
    around: list[Call] = []
    for call in calls:
        while around and around[-1].last < call.first:
            around.pop()
        if around and around[-1].last < call.last:
            return []
        call.parent = around[-1] if around else None
        around.append(call)
    return calls


def _recorded(numbers: Sequence[int], first: int, last: int) -> bool:
    place = bisect_right(numbers, first)
    return place < len(numbers) and numbers[place] < last


def places(numbers: Sequence[int], calls: Sequence[Call]) -> list[Call | None]:
    """The innermost call that recorded each node."""
    found: list[Call | None] = []
    around: list[Call] = []
    waiting = iter(calls)
    following = next(waiting, None)
    for number in numbers:
        while following is not None and following.first < number:
            around.append(following)
            following = next(waiting, None)
        while around and around[-1].last < number:
            around.pop()
        found.append(next((call for call in reversed(around) if call.last > number), None))
    return found


def name_models(names: Names, calls: Sequence[Call], leaves: Iterable[Any], variables: dict[str, Any]) -> None:
    """Name the modules that ran and the parameters in the graph, and set the path of each call.

    The models are `names.model` if it is given, else those among the caller's variables that belong to the graph, else the
    outermost modules that ran. Of one model with parameters the names are those of its `named_parameters`; of several, they
    begin with the variable or the class of the model.
    """
    models = _models(names, calls, leaves, variables)
    with_state = [model for _, model in models if _has_state(model)]
    taken: set[str] = set()
    for title, model in models:
        prefix = ""
        if len(with_state) > 1 or (with_state and model is not with_state[0]):
            prefix = word = title or type(model).__name__
            while prefix in taken:
                prefix = f"{word}_{len(taken)}"
            taken.add(prefix)
        names.add_module(model, prefix, title or "")
    for call in calls:
        call.path = names.paths.get(id(call.module), "")


def _models(
    names: Names, calls: Sequence[Call], leaves: Iterable[Any], variables: dict[str, Any]
) -> list[tuple[str | None, Any]]:
    used = {id(call.module) for call in calls} | {id(leaf) for leaf in leaves}
    named: dict[int, tuple[str | None, Any]] = {}
    for name, value in variables.items():
        if is_module(value) and not name.startswith("_") and name != "self":
            named.setdefault(id(value), (name, value))
    if names.model is not None:
        found = [named.get(id(names.model), (None, names.model))]
    else:
        inner = {id(part) for _, model in named.values() for part in model.modules() if part is not model}
        found = [pair for key, pair in named.items() if key not in inner and _is_used(pair[1], used)]
    known = {id(part) for _, model in found for part in model.modules()}
    for call in calls:
        if call.parent is None and id(call.module) not in known:
            found.append(named.get(id(call.module), (None, call.module)))
            known |= {id(part) for part in call.module.modules()}
    return found


def _is_used(model: Any, used: set[int]) -> bool:
    return any(id(part) in used for part in (*model.modules(), *model.parameters()))


def _has_state(model: Any) -> bool:
    return next(iter(model.parameters()), None) is not None
