"""The mode in which `functionalize` shows only operators without in-place changes to the modes outside.

As in PyTorch, tensors that share memory are described by one base and, for each tensor, the views that lead from the
base to it. An in-place operator becomes an operator that returns a new value. The new value of a view is written back to
the base by the inverses of its views, and every tensor is computed from the new base when it is next used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import adjoint as torch

from ..transforms.tree import tree_leaves, tree_map
from ..utils import _python_dispatch

__all__ = ["FunctionalOperators"]

_View = Callable[[torch.Tensor], Any]
_Inverse = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class _Step:
    """A view: how it follows from the tensor before it, and how a new value of it changes the tensor before it."""

    def __init__(self, forward: _View, inverse: _Inverse) -> None:
        self.forward, self.inverse = forward, inverse


class _Memory:
    """The memory that several tensors share. `base`: its value. `updates`: changes of views, not yet in the value."""

    def __init__(self, base: torch.Tensor) -> None:
        self.base = base
        self.updates: list[tuple[torch.Tensor, list[_Step]]] = []
        self.generation = 0

    def apply_updates(self) -> None:
        """Write the changes of the views to the base."""
        for value, steps in self.updates:
            befores = [self.base]
            for step in steps[:-1]:
                befores.append(step.forward(befores[-1]))
            for step, before in zip(reversed(steps), reversed(befores), strict=False):
                value = step.inverse(before, value)
            self.base = value
        self.updates.clear()


class _Described:
    """A tensor of the program: its memory, the views that lead to it, and its current value in the modes outside."""

    def __init__(self, memory: _Memory, steps: list[_Step], value: torch.Tensor) -> None:
        self.memory, self.steps, self.value = memory, steps, value
        self.generation = 0

    def current(self) -> torch.Tensor:
        """Return the value, computed again from the base if the memory has changed."""
        memory = self.memory
        if self.generation != memory.generation:
            memory.apply_updates()
            value = memory.base
            for step in self.steps:
                value = step.forward(value)
            self.value, self.generation = value, memory.generation
        return self.value

    def change(self, value: torch.Tensor) -> None:
        """Replace the value, and the part of the memory that the tensor shows."""
        if value.dtype != self.value.dtype:
            value = value.to(self.value.dtype)
        self.value = value
        self.memory.updates.append((value, list(self.steps)))
        self.memory.generation += 1
        self.current()


class FunctionalOperators(_python_dispatch.TorchDispatchMode):
    """A mode that replaces in-place operators. Inside, tensors have their true values and share memory as always.

    `copies_views`: whether views become copies as well. A tensor is identified by its array, because the saved forms of
    the tensor in backward nodes share the array.
    """

    def __init__(self, copies_views: bool) -> None:
        super().__init__()
        self.copies_views = copies_views
        self.known: dict[int, tuple[Any, _Described]] = {}

    # --- the program's tensors ---

    def described(self, tensor: torch.Tensor) -> _Described:
        """Return the description of a tensor. A tensor that is not known yet has memory of its own."""
        found = self.known.get(id(tensor._array))
        return self.describe(tensor, _Described(_Memory(tensor), [], tensor)) if found is None else found[1]

    def describe(self, tensor: torch.Tensor, described: _Described) -> _Described:
        """Remember the description of a tensor."""
        self.known[id(tensor._array)] = tensor._array, described
        return described

    def value_of(self, leaf: Any) -> Any:
        """Return the value of a tensor in the modes outside, and other arguments unchanged."""
        if not isinstance(leaf, torch.Tensor) or id(leaf._array) not in self.known:
            return leaf
        return self.known[id(leaf._array)][1].current()

    def result_of(self, leaf: Any) -> Any:
        """Return a result of the function with its value in the modes outside, and with its history."""
        value = self.value_of(leaf)
        if value is leaf or not leaf.requires_grad:
            return value
        shown = value.detach()
        shown._edge = leaf._edge
        return shown

    def finish(self, given: Sequence[torch.Tensor]) -> None:
        """Write the new values of arguments to the arguments."""
        for tensor in given:
            value = self.value_of(tensor)
            if value is not tensor:
                if value.untyped_storage().nbytes() != tensor.untyped_storage().nbytes():
                    tensor = torch.ops.aten.resize_.default(tensor, list(value.shape))
                torch.ops.aten.copy_.default(tensor, value)

    # --- operators ---

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        schema = func._schema
        name = func._opname
        if schema is not None and name in _VIEWS_IN_PLACE:
            return self.turn_into_view(func, args, kwargs)
        if schema is not None and schema.is_mutable:
            return self.change(func, schema, args, kwargs)
        if name in _INVERSES and schema is not None and schema.is_view:
            return self.view(func, args, kwargs)
        return func(*tree_map(self.value_of, args), **tree_map(self.value_of, kwargs))

    def step(self, func: Any, args: Any, kwargs: Any, index: int | None = None) -> _Step:
        """Return the view that an operator makes of its first argument. `index`: which of several results it is."""
        shown, inverse = self.shown(func), _INVERSES[func._opname]

        def forward(before: torch.Tensor) -> Any:
            result = shown(before, *args[1:], **kwargs)
            return result if index is None else result[index]

        def backward(before: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            given = args if index is None else (*args[:1], index, *args[1:])
            return inverse(self, before, value, *given[1:], **kwargs)

        return _Step(forward, backward)

    def shown(self, func: Any) -> Any:
        """Return the operator that the modes outside see in place of a view."""
        if not self.copies_views:
            return func
        packet = getattr(torch.ops.aten, f"{func._opname}_copy", None)
        overload = func._overloadname
        return getattr(packet, overload) if packet is not None and overload in packet.overloads() else func

    def view(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Show the view outside, and return the true view. A value from before a change is computed again when it is used."""
        described = self.described(args[0])
        before = described.value
        shown = self.shown(func)(before, *args[1:], **kwargs)
        if before is args[0] and not self.copies_views:
            results = shown
        else:
            with _python_dispatch._disable_current_modes():
                results = func(*args, **kwargs)
        several = isinstance(results, (tuple, list))
        for index, (result, value) in enumerate(
            zip(results if several else (results,), shown if several else (shown,), strict=True)
        ):
            step = self.step(func, args, kwargs, index if several else None)
            self.describe(result, _Described(described.memory, [*described.steps, step], value))
        return results

    def turn_into_view(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Show the view that a tensor turns into outside, and turn the tensor into it."""
        described = self.described(args[0])
        if described.value is args[0]:  # the tensor itself will be the view
            with _python_dispatch._disable_current_modes():
                described.value = args[0].detach()
            if described.memory.base is args[0]:
                described.memory.base = described.value
        step = self.step(_functional(func), args, kwargs)
        turned = _Described(described.memory, [*described.steps, step], step.forward(described.value))
        turned.generation = described.generation
        with _python_dispatch._disable_current_modes():
            func(*args, **kwargs)
        self.describe(args[0], turned)
        return args[0]

    def change(self, func: Any, schema: Any, args: Any, kwargs: Any) -> Any:
        """Show an operator that returns the new values outside, and write the values to the true tensors."""
        names = [each.name for each in schema.arguments]
        positional = dict(zip(names, args, strict=False)) | kwargs
        written = [each.name for each in schema.arguments if each.alias_info is not None and each.alias_info.is_write]
        targets = [each for name in written for each in tree_leaves(positional[name])]
        functional = _functional(func)
        if functional is None or not all(isinstance(each, torch.Tensor) for each in targets):
            return func(*tree_map(self.value_of, args), **tree_map(self.value_of, kwargs))
        for target in targets:
            self.described(target).current()
        kept = functional._schema.arguments
        defaults = {each.name: each.default_value for each in schema.arguments if each.has_default_value()}
        required = {
            each.name: defaults[each.name] for each in kept if not each.has_default_value() and each.name in defaults
        }
        given = required | {name: value for name, value in positional.items() if name in [each.name for each in kept]}
        given = tree_map(self.value_of, given)
        leading = [each.name for each in kept if not each.kwarg_only]
        in_order = []
        for name in leading:
            if name not in given:
                break
            in_order.append(given.pop(name))
        results = functional(*in_order, **given)
        values = [each for each in tree_leaves(results) if isinstance(each, torch.Tensor)]
        for target, value in zip(targets, values, strict=False):
            described = self.described(target)
            if func._opname == "resize_" and value.numel() > target.numel():
                described = self.describe(target, _Described(_Memory(value), [], value))
            else:
                described.change(value)
            with _python_dispatch._disable_current_modes():
                if target.shape != value.shape:
                    target.resize_(value.shape)
                    self.describe(target, described)
                target.copy_(value)
        return targets[0] if len(targets) == 1 and not isinstance(results, (tuple, list)) else tuple(targets)


def _functional(func: Any) -> Any:
    """Return the overload that takes the same arguments and returns what an overload writes to them, or None."""
    packet = getattr(torch.ops.aten, func._opname.removesuffix("_"), None)
    taken = _arguments(func._schema)
    for overload in () if packet is None else packet.overloads():
        candidate = getattr(packet, overload)
        schema = candidate._schema
        if schema is not None and not schema.is_mutable and _arguments(schema) == taken:
            return candidate
    return None


def _arguments(schema: Any) -> set[tuple[str, str]]:
    """Return the names and types of the arguments other than `out`."""
    return {(each.name, str(each.type)) for each in schema.arguments if not each.is_out}


# --- inverses of views --------------------------------------------------------------------------------------------
#
# Each function takes the mode, the tensor before the view, the new value of the view, and the arguments of the view.
# The inverse of a view with several results takes the number of the result before these arguments.


def _aten(mode: FunctionalOperators, name: str, overload: str = "default") -> Any:
    return mode.shown(getattr(getattr(torch.ops.aten, name), overload))


def _unsqueezed(mode: FunctionalOperators, before: torch.Tensor, value: torch.Tensor, dims: Any) -> torch.Tensor:
    for dim in sorted(each % max(before.dim(), 1) for each in dims):
        if before.shape[dim] == 1:
            value = _aten(mode, "unsqueeze")(value, dim)
    return value


def _squeeze_inverse(mode: Any, before: torch.Tensor, value: torch.Tensor, dim: Any = None) -> torch.Tensor:
    dims = range(before.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    return _unsqueezed(mode, before, value, dims)


def _permute_inverse(mode: Any, before: torch.Tensor, value: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    wrapped = [dim % before.dim() for dim in dims]
    result: torch.Tensor = _aten(mode, "permute")(value, [wrapped.index(dim) for dim in range(before.dim())])
    return result


def _view_inverse(mode: Any, before: torch.Tensor, value: torch.Tensor, size: Any) -> torch.Tensor:
    if isinstance(size, torch.dtype):
        return _aten(mode, "view", "dtype")(value, before.dtype)
    return _aten(mode, "view")(value, list(before.shape))


def _split_inverse(
    mode: Any, before: torch.Tensor, value: torch.Tensor, index: int, sizes: Any, dim: int = 0
) -> torch.Tensor:
    start = index * sizes if isinstance(sizes, int) else sum(sizes[:index])
    stop = min(start + (sizes if isinstance(sizes, int) else sizes[index]), before.shape[dim])
    return torch.ops.aten.slice_scatter.default(before, value, dim, start, stop)


_INVERSES: dict[str, Callable[..., Any]] = {
    "alias": lambda mode, before, value: _aten(mode, "alias")(value),
    "as_strided": lambda mode, before, value, *how: torch.ops.aten.as_strided_scatter.default(before, value, *how),
    "detach": lambda mode, before, value: value,
    "diagonal": lambda mode, before, value, *how: torch.ops.aten.diagonal_scatter.default(before, value, *how),
    "expand": lambda mode, before, value, *how, **names: value.sum_to_size(before.shape),
    "permute": _permute_inverse,
    "select": lambda mode, before, value, *how: torch.ops.aten.select_scatter.default(before, value, *how),
    "slice": lambda mode, before, value, *how: torch.ops.aten.slice_scatter.default(before, value, *how),
    "split": _split_inverse,
    "split_with_sizes": _split_inverse,
    "squeeze": _squeeze_inverse,
    "t": lambda mode, before, value: _aten(mode, "t")(value),
    "transpose": lambda mode, before, value, *how: _aten(mode, "transpose", "int")(value, *how),
    "unbind": lambda mode, before, value, index, dim=0: torch.ops.aten.select_scatter.default(
        before, value, dim, index
    ),
    "unfold": lambda mode, before, value, *how: torch.ops.aten.unfold_backward.default(value, list(before.shape), *how),
    "unsqueeze": lambda mode, before, value, dim: _aten(mode, "squeeze", "dim")(value, dim),
    "view": _view_inverse,
    "view_as_complex": lambda mode, before, value: _aten(mode, "view_as_real")(value),
    "view_as_real": lambda mode, before, value: _aten(mode, "view_as_complex")(value),
}
"""By the name of a view, the function that returns the tensor before the view with a new value of the view in it."""

_VIEWS_IN_PLACE = {f"{name}_" for name in ("as_strided", "detach", "squeeze", "t", "transpose", "unsqueeze")}
"""The operators that turn a tensor into a view."""
