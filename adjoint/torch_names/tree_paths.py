"""Trees with the path to each leaf, and rarer functions on trees, under the names of `torch.utils._pytree`."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from adjoint.transforms.tree import (  # the parts of one module that is divided
    _MAPPINGS,
    KEYS,
    SUPPORTED_NODES,
    IsLeaf,
    TreeSpec,
    _node_of,
    map_only,
    register_pytree_node,
    tree_flatten,
    tree_leaves,
    tree_map,
)


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The key of an item of a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """Return the item with this key."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """The key of an item of a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """Return the item with this key."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The key of an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The attribute."""
        return getattr(obj, self.name)


KeyPath = tuple[Any, ...]


def _keyed(value: Any) -> list[tuple[Any, Any]] | None:
    node = _node_of(value)
    if node is None:
        return None
    if type(value) in KEYS:
        return KEYS[type(value)](value)[0]
    items = node.flatten_fn(value)[0]
    if type(value) in _MAPPINGS:
        return [(MappingKey(key), item) for key, item in zip(value, items, strict=True)]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(GetAttrKey(name), item) for name, item in zip(value._fields, items, strict=True)]
    return [(SequenceKey(number), item) for number, item in enumerate(items)]


def _walk(value: Any, path: KeyPath, is_leaf: IsLeaf) -> Iterator[tuple[KeyPath, Any]]:
    items = None if is_leaf is not None and is_leaf(value) else _keyed(value)
    if items is None:
        yield path, value
        return
    for key, item in items:
        yield from _walk(item, (*path, key), is_leaf)


def tree_flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Return the leaves with their paths, and the structure.

    >>> [keystr(path) for path, leaf in tree_flatten_with_path({"a": [1, 2]})[0]]
    ["['a'][0]", "['a'][1]"]
    """
    return list(_walk(tree, (), is_leaf)), tree_flatten(tree, is_leaf)[1]


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """Return the leaves with their paths."""
    return list(_walk(tree, (), is_leaf))


def tree_map_with_path(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Return `tree` with `func(path, leaf, ...)` in place of each leaf."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(func(path, leaf, *more) for (path, leaf), *more in zip(found, *others, strict=True))


def keystr(kp: KeyPath) -> str:
    """Return a path as text."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """Return the leaf at a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


def tree_iter(tree: Any, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """Yield the leaves, one after another."""
    yield from tree_leaves(tree, is_leaf)


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Call `func` for each leaf, and return `tree`."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only_(kinds: Any, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Call `func` for the leaves of the given types, and return `tree`."""
    return tree_map_(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_all_only(kinds: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether `pred` is true for all leaves of the given types."""
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, kinds))


def tree_any_only(kinds: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether `pred` is true for a leaf of the given types."""
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, kinds))


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """Return the leaves of all arguments."""
    return [leaf for each in (*args, *kwargs.values()) for leaf in tree_leaves(each)]


def is_namedtuple_class(cls: Any) -> bool:
    """Return whether a class is a named tuple."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_namedtuple_instance(obj: Any) -> bool:
    """Return whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


is_namedtuple = is_namedtuple_instance


def register_dataclass(
    cls: type, *, field_names: Iterable[str] | None = None, drop_field_names: Iterable[str] = (), **others: Any
) -> None:
    """Register a dataclass as a container of its fields."""
    names = [each.name for each in dataclasses.fields(cls) if each.init] if field_names is None else list(field_names)
    names = [name for name in names if name not in set(drop_field_names)]

    def apart(value: Any) -> tuple[list[Any], Any]:
        return [getattr(value, name) for name in names], None

    register_pytree_node(cls, apart, lambda items, _: cls(**dict(zip(names, items, strict=True))))
    KEYS[cls] = lambda value: ([(GetAttrKey(name), getattr(value, name)) for name in names], None)


def register_constant(cls: type) -> None:
    """Register a class whose objects are part of the structure and not leaves."""
    register_pytree_node(cls, lambda value: ([], value), lambda items, value: value)


def _get_node_type(tree: Any) -> Any:
    node = _node_of(tree)
    return type(tree) if node is None else node.type


# Libraries use these names to register classes that derive from Python's containers.
_, _dict_flatten, _dict_unflatten = SUPPORTED_NODES[dict]
_, _ordereddict_flatten, _ordereddict_unflatten = SUPPORTED_NODES[OrderedDict]
_, _list_flatten, _list_unflatten = SUPPORTED_NODES[list]
_, _tuple_flatten, _tuple_unflatten = SUPPORTED_NODES[tuple]


def _dict_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _list_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return [(SequenceKey(number), value) for number, value in enumerate(d)], None


_ordereddict_flatten_with_keys, _tuple_flatten_with_keys = _dict_flatten_with_keys, _list_flatten_with_keys


Context = Any
"""The second result of flattening a container. Libraries use the name in annotations."""


def is_structseq_instance(value: Any) -> bool:
    """Return whether a value is a tuple with named fields defined in C, or a result of an operator."""
    return isinstance(value, tuple) and hasattr(type(value), "n_fields")
