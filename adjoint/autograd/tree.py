"""Nested tuples, lists and dicts of values, taken apart and put together again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any


class Structure:
    """What is left of a nested value without its leaves: the type, keys if it is a dict, and the children's structures."""

    __slots__ = ("children", "count", "keys", "kind")

    def __init__(self, kind: Any, keys: Any, children: tuple[Structure, ...]) -> None:
        self.kind = kind
        self.keys = keys
        self.children = children
        self.count: int = sum([child.count for child in children]) if kind is not None else 1

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Structure)
            and (self.kind, self.keys) == (other.kind, other.keys)
            and self.children == other.children
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.children))

    def __repr__(self) -> str:
        return self._text(0)

    def sketch(self) -> str:
        """The text of a value of this structure, with stars for its leaves."""
        return repr(unflatten([_STAR] * self.count, self))

    def _text(self, indent: int) -> str:
        if self.kind is None:
            return "*"
        indent += 2
        children = f",\n{' ' * indent}".join(child._text(indent) for child in self.children)
        return f"TreeSpec({self.kind.__name__}, {self.keys}, [{children}])"


_LEAF = Structure(None, None, ())
_STAR: Any = type("Star", (), {"__repr__": lambda self: "*"})()


def flatten(value: Any) -> tuple[list[Any], Structure]:
    """The leaves of a nested value, in order, and its structure."""
    kind = type(value)
    if kind in (dict, OrderedDict):
        keys, items = list(value), list(value.values())
    elif kind in (tuple, list) or (
        isinstance(value, tuple) and (hasattr(value, "_fields") or hasattr(value, "n_fields"))
    ):
        keys, items = None, list(value)
    else:
        return [value], _LEAF
    leaves: list[Any] = []
    children = []
    for item in items:
        structure = _LEAF
        if isinstance(item, (tuple, list, dict)):
            found, structure = flatten(item)
            leaves += found
        else:
            leaves.append(item)
        children.append(structure)
    return leaves, Structure(kind, keys, tuple(children))


def unflatten(leaves: list[Any], structure: Structure) -> Any:
    """The nested value of that structure and those leaves."""
    if structure.kind is None:
        return leaves[0]
    items, start = [], 0
    for child in structure.children:
        items.append(unflatten(leaves[start : start + child.count], child))
        start += child.count
    if structure.keys is not None:
        return structure.kind(zip(structure.keys, items, strict=True))
    if hasattr(structure.kind, "_fields"):
        return structure.kind(*items)
    return structure.kind(items)


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """`value` with `function` applied to each leaf."""
    leaves, structure = flatten(value)
    return unflatten([function(leaf) for leaf in leaves], structure)


def prefix_leaves(prefix: Any, structure: Structure) -> list[Any] | None:
    """One leaf for each of `structure`, from a nested value that may stop earlier; None if the two do not fit."""
    kind = type(prefix)
    if not (kind in (tuple, list, dict, OrderedDict) or hasattr(prefix, "_fields")):
        return [prefix] * structure.count
    _, own = flatten(prefix)
    if structure.kind is None or len(own.children) != len(structure.children):
        return None
    if structure.keys is not None:
        if not isinstance(prefix, dict) or set(prefix) != set(structure.keys):
            return None
        items = [prefix[key] for key in structure.keys]
    elif own.keys is not None or (own.kind is not structure.kind and {own.kind, structure.kind} != {tuple, list}):
        return None
    else:
        items = list(prefix)
    leaves: list[Any] = []
    for item, child in zip(items, structure.children, strict=True):
        found = prefix_leaves(item, child)
        if found is None:
            return None
        leaves += found
    return leaves
