"""Hooks of nodes and of tensors, and the handles that remove them."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from typing import Any, Self

from .._runtime.extra import Tangents

_next_id = count().__next__


class RemovableHandle:
    """A handle that removes a hook from the ordered dictionary in which it was registered.

    Args:
        hooks_dict: the dictionary that contains the hook, by handle id. Other objects refer to it only weakly.
        extra_dict: another dictionary, or a list of dictionaries, with entries under the same id.

    A handle is also a context manager that removes the hook at the end of the `with` block.
    """

    id: int

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = _next_id()
        extra = [] if extra_dict is None else extra_dict if isinstance(extra_dict, list) else [extra_dict]
        self.extra_dict_ref = tuple([weakref.ref(each) for each in extra])

    def remove(self) -> None:
        """Remove the hook. Removing it twice has no effect."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        return self.hooks_dict_ref(), self.id, tuple(reference() for reference in self.extra_dict_ref)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        def reference(hooks: Any) -> weakref.ref[Any]:
            # If the dictionary no longer exists, an empty one replaces it, whose weak reference dies immediately.
            return weakref.ref(OrderedDict() if hooks is None else hooks)

        self.hooks_dict_ref = reference(state[0])
        self.id = state[1]
        self.extra_dict_ref = tuple(reference(hooks) for hooks in state[2])
        while _next_id() < self.id:  # so that no later handle has its number
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


class HookDict(OrderedDict[int, Callable[..., Any]]):
    """Hooks in the order of registration. Handles refer to this dictionary weakly."""

    def __repr__(self) -> str:
        return repr(OrderedDict(self))

    def register(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Add `hook` at the end."""
        handle = RemovableHandle(self)
        self[handle.id] = hook
        return handle


class NodeHooks:
    """All hooks of one node.

    `tensor[i]`: the hooks of the tensors that are output `i`, in a separate dict for each tensor. `retained[i]`: a weak
    reference to that tensor, if its gradient is retained. `pre` and `post`: the node's hooks before and after it runs,
    in dicts that are created for the first hook. `own_post`: the dict of the hooks registered one by one, which run first. The
    object also contains two other records. `tangents[item]`: in forward mode, the tangents of the result saved as
    `item`, by level. `of_view`: for an operation that changed a view in place, the node through which the view was
    found in the history of its base.
    """

    __slots__ = ("of_view", "own_post", "post", "pre", "retained", "tangents", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, list[HookDict]] = {}
        self.retained: dict[int, weakref.ref[Any]] = {}
        self.pre: HookDict | None = None
        self.post: list[dict[int, Any]] = []
        self.own_post: HookDict | None = None
        self.tangents: dict[str, Tangents] = {}
        self.of_view: weakref.ref[Any] | None = None

    def register(self, kind: str, hook: Callable[..., Any]) -> RemovableHandle:
        """Add a `"pre"` or `"post"` hook of the node."""
        if kind == "pre":
            self.pre = HookDict() if self.pre is None else self.pre
            return self.pre.register(hook)
        if self.own_post is None:
            self.own_post = HookDict()
            self.post.insert(0, self.own_post)
        return self.own_post.register(hook)
