"""`Module`, the base of all objects with parameters: traversal, modes, conversion and printing.

The parts are in other files: assignment of attributes in `registration`, calls with hooks in `call`, state dicts in
`state_dict`, conversions in `conversion`, and the lookup of dotted names in `lookup`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import adjoint as torch
from adjoint import Tensor

from ..._runtime.sequence import watchers
from ..._runtime.tracebacks import end_constructor_at_caller, end_methods_at_caller, shorten, warn
from ...utils.hooks import RemovableHandle
from ..parameter import Parameter
from . import call, conversion, lookup, registration, state_dict
from .call import (
    register_module_backward_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    watched_call,
)
from .global_hooks import show_tables
from .lookup import printed
from .registration import (
    add_hook,
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    type_name,
)
from .state_dict import _IncompatibleKeys

__all__ = [
    "Module", "register_module_backward_hook", "register_module_buffer_registration_hook", "register_module_forward_hook",
    "register_module_forward_pre_hook", "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
]  # fmt: skip

_EXTRA_STATE_KEY_SUFFIX = state_dict.EXTRA_STATE_KEY
"""The end of the key of `get_extra_state` in a state dict, under the name that other libraries import."""

_HOOK_TABLES = (
    "_call_hooks", "_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks",
    "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip

show_tables(__name__)


class Module:
    """The base class of all neural network modules.

    Parameters, buffers and submodules that are assigned as attributes are registered. They then appear in
    `parameters()`, `state_dict()` and similar methods. A subclass calls `super().__init__()` first, and defines
    `forward`.

    >>> import adjoint as torch
    >>> class Scale(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = torch.nn.Parameter(torch.tensor(2.0))
    ...
    ...     def forward(self, input):
    ...         return self.factor * input
    >>> Scale()(torch.tensor(3.0))
    tensor(6., grad_fn=<MulBackward0>)
    """

    dump_patches: bool = False
    _version: int = 1
    call_super_init: bool = False
    __constants__: ClassVar[list[str]] = []  # subclasses may extend it, and TorchScript reads it
    _repr_names: ClassVar[tuple[str, ...]] = ()

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _compiled_call_impl: Callable[..., Any] | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        end_constructor_at_caller(cls)
        super().__init_subclass__(**kwargs)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        # Written to the dictionary itself: `__setattr__` is not needed here.
        own = self.__dict__
        own["training"] = True
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistent_buffers_set"] = set()
        own["_is_full_backward_hook"] = None
        own.update((table, OrderedDict()) for table in _HOOK_TABLES)
        own["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # Calling

    if TYPE_CHECKING:
        forward: Callable[..., Any]  # subclasses have parameters of their own
    else:

        def forward(self, *input: Any) -> Any:
            """Define the computation of a call. Every subclass overrides this method."""
            raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if self._call_hooks or watchers:
                return watched_call(self, args, kwargs)
            return self.forward(*args, **kwargs) if kwargs else self.forward(*args)
        except Exception as error:
            shorten(error)
            raise

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module without its compiled program."""
        return call.called_as_it_is(self, args, kwargs)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before each `forward`. A result other than None replaces the arguments.

        Args:
            prepend: whether to call the hook before the existing hooks of the module.
            with_kwargs: whether to call `hook(module, args, kwargs)`, which returns None or a new `(args, kwargs)`.
        """
        extra = {"_forward_pre_hooks_with_kwargs": with_kwargs}
        return call.register(self, "_forward_pre_hooks", hook, prepend, extra)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after each `forward`. A result other than None replaces the output.

        Args:
            prepend: whether to call the hook before the existing hooks of the module.
            with_kwargs: whether to call `hook(module, args, kwargs, output)`.
            always_call: whether to call the hook, with None as the output, if the call raises an exception.
        """
        extra = {"_forward_hooks_with_kwargs": with_kwargs, "_forward_hooks_always_called": always_call}
        return call.register(self, "_forward_hooks", hook, prepend, extra)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` when the gradients of the outputs are known. A result replaces these gradients."""
        return call.register(self, "_backward_pre_hooks", hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` in each backward. A result of the hook replaces `grad_input`.

        `grad_input` and `grad_output` are tuples with an entry for each positional input and each output. Entries for
        values that are not tensors are None.
        """
        call.require_kind_of_backward_hook(self, full=True)
        return call.register(self, "_backward_hooks", hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` with the gradients of the output's node (deprecated)."""
        call.require_kind_of_backward_hook(self, full=False)
        return call.register(self, "_backward_hooks", hook, prepend=False)

    # Registering

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add the parameter `param` under `name`. None reserves the name.

        Raises:
            TypeError: if `name` is not a string, or `param` is not a Parameter.
            KeyError: if the name is empty, contains a dot or is already in use.
        """
        registration.register_parameter(self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add the buffer `tensor` under `name`. A persistent buffer is part of `state_dict`.

        Raises:
            TypeError: if `name` is not a string, or `tensor` is not a tensor.
            KeyError: if the name is empty, contains a dot or is already in use.
        """
        registration.register_buffer(self, name, tensor, persistent)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add the submodule `module` under `name`.

        Raises:
            TypeError: if `name` is not a string, or `module` is not a Module.
            KeyError: if the name is empty, contains a dot or is already in use.
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type_name(module)} is not a Module subclass")
        registration.add_module(self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """An alias of `add_module`."""
        self.add_module(name, module)

    def __getattr__(self, name: str) -> Any:
        try:
            own = self.__dict__
            if "_modules" in own:  # after __init__
                if name in (held := own["_parameters"]):
                    return held[name]
                if name in (held := own["_modules"]):
                    return held[name]
                if name in (held := own["_buffers"]):
                    return held[name]
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        except Exception as error:
            shorten(error)
            raise

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            registration.set_attribute(self, name, value, isinstance(value, Module))
        except Exception as error:
            shorten(error)
            raise

    def __delattr__(self, name: str) -> None:
        registration.delete_attribute(self, name)

    # Finding by name

    def get_submodule(self, target: str) -> Module:
        """Return the submodule with the dotted name `target`, or the module itself for the empty string.

        Raises:
            AttributeError: if a part of the path does not exist or is not a module.
        """
        found: Module = lookup.submodule(self, target)
        return found

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replace the submodule with the dotted name `target` by `module`.

        Args:
            strict: whether the submodule must exist already. Otherwise only its parent must exist.

        Raises:
            ValueError: if `target` is empty or `module` is not a Module.
            AttributeError: if the path does not exist, or names an object that is not a module.
        """
        lookup.replace_submodule(self, target, module, strict)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter with the dotted name `target`. Raise AttributeError if no such parameter exists."""
        return lookup.parameter(self, target)

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer with the dotted name `target`. Raise AttributeError if no such buffer exists."""
        return lookup.buffer(self, target)

    # Walking through

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield `(dotted name, module)` for this module and all its descendants, each once unless `remove_duplicate` is False."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                below = prefix + ("." if prefix else "") + name
                yield from module.named_modules(memo, below, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yield this module and all its descendants, each once unless `remove_duplicate` is False."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield `(name, module)` for the immediate submodules, each once."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """Yield the immediate submodules, each once."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for module_prefix, module in modules:
            for name, member in get_members_fn(module):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield module_prefix + ("." if module_prefix else "") + name, member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield `(dotted name, parameter)`. With `recurse`, include the parameters of submodules."""
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, each once. With `recurse`, include the parameters of submodules."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield `(dotted name, buffer)`. With `recurse`, include the buffers of submodules."""
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers, each once. With `recurse`, include the buffers of submodules."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    # Modes and gradients

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call `fn` with every submodule and then with this module. Return this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set the training mode of this module and all its descendants."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode, like `train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether autograd accumulates gradients into the parameters."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zeros if `set_to_none` is False."""
        if getattr(self, "_is_replica", False):
            warn(
                "Calling .zero_grad() from a module created with nn.DataParallel() has no effect. "
                "The parameters are copied (in a differentiable manner) from the original module. "
                "This means they are not leaf nodes in autograd and so don't accumulate gradients. "
                "If you need gradients in your forward method, consider using autograd.grad instead."
            )
        for param in self.parameters():
            if set_to_none:
                param.grad = None
            elif param.grad is not None:
                param.grad = param.grad.detach()
                param.grad.zero_()

    # Converting

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the data of every parameter, gradient and buffer by the result of `fn`."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        conversion.convert_parameters(self, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Convert floating-point and complex parameters and buffers in place.

        The forms are `to(device, dtype, non_blocking)`, `to(dtype, non_blocking)` and `to(tensor, non_blocking)`.

        Raises:
            TypeError: if the dtype is neither floating point nor complex.
        """
        return self._apply(conversion.converter(*conversion.parse_to(*args, **kwargs)))

    cuda = xpu = ipu = mtia = conversion.to_gpu
    compile = conversion.compiled_in_place

    def type(self, dst_type: torch.dtype | str) -> Self:
        """Cast all parameters and buffers to `dst_type`."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def _cast(self, dtype: torch.dtype) -> Self:
        return self._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)

    def float(self) -> Self:
        """Cast all floating point parameters and buffers to float32."""
        return self._cast(torch.float32)

    def double(self) -> Self:
        """Cast all floating point parameters and buffers to float64."""
        return self._cast(torch.float64)

    def half(self) -> Self:
        """Cast all floating point parameters and buffers to float16."""
        return self._cast(torch.float16)

    def bfloat16(self) -> Self:
        """Cast all floating point parameters and buffers to bfloat16."""
        return self._cast(torch.bfloat16)

    def cpu(self) -> Self:
        """Move all parameters and buffers to the CPU."""
        return self._apply(lambda tensor: tensor.cpu())

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move the parameters and buffers to `device` without copying their values."""
        return self._apply(lambda tensor: torch.empty_like(tensor, device=device), recurse=recurse)

    def share_memory(self) -> Self:
        """Move the data of parameters and buffers to shared memory."""
        return self._apply(lambda tensor: tensor.share_memory_())

    # State dicts

    def get_extra_state(self) -> Any:
        """Return additional state for the state dict. A subclass overrides this method together with `set_extra_state`."""
        raise RuntimeError(state_dict.UNREACHABLE.format("get_extra_state"))

    def set_extra_state(self, state: Any) -> None:
        """Restore the state that `get_extra_state` returned."""
        raise RuntimeError(state_dict.UNREACHABLE.format("set_extra_state"))

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Return all parameters and persistent buffers by their dotted names.

        Args:
            destination: a dictionary to write into instead of a new one.
            prefix: a string to put before every name.
            keep_vars: whether to return the tensors themselves instead of detached tensors.
        """
        if args:
            warn(state_dict.POSITIONAL_ARGUMENTS, FutureWarning)
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        return state_dict.save(self, destination, prefix, keep_vars)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy parameters and buffers from `state_dict` into this module and all its descendants.

        Args:
            strict: whether the keys must be exactly the keys of `self.state_dict()`.
            assign: whether to use the tensors of `state_dict` themselves instead of copying their values.

        Returns:
            A named tuple `(missing_keys, unexpected_keys)`.

        Raises:
            RuntimeError: if shapes do not match, or if `strict` is true and keys do not match.
        """
        return _load(self, state_dict, strict, assign)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Save this module's own state. Subclasses with more state extend this method."""
        has_extra_state = type(self).get_extra_state is not Module.get_extra_state
        state_dict.save_own(self, destination, prefix, keep_vars, has_extra_state)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own state. Subclasses with more state extend this method."""
        has_extra_state = type(self).set_extra_state is not Module.set_extra_state
        _load_own(
            self, has_extra_state, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict` is created."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after `state_dict` is created. The hook returns None."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return add_hook(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Like `register_state_dict_post_hook`, but the result of the hook replaces the state dict."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return add_hook(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)` before loading."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return add_hook(self._load_state_dict_pre_hooks, state_dict._WrappedHook(hook, self if with_module else None))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after loading. The hook may change the two lists of keys in place."""
        return add_hook(self._load_state_dict_post_hooks, hook)

    # Copying and printing

    def __getstate__(self) -> dict[str, Any]:
        return call.without_compiled_form(self.__dict__.copy())

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({table: OrderedDict() for table in _HOOK_TABLES if table not in state}, **state)
        if "_call_hooks" not in state:  # PyTorch has pickled the module
            for table in ("_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_pre_hooks"):
                self._call_hooks.update(dict.fromkeys(getattr(self, table), True))

    def _replicate_for_data_parallel(self) -> Module:
        """Return a copy that shares all tensors, but has separate dictionaries of parameters, buffers and submodules."""
        replica = type(self).__new__(type(self))
        replica.__dict__.update(call.without_compiled_form(self.__dict__.copy()))
        replica.__dict__["_parameters"] = self._parameters.copy()
        replica.__dict__["_buffers"] = self._buffers.copy()
        replica.__dict__["_modules"] = self._modules.copy()
        replica.__dict__["_is_replica"] = True
        return replica

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return the text between the parentheses of the printed form. Subclasses override this method."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self._repr_names)

    __repr__ = printed

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted(name for name in names if not name[0].isdigit())


end_methods_at_caller(Module, but=("__call__", "__getattr__", "__setattr__", "forward"))

# `load_state_dict` has a parameter of the same name as the module of functions.
_load, _load_own = state_dict.load, state_dict.load_own
