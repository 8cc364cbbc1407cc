"""Calls of modules with hooks: registration of hooks, calls that run hooks, and records of calls for drawings."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from threading import get_ident
from typing import Any
from weakref import ref

from adjoint import Tensor

from ..._runtime.sequence import (
    MAIN_THREAD,
    NOTES,
    TABLES_SHOWN,
    in_thread,
    module_calls,
    recording,
    sequence_numbers,
    watchers,
)
from ..._runtime.tracebacks import warn
from ...utils.hooks import BackwardHook, RemovableHandle
from .global_hooks import TABLES
from .registration import Registered

Hook = Callable[..., Any]

note_call = module_calls.append


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, args)` before the forward of every module. A result of the hook replaces the arguments."""
    return _register(TABLES._global_forward_pre_hooks, hook, watchers)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after the forward of every module. A result of the hook replaces the output."""
    return _register(
        TABLES._global_forward_hooks,
        hook,
        watchers,
        flags=[
            (TABLES._global_forward_hooks_with_kwargs, with_kwargs),
            (TABLES._global_forward_hooks_always_called, always_call),
        ],
    )


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, grad_output)` in the backward of every module. A result of the hook replaces the gradients."""
    return _register(TABLES._global_backward_pre_hooks, hook, watchers)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` in the backward of every module."""
    _require_kind_of_global_backward_hook(full=True)
    return _register(TABLES._global_backward_hooks, hook, watchers)


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` with the gradients of the node of each output (deprecated)."""
    _require_kind_of_global_backward_hook(full=False)
    return _register(TABLES._global_backward_hooks, hook, watchers)


def _require_kind_of_global_backward_hook(full: bool) -> None:
    _require_one_kind(TABLES._global_is_full_backward_hook, full, "as a global Module hook")
    TABLES._global_is_full_backward_hook = full


def require_kind_of_backward_hook(module: Registered, full: bool) -> None:
    """Raise an error if a module would have both full backward hooks and old-style backward hooks."""
    _require_one_kind(module._is_full_backward_hook, full, "on a single Module")
    module._is_full_backward_hook = full


def _require_one_kind(present: bool | None, full: bool, where: str) -> None:
    if present is (not full):
        kinds = "regular backward hooks and full backward hooks"
        raise RuntimeError(f"Cannot use both {kinds} {where}. Please use only one of them.")


def register(
    module: Registered, table: str, hook: Hook, prepend: bool, flags: dict[str, bool] | None = None
) -> RemovableHandle:
    """Add `hook` to the module's `table` of hooks, and the id of the hook to each table in `flags` whose value is true."""
    tables = [(getattr(module, name), value) for name, value in (flags or {}).items()]
    return _register(getattr(module, table), hook, module._call_hooks, tables, prepend)


def _register(
    hooks: OrderedDict[int, Hook],
    hook: Hook,
    present: OrderedDict[int, bool],
    flags: Iterable[tuple[OrderedDict[int, bool], bool]] = (),
    prepend: bool = False,
) -> RemovableHandle:
    flagged = [present] + [table for table, value in flags if value]
    handle = RemovableHandle(hooks, extra_dict=flagged)
    hooks[handle.id] = hook
    for table in flagged:
        table[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


COMPILED = "compiled"
"""The entry among a module's hooks which shows that the module is compiled in place."""


def watched_call(module: Registered, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call `module` with its hooks and the global hooks. If calls are recorded, record the new nodes.

    If the module is compiled in place, its compiled program runs instead.
    """
    if COMPILED in module._call_hooks:
        return module._compiled_call_impl(*args, **kwargs)
    return called_as_it_is(module, args, kwargs)


def called_as_it_is(module: Registered, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a module that is not compiled, or whose program cannot be used."""
    if NOTES not in watchers:
        return call_with_hooks(module, args, kwargs)
    if get_ident() != MAIN_THREAD:
        recording.several_threads = True
    first = next(sequence_numbers)
    if has_hooks(module):
        result = call_with_hooks(module, args, kwargs)
    else:
        result = module.forward(*args, **kwargs)
    last = next(sequence_numbers)
    if last - first > 1:
        note_call(
            (ref(module), type(module).__name__, first, last, in_thread(result) if recording.several_threads else None)
        )
    return result


def without_compiled_form(state: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a module without its compiled program, for a copy that is not compiled."""
    if state.pop("_compiled_call_impl", None) is not None:
        state["_call_hooks"] = OrderedDict(each for each in state["_call_hooks"].items() if each[0] != COMPILED)
    return state


def has_hooks(module: Any) -> bool:
    """Return whether the module has hooks, or whether global hooks exist."""
    return len(module._call_hooks) > (COMPILED in module._call_hooks) or all_have_hooks()


def all_have_hooks() -> bool:
    """Return whether global hooks exist. A program may have added hooks to the tables itself."""
    if not watchers:
        return False
    if len(watchers) > (NOTES in watchers) + (TABLES_SHOWN in watchers):
        return True
    return TABLES_SHOWN in watchers and any(vars(TABLES).values())


def call_with_hooks(module: Registered, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call `module.forward` with the module's own hooks and the global hooks."""
    call = _Call(module, args, kwargs)
    try:
        return call.run()
    except Exception:
        call.run_hooks_that_are_always_called()
        raise


class _Call:
    """The state of one call of a module with hooks."""

    def __init__(self, module: Registered, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.module = module
        self.args = args
        self.kwargs = kwargs
        self.result: Any = None
        self.called: set[int] = set()

    def run(self) -> Any:
        module = self.module
        full_hooks, other_hooks, backward_pre_hooks = _backward_hooks(module)
        self.args, self.kwargs = _call_forward_pre_hooks(module, self.args, self.kwargs)
        watch = BackwardHook(module, full_hooks, backward_pre_hooks) if full_hooks or backward_pre_hooks else None
        if watch is not None:
            self.args = watch.setup_input_hook(self.args)
        self.result = module.forward(*self.args, **self.kwargs)
        for id, hook, with_kwargs, always_called in _forward_hooks(module):
            if always_called:
                self.called.add(id)
            replacement = self._call_forward_hook(hook, with_kwargs)
            if replacement is not None:
                self.result = replacement
        if watch is not None:
            self.result = watch.setup_output_hook(self.result)
        if other_hooks:
            _watch_last_node(module, other_hooks, self.args, self.result)
        return self.result

    def _call_forward_hook(self, hook: Hook, with_kwargs: bool) -> Any:
        if with_kwargs:
            return hook(self.module, self.args, self.kwargs, self.result)
        return hook(self.module, self.args, self.result)

    def run_hooks_that_are_always_called(self) -> None:
        """After an exception, call the hooks with `always_call`. Exceptions of these hooks become warnings."""
        for id, hook, with_kwargs, always_called in _forward_hooks(self.module):
            if not always_called or id in self.called:
                continue
            try:
                replacement = self._call_forward_hook(hook, with_kwargs)
                self.result = self.result if replacement is None else replacement
            except Exception as exception:  # noqa: BLE001  (the first error matters more than any other)
                where = "global module forward hook" if id in TABLES._global_forward_hooks else "module forward hook"
                warn(
                    f"{where} with ``always_call=True`` raised an exception that was silenced as another error was "
                    f"raised in forward: {exception}"
                )


def _backward_hooks(module: Registered) -> tuple[list[Hook], list[Hook], list[Hook]]:
    """Return the full hooks, the other hooks and the pre-hooks for backward, with global hooks first."""
    full: list[Hook] = []
    other: list[Hook] = []
    (full if TABLES._global_is_full_backward_hook else other).extend(TABLES._global_backward_hooks.values())
    (full if module._is_full_backward_hook else other).extend(module._backward_hooks.values())
    return full, other, [*TABLES._global_backward_pre_hooks.values(), *module._backward_pre_hooks.values()]


def _forward_hooks(module: Registered) -> list[tuple[int, Hook, bool, bool]]:
    """Return `(id, hook, with_kwargs, always_called)` for all forward hooks, with global hooks first."""
    tables = (
        (
            TABLES._global_forward_hooks,
            TABLES._global_forward_hooks_with_kwargs,
            TABLES._global_forward_hooks_always_called,
        ),
        (module._forward_hooks, module._forward_hooks_with_kwargs, module._forward_hooks_always_called),
    )
    return [
        (id, hook, id in with_kwargs, id in always_called)
        for hooks, with_kwargs, always_called in tables
        for id, hook in hooks.items()
    ]


def _call_forward_pre_hooks(
    module: Registered, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    for id, hook in (*TABLES._global_forward_pre_hooks.items(), *module._forward_pre_hooks.items()):
        if id in module._forward_pre_hooks_with_kwargs:
            replacement = hook(module, args, kwargs)
            if replacement is None:
                continue
            if not (isinstance(replacement, tuple) and len(replacement) == 2):
                raise RuntimeError(
                    f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {replacement}."
                )
            args, kwargs = replacement
        else:
            replacement = hook(module, args)
            if replacement is not None:
                args = replacement if isinstance(replacement, tuple) else (replacement,)
    return args, kwargs


def _watch_last_node(module: Registered, hooks: list[Hook], args: tuple[Any, ...], result: Any) -> None:
    """Register old-style backward hooks on the node of the (first) output."""
    tensor = result
    while not isinstance(tensor, Tensor):
        if isinstance(tensor, dict):
            tensor = next(value for value in tensor.values() if isinstance(value, Tensor))
        else:
            tensor = tensor[0]
    node = tensor.grad_fn
    if node is None:
        return
    _warn_of_missing_gradients(args, result, node)
    for hook in hooks:
        node.register_hook(lambda grad_inputs, grad_outputs, hook=hook: hook(module, grad_inputs, grad_outputs))


def _warn_of_missing_gradients(args: tuple[Any, ...], result: Any, node: Any) -> None:
    outputs = result if isinstance(result, tuple) else (result,)
    case = missing = ""
    if not all(isinstance(output, Tensor) for output in outputs):
        case, missing = "on a Module that does not return a single Tensor or a tuple of Tensors", "of the grad_output"
    elif not all(isinstance(arg, Tensor) for arg in args):
        case, missing = (
            "on a Module that does not take as input a single Tensor or a tuple of Tensors",
            "of the grad_input",
        )
    elif any(output.grad_fn not in (node, None) for output in outputs):
        case, missing = "when outputs are generated by different autograd Nodes", "grad_output"
    else:
        inputs = {arg.grad_fn for arg in args if arg.grad_fn is not None}
        if {next_node for next_node, _ in node.next_functions if next_node is not None} != inputs:
            case, missing = "when the forward contains multiple autograd Nodes", "grad_input"
    if case:
        hooks = "non-full backward hooks" if "Module" in case else "a non-full backward hook"
        warn(
            f"Using {hooks} {case} is deprecated and will be removed in future versions. This hook will be missing some "
            f"{missing}. Please use register_full_backward_hook to get the documented behavior.",
            FutureWarning,
        )
