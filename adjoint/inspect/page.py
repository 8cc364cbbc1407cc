"""The interactive page: one HTML file with the graph and the scripts that display it. It works offline."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from html import escape
from math import isfinite
from typing import Any

from .display import filled
from .model import Flow, Group, Hook, Line, NodeBox, OperationBox, Saved, Snapshot, Statistics, Step, TensorBox
from .palette import variables

SHARED = {OperationBox: frozenset({"names"}), NodeBox: frozenset({"line", "formula", "derivative", "values", "inputs"})}
SHARED |= {Flow: frozenset({"statistics"})}
SHARED |= {box: frozenset({"statistics"}) for box in (TensorBox, Saved)}
"""Fields with repeated values: each value is stored once in `shared`, and records refer to it by number."""

RECORDS = (Flow, Group, Hook, Line, NodeBox, OperationBox, Saved, Statistics, Step, TensorBox)


def render(snapshot: Snapshot) -> str:
    """Return the snapshot as a self-contained page.

    >>> from adjoint.inspect.model import Snapshot
    >>> page = render(Snapshot(title="an empty graph"))
    >>> page.startswith("<!doctype html>"), "<title>an empty graph</title>" in page
    (True, True)
    """
    title = escape(snapshot.title or "Graph")
    return filled("template.html", title=title, colours=variables(), data=data(snapshot))


def data(snapshot: Snapshot) -> str:
    """Return the snapshot as compact JSON that is safe inside a `script` element: no `</script>`, no `<!--`."""
    packer = _Packer()
    record = {field.name: packer.pack(getattr(snapshot, field.name)) for field in fields(snapshot)}
    record |= {"format": "adjoint.inspect/1", "shared": packer.shared}
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


class _Packer:
    """Converts records to JSON data, without the fields that have their default value."""

    def __init__(self) -> None:
        self.shared: list[Any] = []
        self.places: dict[str, int] = {}
        self.known: dict[int, int] = {}
        """The numbers of known objects, by identity. The snapshot keeps the objects alive."""
        self.plans: dict[type, list[tuple[str, Any, Callable[[Any], Any] | None]]] = {}

    def pack(self, value: Any) -> Any:
        """Return `value` as JSON data."""
        kind = type(value)
        if kind is str or kind is int or kind is bool or value is None:
            return value
        if kind is list or kind is tuple:
            return [self.pack(each) for each in value]
        if kind is dict:
            return {name: self.pack(each) for name, each in value.items()}
        if kind is float:
            return value if isfinite(value) else None
        return self.share(value) if kind is Statistics else self.record(value)

    def record(self, value: Any) -> dict[str, Any]:
        """Return a dataclass as JSON data, field by field."""
        found = {}
        for name, default, packed in self.plans.get(type(value)) or self.plan(type(value)):
            each = getattr(value, name)
            if each is not default and each != default:
                found[name] = each if packed is None else packed(each)
        return found

    def plan(self, kind: Any) -> list[tuple[str, Any, Callable[[Any], Any] | None]]:
        """Return the name, the default, and the conversion (if needed) of each field of a dataclass."""
        plan: list[tuple[str, Any, Callable[[Any], Any] | None]] = []
        for field in fields(kind):
            packed = self.share if field.name in SHARED.get(kind, ()) else self.pack if _nests(field) else None
            plan.append((field.name, _default(field), packed))
        self.plans[kind] = plan
        return plan

    def share(self, value: Any) -> int:
        """Return the number of `value` among the shared values."""
        place = self.known.get(id(value))
        if place is None:
            packed = self.record(value) if is_dataclass(value) else self.pack(value)
            place = self.places.setdefault(repr(packed), len(self.shared))
            if place == len(self.shared):
                self.shared.append(packed)
            self.known[id(value)] = place
        return place


def _nests(field: Any) -> bool:
    """Return whether a field contains records, or numbers that may not be finite."""
    return any(name in str(field.type) for name in ("float", *(kind.__name__ for kind in RECORDS)))


def _default(field: Any) -> Any:
    if field.default is not MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not MISSING else MISSING
