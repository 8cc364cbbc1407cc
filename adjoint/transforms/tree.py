"""`torch.utils._pytree`: flattening and unflattening of nested tuples, lists, dicts and registered containers."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from .._runtime.first_use import import_late
from .._runtime.tracebacks import warn
from ..device import Size

PyTree = Any
IsLeaf = Callable[[Any], bool] | None


class NodeDef(NamedTuple):
    """How a kind of container is flattened into its items and a context, and unflattened."""

    type: Any
    flatten_fn: Callable[[Any], tuple[Any, Any]]
    unflatten_fn: Callable[[Any, Any], Any]


SUPPORTED_NODES: dict[Any, NodeDef] = {}
KEYS: dict[Any, Callable[[Any], tuple[list[tuple[Any, Any]], Any]]] = {}
"""The functions that flatten registered containers with the key of each item."""
DUMPED: dict[Any, dict[str, Any]] = {}
"""How registered containers are written by `treespec_dumps`."""
_MAPPINGS = (dict, OrderedDict, defaultdict)


def _support(
    kind: Any, together: Callable[[Any, Any], Any], context: Callable[[Any], Any] = lambda value: None
) -> None:
    def apart(value: Any) -> Any:
        return list(value.values() if kind in _MAPPINGS else value), context(value)

    SUPPORTED_NODES[kind] = NodeDef(kind, apart, together)


for _kind in (tuple, list):
    SUPPORTED_NODES[_kind] = NodeDef(_kind, lambda value: (value, None), lambda items, _, kind=_kind: kind(items))  # type: ignore[misc]
_support(Size, lambda items, _: tuple(items))
_support(dict, lambda items, keys: dict(zip(keys, items, strict=True)), list)
_support(OrderedDict, lambda items, keys: OrderedDict(zip(keys, items, strict=True)), list)
_support(
    defaultdict,
    lambda items, context: defaultdict(context[0], zip(context[1], items, strict=True)),
    lambda value: [value.default_factory, list(value)],
)
_support(deque, deque, lambda value: value.maxlen)
_support(namedtuple, lambda items, kind: kind(*items), type)


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Any, Any]],
    unflatten_fn: Callable[[Any, Any], Any],
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None,
    **others: Any,
) -> None:
    """Register `cls` (without subclasses) as a container. `unflatten_fn(*flatten_fn(value))` must equal `value`.

    `flatten_fn` returns the items and a context. `flatten_with_keys_fn` returns pairs of a key and an item in place of
    the items. `serialized_type_name`, `to_dumpable_context` and `from_dumpable_context` serve `treespec_dumps`.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls!r} is already registered as pytree node.")
    if (others.get("to_dumpable_context") is None) != (others.get("from_dumpable_context") is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls!r} must be None or registered.")
    DUMPED[cls] = others
    if flatten_with_keys_fn is not None:
        KEYS[cls] = flatten_with_keys_fn
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn)


_deregister_pytree_node = SUPPORTED_NODES.pop


def __getattr__(name: str) -> Any:
    """Import the functions on paths, which few programs use, on first use."""
    value = vars(import_late("adjoint.tree_paths")).get(name, _MISSING)
    if value is _MISSING or name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return value


_MISSING = object()


def _register_pytree_node(cls: type, *functions: Any, **options: Any) -> None:
    warn(
        "`torch.utils._pytree._register_pytree_node` is deprecated. Please use `torch.utils._pytree.register_pytree_node` "
        "instead.",
        FutureWarning,
    )
    register_pytree_node(cls, *functions, **options)


def _node_of(value: Any, is_leaf: IsLeaf = None) -> NodeDef | None:
    """Return how to flatten `value`, or None for a leaf."""
    if is_leaf is not None and is_leaf(value):
        return None
    kind = type(value)
    node = SUPPORTED_NODES.get(kind)
    if node is None and isinstance(value, tuple):
        if hasattr(kind, "_fields"):
            return SUPPORTED_NODES[namedtuple]
        if kind.__module__.endswith(".return_types"):
            _support(kind, lambda items, _: kind(items))
            return SUPPORTED_NODES[kind]
    return node


class TreeSpec:
    """The structure of a nested value without its leaves: the kind of container, its context, and the specs of its items."""

    __slots__ = ("_children", "context", "num_leaves", "type")

    def __init__(self, type: Any, context: Any, children: list[TreeSpec]) -> None:
        self.type = type
        self.context = context
        self._children = children
        self.num_leaves: int = sum([child.num_leaves for child in children]) if type is not None else 1

    @property
    def num_nodes(self) -> int:
        """The number of containers and leaves."""
        return 1 + sum(child.num_nodes for child in self._children)

    @property
    def num_children(self) -> int:
        """The number of items in the container."""
        return len(self._children)

    def children(self) -> list[TreeSpec]:
        """The specs of the items."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """Return the spec of one item."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Return whether this is the spec of a leaf."""
        return self.type is None

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, TreeSpec)
            and (self.type, self.context) == (other.type, other.context)
            and self._children == other._children
        )

    def __hash__(self) -> int:
        return hash((self.type, *self._children))

    def __repr__(self) -> str:
        return self._text(0)

    def _text(self, indent: int) -> str:
        if self.type is None:
            return "*"
        indent += 2
        children = f",\n{' ' * indent}".join(child._text(indent) for child in self._children)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Build the nested value with this structure and these leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that holds "
                f"{self.num_leaves} items ({self})."
            )
        return self._of(iter(leaves))

    def _of(self, leaves: Iterator[Any]) -> Any:
        if self.type is None:
            return next(leaves)
        items = [next(leaves) if child.type is None else child._of(leaves) for child in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(items, self.context)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the subtrees of `tree` at the leaves of this structure. Raise ValueError if the structures differ."""
        if self.type is None:
            return [tree]
        node = _node_of(tree)
        kind = type(tree) if node is None else node.type
        mappings = kind in _MAPPINGS and self.type in _MAPPINGS
        if node is None or not (kind is self.type or mappings):
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {kind!r}.")
        items, context = node.flatten_fn(tree)
        if len(items) != len(self._children):
            raise ValueError(f"Node arity mismatch; expected {len(self._children)}, but got {len(items)}.")
        if mappings:
            keys = self._keys()
            if set(keys) != set(tree):
                raise ValueError(
                    f"Node keys mismatch; missing key(s): {set(keys) - set(tree)}; extra key(s): {set(tree) - set(keys)}."
                )
            items = [tree[key] for key in keys]
        elif kind is not deque and context != self.context:
            raise ValueError(
                f"Node context mismatch for node type {kind!r}; expected {self.context!r}, but got {context!r}."
            )
        return [leaf for item, child in zip(items, self._children, strict=True) for leaf in child.flatten_up_to(item)]

    def _keys(self) -> Any:
        return self.context[1] if self.type is defaultdict else self.context


class LeafSpec(TreeSpec):
    """The spec of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])


_LEAF = LeafSpec()
_STAR: Any = type("Star", (), {"__repr__": lambda self: "*"})()


def tree_is_leaf(tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether `tree` is not a container."""
    return _node_of(tree, is_leaf) is None


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a nested value in order, and its structure.

    Values for which `is_leaf` is true are leaves.

    >>> tree_flatten({"a": 1, "b": (2, 3)})[0]
    [1, 2, 3]
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(value: Any, leaves: list[Any], is_leaf: IsLeaf) -> TreeSpec:
    node = SUPPORTED_NODES.get(type(value)) if is_leaf is None else _node_of(value, is_leaf)
    if node is None and (is_leaf or not isinstance(value, tuple) or (node := _node_of(value)) is None):
        leaves.append(value)
        return _LEAF
    kind, apart, _ = node
    items, context = apart(value)
    return TreeSpec(kind, context, [_flatten(item, leaves, is_leaf) for item in items])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """Build the nested value with this structure and these leaves."""
    return treespec.unflatten(leaves)


def treespec_pprint(treespec: TreeSpec) -> str:
    """Return the structure as text, with an asterisk for each leaf."""
    return repr(treespec.unflatten([_STAR] * treespec.num_leaves))


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> TreeSpec:
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Return `tree` with `func` applied to each leaf and to the subtrees at the same position in each of `rests`.

    >>> tree_map(lambda x: x * 2, {"a": [1], "b": 2})
    {'a': [2], 'b': 4}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec._of(map(func, leaves, *[spec.flatten_up_to(rest) for rest in rests]))


def map_only(kinds: Any) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Return a decorator. The decorated function is applied only to values of some types, or values that satisfy a predicate."""
    if isinstance(kinds, (type, tuple)):
        chosen: Callable[[Any], bool] = lambda value: isinstance(value, kinds)
    elif callable(kinds):
        chosen = kinds
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")
    return lambda func: lambda value: func(value) if chosen(value) else value


def tree_map_only(kinds: Any, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply `func` to the leaves of `tree` that `map_only(kinds)` selects."""
    return tree_map(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether `pred` is true for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether `pred` is true for at least one leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def _broadcast_to_and_flatten(tree: Any, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """Return one value for each leaf of `treespec` from a `tree` that may end earlier, or None if they do not match."""
    node = _node_of(tree, is_leaf)
    if node is None:
        return [tree] * treespec.num_leaves
    items, context = node.flatten_fn(tree)
    if len(items) != len(treespec._children):
        return None
    if node.type in _MAPPINGS and treespec.type in _MAPPINGS:
        if set(tree) != set(treespec._keys()):
            return None
        items = [tree[key] for key in treespec._keys()]
    elif node.type is not treespec.type or context != treespec.context:
        return None
    leaves: list[Any] = []
    for item, child in zip(items, treespec._children, strict=True):
        found = _broadcast_to_and_flatten(item, child, is_leaf)
        if found is None:
            return None
        leaves += found
    return leaves
