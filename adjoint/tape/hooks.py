"""Hooks of nodes and of tensors, and the handles that remove them."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from typing import Any

_next_id = count().__next__


class RemovableHandle:
    """Removes a hook: `handle.remove()`, or at the end of a `with handle:` block."""

    def __init__(self, hooks: OrderedDict[int, Any], *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks)
        self.id = _next_id()
        self.extra_dict_ref = tuple(
            weakref.ref(extra)
            for extra in (
                extra_dict if isinstance(extra_dict, list) else [extra_dict] if extra_dict is not None else []
            )
        )

    def remove(self) -> None:
        """Remove the hook; removing it twice does nothing."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


class HookDict(OrderedDict[int, Callable[..., Any]]):
    """Hooks in the order they were registered; weakly referable, so that handles do not keep them."""

    def register(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Add `hook` at the end."""
        handle = RemovableHandle(self)
        self[handle.id] = hook
        return handle


class NodeHooks:
    """All hooks of one node.

    `tensor[i]`: the hooks of the tensors that are output `i`, each tensor's in its own dict; `retained[i]`: that
    tensor, weakly, if its gradient is to be kept; `pre` and `post`: the node's own, before and after it runs. Beside hooks,
    `tangents[item]`: in forward mode, the tangents of the result that is saved as `item`, by level.
    """

    __slots__ = ("post", "pre", "retained", "tangents", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, list[HookDict]] = {}
        self.retained: dict[int, weakref.ref[Any]] = {}
        self.pre = HookDict()
        self.post: list[HookDict] = [HookDict()]
        self.tangents: dict[str, dict[Any, Any]] = {}

    def register(self, kind: str, hook: Callable[..., Any]) -> RemovableHandle:
        """Add a `"pre"` or `"post"` hook of the node."""
        return self.pre.register(hook) if kind == "pre" else self.post[0].register(hook)

    def add_dict(self, hooks: Any) -> None:
        """Also run the post-hooks in `hooks`, a dict that its owner goes on changing."""
        self.post.append(hooks)

    def add_tensor(self, output_nr: int, hooks: HookDict) -> None:
        """Also run the hooks of a tensor that is output `output_nr`."""
        self.tensor.setdefault(output_nr, []).append(hooks)
