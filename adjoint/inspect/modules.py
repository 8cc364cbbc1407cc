"""The recorded module calls in which the nodes of a graph were recorded, and the names of the modules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._runtime.sequence import MAIN_THREAD, module_calls, recording
from .._runtime.tracebacks import warn
from .names import Names, is_module


@dataclass(slots=True)
class Call:
    """One call of a module.

    The call recorded the nodes with numbers between `first` and `last`, or only the nodes in `own`.

    `module` is None if the module no longer exists.
    """

    module: Any
    kind: str
    first: int
    last: int
    parent: Call | None = None
    path: str = ""
    own: frozenset[int] | None = None

    @property
    def label(self) -> str:
        """Return the path and the class of the module."""
        return f"{self.path} ({self.kind})" if self.path else self.kind


def calls_of(following: Mapping[int, Sequence[int]]) -> list[Call]:
    """Return the calls that recorded the nodes of a graph, with outer calls first.

    Args:
        following: the sequence number of each node, and the numbers of the nodes that follow it in backward.
    """
    numbers = sorted(following)
    if not numbers:
        return []
    notes = [
        note
        for note in sorted(module_calls.copy(), key=lambda note: (note[2], -note[3]))
        if note[3] >= numbers[0] and note[2] <= numbers[-1] and _recorded(numbers, note[2], note[3])
    ]
    shared = any(note[4] is not None for note in notes)
    calls: list[Call] = []
    around: dict[int | None, list[Call]] = {}
    for reference, kind, first, last, place in notes:
        call = Call(reference(), kind, first, last)
        outer = around.setdefault(place[0] if place else MAIN_THREAD, [])
        while outer and outer[-1].last < first:
            outer.pop()
        if shared:
            call.own = frozenset(numbers) if place is None else _leading(place[1], following, first, last)
            if not call.own:
                continue
        call.parent = outer[-1] if outer else None
        outer.append(call)
        calls.append(call)
    return calls


def _recorded(numbers: Sequence[int], first: int, last: int) -> bool:
    place = bisect_right(numbers, first)
    return place < len(numbers) and numbers[place] < last


def _leading(results: Iterable[int], following: Mapping[int, Sequence[int]], first: int, last: int) -> frozenset[int]:
    """Return the nodes with numbers between `first` and `last` that lead to the results of a call."""
    waiting, found = [number for number in results if number in following], set()
    while waiting:
        number = waiting.pop()
        if first < number < last and number not in found:
            found.add(number)
            waiting.extend(following.get(number, ()))
    return frozenset(found)


def places(numbers: Sequence[int], calls: Sequence[Call]) -> list[Call | None]:
    """Return the innermost call that recorded each node. The nodes must be in the order of their numbers."""
    found: list[Call | None] = []
    around: list[Call] = []
    waiting = iter(calls)
    following = next(waiting, None)
    for number in numbers:
        while following is not None and following.first < number:
            around.append(following)
            following = next(waiting, None)
        around = [call for call in around if call.last > number] if around and calls[0].own is not None else around
        while around and around[-1].last < number:
            around.pop()
        held = (call for call in reversed(around) if call.last > number and (call.own is None or number in call.own))
        found.append(next(held, None))
    return found


def warn_of_calls_before_notes(numbers: Sequence[int], leaves: Iterable[Any]) -> None:
    """Warn if modules may have recorded nodes of a graph before calls were recorded. `numbers` are the numbers of these nodes."""
    if recording.began is None or not numbers or min(numbers) > recording.began:
        return
    if any(getattr(leaf, "_is_param", False) for leaf in leaves):
        warn(
            "The modules that computed this graph are not known, because they ran before adjoint.inspect was imported. "
            "Import it at the beginning of the program, and pictures show the calls of modules as frames."
        )


def name_models(names: Names, calls: Sequence[Call], leaves: Iterable[Any], variables: dict[str, Any]) -> None:
    """Name the modules that ran and the parameters in the graph, and set the path of each call.

    The models are `names.model` if it is given. Otherwise they are the caller's variables that belong to the graph. If
    there are none, they are the outermost modules that ran. A single model with parameters provides the names of its
    `named_parameters`. If there are several models, names begin with the variable or the class of the model.
    """
    models = _models(names, calls, leaves, variables)
    with_state = [model for _, model in models if next(model.parameters(), None) is not None]
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
        call.path = "" if call.module is None else names.paths.get(id(call.module), "")


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
        if call.module is not None and call.parent is None and id(call.module) not in known:
            found.append(named.get(id(call.module), (None, call.module)))
            known |= {id(part) for part in call.module.modules()}
    return found


def _is_used(model: Any, used: set[int]) -> bool:
    return any(id(part) in used for part in (*model.modules(), *model.parameters()))
