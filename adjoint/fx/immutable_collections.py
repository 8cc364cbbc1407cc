"""`torch.fx.immutable_collections`: the lists and dicts in the arguments of nodes. They cannot be changed in place."""

from __future__ import annotations

from typing import Any, NoReturn

from ..transforms import tree


def _refusing(kind: type, *names: str) -> dict[str, Any]:
    """Return methods that raise an error in place of those that change a `kind`."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__!r} object does not support mutation. If you are attempting to modify the kwargs or args of a "
            "torch.fx.Node object,\ninstead create a new copy of it and assign the copy to the node:\n\n"
            "    new_args = ...  # copy and mutate args\n    node.args = new_args"
        )

    return dict.fromkeys(names, refuse) | {"__reduce__": lambda self: (type(self), (kind(self),))}


class immutable_list(list[Any]):
    """A list that cannot be changed."""

    locals().update(
        _refusing(
            list,
            *"__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove reverse sort".split(),
        )
    )

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))


class immutable_dict(dict[Any, Any]):
    """A dict that cannot be changed."""

    locals().update(_refusing(dict, *"__delitem__ __ior__ __setitem__ clear pop popitem setdefault update".split()))

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


tree.register_pytree_node(immutable_list, lambda x: (list(x), None), lambda items, _: immutable_list(items))
tree.register_pytree_node(
    immutable_dict,
    lambda x: (list(x.values()), list(x)),
    lambda items, keys: immutable_dict(zip(keys, items, strict=True)),
)
