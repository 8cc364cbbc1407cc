"""Assignment of parameters, buffers and submodules to a module.

Other files annotate modules with the interface `Registered`, so they need not import `Module`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any, Protocol

import adjoint as torch
from adjoint import Tensor

from ...utils.hooks import RemovableHandle
from ..parameter import Buffer, Parameter
from .global_hooks import TABLES


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, parameter)` when any module registers a parameter. A result replaces the parameter."""
    return add_hook(TABLES._global_parameter_registration_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` when any module registers a buffer. A result replaces the buffer."""
    return add_hook(TABLES._global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, submodule)` when any module registers a submodule. A result replaces the submodule."""
    return add_hook(TABLES._global_module_registration_hooks, hook)


def register_parameter(module: Registered, name: str, param: Parameter | None) -> None:
    """Add a parameter to `module`; see `Module.register_parameter`."""
    if "_parameters" not in module.__dict__:
        raise AttributeError("cannot assign parameter before Module.__init__() call")
    _require_free_name(module, name, "parameter", module._parameters)
    if param is not None and not isinstance(param, Parameter):
        raise TypeError(
            f"cannot assign '{type_name(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
        )
    if param is not None and param.grad_fn is not None:
        raise ValueError(
            f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. "
            f"To express '{name}' as a function of another Tensor, compute the value in the forward() method."
        )
    hooks = TABLES._global_parameter_registration_hooks
    module._parameters[name] = None if param is None else _consult(hooks, module, name, param)


def register_buffer(module: Registered, name: str, tensor: Tensor | None, persistent: bool) -> None:
    """Add a buffer to `module`; see `Module.register_buffer`."""
    if "_buffers" not in module.__dict__:
        raise AttributeError("cannot assign buffer before Module.__init__() call")
    _require_free_name(module, name, "buffer", module._buffers)
    if tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(
            f"cannot assign '{type_name(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
        )
    module._buffers[name] = _consult(TABLES._global_buffer_registration_hooks, module, name, tensor)
    if persistent:
        module._non_persistent_buffers_set.discard(name)
    else:
        module._non_persistent_buffers_set.add(name)


def add_module(module: Registered, name: str, child: Registered | None) -> None:
    """Add a submodule to `module`; see `Module.add_module`."""
    _require_free_name(module, name, "module", module._modules)
    module._modules[name] = _consult(TABLES._global_module_registration_hooks, module, name, child)


def _require_free_name(module: Registered, name: str, kind: str, registered: Mapping[str, Any]) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {type_name(name)}")
    if hasattr(module, name) and name not in registered:
        raise KeyError(f"attribute '{name}' already exists")
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')


def set_attribute(module: Registered, name: str, value: Any, is_module: bool) -> None:
    """Assign an attribute.

    Register parameters, buffers and submodules. Raise TypeError if another kind of value would replace a registered
    value.
    """
    own = module.__dict__
    if isinstance(value, Parameter):
        if "_parameters" not in own:
            raise AttributeError("cannot assign parameters before Module.__init__() call")
        _forget(module, name, except_in="_parameters")
        module.register_parameter(name, value)
    elif name in own.get("_parameters", ()):
        if value is not None:
            raise TypeError(
                f"cannot assign '{type_name(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
            )
        module.register_parameter(name, value)
    elif is_module:
        if "_modules" not in own:
            raise AttributeError("cannot assign module before Module.__init__() call")
        _forget(module, name, except_in="_modules")
        own["_modules"][name] = _consult(TABLES._global_module_registration_hooks, module, name, value)
    elif name in own.get("_modules", ()):
        if value is not None:
            raise TypeError(
                f"cannot assign '{type_name(value)}' as child module '{name}' (torch.nn.Module or None expected)"
            )
        own["_modules"][name] = _consult(TABLES._global_module_registration_hooks, module, name, value)
    elif name in own.get("_buffers", ()) or isinstance(value, Buffer):
        _set_buffer(module, name, value)
    else:
        object.__setattr__(module, name, value)


def _set_buffer(module: Registered, name: str, value: Any) -> None:
    if isinstance(value, Buffer):
        if "_buffers" not in module.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        persistent = value.persistent
    elif value is None or isinstance(value, Tensor):
        persistent = name not in module._non_persistent_buffers_set
    else:
        raise TypeError(
            f"cannot assign '{type_name(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
        )
    register: Any = module.register_buffer
    ordinary = getattr(register, "__func__", None) is torch.nn.Module.register_buffer
    if ordinary or "persistent" in signature(register).parameters:
        register(name, value, persistent)
    elif persistent:
        register(name, value)
    else:
        raise RuntimeError(
            "Registering a non-persistent buffer on a Module subclass that implements register_buffer() without the persistent "
            "argument is not allowed."
        )


def delete_attribute(module: Registered, name: str) -> None:
    """Delete an attribute, whether it is registered or not."""
    for registered in (module._parameters, module._buffers, module._modules):
        if name in registered:
            del registered[name]
            module._non_persistent_buffers_set.discard(name)
            return
    if name not in module.__dict__ and not hasattr(type(module), name):
        raise AttributeError(f"'{type(module).__name__}' object has no attribute '{name}'")
    object.__delattr__(module, name)


def _forget(module: Registered, name: str, except_in: str) -> None:
    """Remove the previous registration of `name`, so that it can be registered as another kind."""
    own = module.__dict__
    own.pop(name, None)
    for kind in ("_parameters", "_buffers", "_modules"):
        if kind != except_in:
            own[kind].pop(name, None)
    own["_non_persistent_buffers_set"].discard(name)


def add_hook(hooks: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any]) -> RemovableHandle:
    """Add `hook` to a table of hooks."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def _consult(hooks: OrderedDict[int, Callable[..., Any]], module: Registered, name: str, value: Any) -> Any:
    """Call the registration hooks for a new value. Each hook may replace the value."""
    for hook in hooks.values():
        result = hook(module, name, value)
        if result is not None:
            value = result
    return value


def type_name(value: Any) -> str:
    """Return the name of a value's type in PyTorch's errors, such as `torch.FloatTensor` for a tensor."""
    return value.type() if isinstance(value, Tensor) else type(value).__name__


class Registered(Protocol):
    """A module with parameters, buffers and submodules by name. The tables of hooks are attributes."""

    _version: int
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _is_full_backward_hook: bool | None

    def __getattr__(self, name: str) -> Any: ...
