"""Trees with the path to each leaf, and rarer functions on trees, under the names of `torch.utils._pytree`."""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from adjoint.device import Size
from adjoint.transforms.tree import (  # the parts of one module that is divided
    _MAPPINGS,
    DUMPED,
    KEYS,
    SUPPORTED_NODES,
    IsLeaf,
    LeafSpec,
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
    """Register a dataclass as a container of its fields. Fields that are None belong to the structure."""
    names = [each.name for each in dataclasses.fields(cls) if each.init] if field_names is None else list(field_names)
    names = [name for name in names if name not in set(drop_field_names)]

    def present(value: Any) -> dict[str, Any]:
        return {name: item for name in names if (item := getattr(value, name)) is not None}

    def apart(value: Any) -> tuple[list[Any], Any]:
        found = present(value)
        return list(found.values()), [list(found), [name for name in names if name not in found]]

    def together(items: Iterable[Any], context: Any) -> Any:
        return cls(**dict(zip(context[0], items, strict=True)), **dict.fromkeys(context[1]))

    register_pytree_node(cls, apart, together)
    KEYS[cls] = lambda value: ([(GetAttrKey(name), item) for name, item in present(value).items()], None)


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


# --- structures as text ----------------------------------------------------------------------------------------------


class EnumEncoder(json.JSONEncoder):
    """Writes the members of enumerations by their names."""

    def default(self, obj: Any) -> Any:
        """Return a member of an enumeration as a dict."""
        if isinstance(obj, enum.Enum):
            return {"__enum__": True, "fqn": f"{type(obj).__module__}:{type(obj).__qualname__}", "name": obj.name}
        return super().default(obj)


def _read_enum(read: dict[str, Any]) -> Any:
    if not read.get("__enum__"):
        return read
    module, _, name = read["fqn"].partition(":")
    kind: Any = functools.reduce(getattr, name.split("."), importlib.import_module(module))
    return kind[read["name"]]


def _of_factory(read: dict[str, Any]) -> list[Any]:
    module = importlib.import_module(read["default_factory_module"])
    return [getattr(module, read["default_factory_name"]), read["dict_context"]]


for _kind in (tuple, list, dict):
    DUMPED[_kind] = {"serialized_type_name": f"builtins.{_kind.__name__}"}
for _other in (OrderedDict, deque):
    DUMPED[_other] = {"serialized_type_name": f"collections.{_other.__name__}"}
DUMPED[Size] = {"serialized_type_name": "torch.Size"}
DUMPED[defaultdict] = {
    "serialized_type_name": "collections.defaultdict",
    "to_dumpable_context": lambda context: {
        "default_factory_module": context[0].__module__,
        "default_factory_name": context[0].__qualname__,
        "dict_context": context[1],
    },
    "from_dumpable_context": _of_factory,
}
_NAMED: dict[Any, str] = {}


def _named(kind: Any) -> str:
    if kind not in _NAMED:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {kind} because we didn't register a serializated_type_name. Please "
            "register using `_register_namedtuple`."
        )
    return _NAMED[kind]


DUMPED[namedtuple] = {
    "serialized_type_name": "collections.namedtuple",
    "to_dumpable_context": _named,
    "from_dumpable_context": lambda name: next(kind for kind, own in _NAMED.items() if own == name),
}


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Give a class of named tuples a name for `treespec_dumps`."""
    _NAMED[cls] = serialized_type_name


def _check_protocol(protocol: int) -> None:
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Return a structure as JSON, which `treespec_loads` reads."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    _check_protocol(1 if protocol is None else protocol)
    return json.dumps((1, _dumped(treespec)), cls=EnumEncoder)


def _dumped(spec: TreeSpec) -> dict[str, Any]:
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    ways = DUMPED.get(spec.type, {})
    if ways.get("serialized_type_name") is None:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your _register_pytree_node call with a "
            "`serialized_type_name` kwarg."
        )
    written = ways.get("to_dumpable_context")
    try:
        context = written(spec.context) if written else json.dumps(spec.context, cls=EnumEncoder)
    except TypeError as error:
        raise TypeError(
            "Unable to serialize context. Please make the context json dump-able, or register a custom serializer using "
            "_register_pytree_node."
        ) from error
    children = [_dumped(child) for child in spec.children()]
    return {"type": ways["serialized_type_name"], "context": context, "children_spec": children}


def treespec_loads(serialized: str) -> TreeSpec:
    """Return the structure that `treespec_dumps` has written."""
    protocol, read = json.loads(serialized)
    _check_protocol(protocol)
    return _loaded(read)


def _loaded(read: dict[str, Any]) -> TreeSpec:
    if read["type"] is None:
        return LeafSpec()
    kind = next((kind for kind, ways in DUMPED.items() if ways.get("serialized_type_name") == read["type"]), None)
    if kind is None:
        raise NotImplementedError(f"Deserializing {read['type']} in pytree is not registered.")
    reader = DUMPED[kind].get("from_dumpable_context") or functools.partial(json.loads, object_hook=_read_enum)
    return TreeSpec(kind, reader(read["context"]), [_loaded(child) for child in read["children_spec"]])
