"""Saving and loading the state of a module by name, with hooks."""

from __future__ import annotations

import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import Any

import adjoint as torch
from adjoint import Tensor

from ..._runtime.tracebacks import warn
from ..parameter import Parameter, is_lazy
from .registration import Registered

EXTRA_STATE_KEY = "_extra_state"

UNREACHABLE = (
    "Reached a code path in Module.{}() that should never be called. Please file an issue at "
    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
)
POSITIONAL_ARGUMENTS = (
    "Positional args are being deprecated, use kwargs instead. Refer to "
    "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details."
)


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """The missing and unexpected keys that `load_state_dict` has found."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _WrappedHook:
    """A hook that runs before loading. A hook that was registered with the module receives the module as first argument."""

    def __init__(self, hook: Callable[..., Any], module: Registered | None) -> None:
        self.hook = hook
        self.with_module = module is not None
        # A weak reference: the hook is stored in the module's own table.
        self.module = None if module is None else weakref.ref(module)

    def __call__(self, *args: Any) -> Any:
        if self.module is None:
            return self.hook(*args)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args)

    def __getstate__(self) -> dict[str, Any]:
        state = {"hook": self.hook, "with_module": self.with_module}
        return state if self.module is None else {**state, "module": self.module()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["hook"], state.get("module"))  # type: ignore[misc]


def save(module: Registered, destination: Any, prefix: str, keep_vars: bool) -> Any:
    """Write the state of `module` and its descendants into `destination`, by default a new ordered dictionary."""
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    local_metadata = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = local_metadata
    for hook in module._state_dict_pre_hooks.values():
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in module._state_dict_hooks.values():
        result = hook(module, destination, prefix, local_metadata)
        if getattr(hook, "_from_public_api", False):
            if result is not None:
                raise RuntimeError("state_dict post-hook must return None")
        elif result is not None:
            destination = result
    return destination


def save_own(module: Registered, destination: Any, prefix: str, keep_vars: bool, has_extra_state: bool) -> None:
    """Write the parameters, persistent buffers and extra state that `module` itself owns."""
    for name, tensor in _own_state(module).items():
        destination[prefix + name] = tensor if keep_vars else tensor.detach()
    if has_extra_state:
        destination[prefix + EXTRA_STATE_KEY] = module.get_extra_state()


def load(module: Registered, state_dict: Mapping[str, Any], strict: bool, assign: bool) -> _IncompatibleKeys:
    """Load `state_dict` into `module` and its descendants. Collect all errors before raising one."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    missing_keys: list[str] = []
    unexpected_keys: list[str] = []
    error_msgs: list[str] = []
    metadata = getattr(state_dict, "_metadata", None)
    state = OrderedDict(state_dict)
    if metadata is not None:
        state._metadata = metadata  # type: ignore[attr-defined]

    _load_below(module, state, "", metadata, assign, missing_keys, unexpected_keys, error_msgs)
    if strict:
        for kind, keys in (("Unexpected", unexpected_keys), ("Missing", missing_keys)):
            if keys:
                listed = ", ".join(f'"{key}"' for key in keys)
                error_msgs.insert(0, f"{kind} key(s) in state_dict: {listed}. ")
    if error_msgs:
        listed = "\n\t".join(error_msgs)
        raise RuntimeError(f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{listed}")
    return _IncompatibleKeys(missing_keys, unexpected_keys)


def _load_below(
    module: Registered, state_dict: Any, prefix: str, metadata: Any, assign: bool, *found: list[str]
) -> None:
    """Load the state of `module` and its descendants. `found`: missing keys, unexpected keys, and messages of errors."""
    local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local_metadata["assign_to_params_buffers"] = assign
    module._load_from_state_dict(state_dict, prefix, local_metadata, True, *found)
    for name, child in module._modules.items():
        if child is not None:
            child_prefix = f"{prefix}{name}."
            child_state = {key: value for key, value in state_dict.items() if key.startswith(child_prefix)}
            _load_below(child, child_state, child_prefix, metadata, assign, *found)
    incompatible_keys = _IncompatibleKeys(*found[:2])
    for hook in module._load_state_dict_post_hooks.values():
        result = hook(module, incompatible_keys)
        if result is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, "
                "if incompatible_keys need to be modified, it should be done inplace."
            )


def load_own(
    module: Registered,
    has_extra_state: bool,
    state_dict: Any,
    prefix: str,
    local_metadata: dict[str, Any],
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    """Load the state that `module` itself owns. Record missing and unexpected keys, and mismatches."""
    for hook in module._load_state_dict_pre_hooks.values():
        hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
    own = _own_state(module)
    assign = local_metadata.get("assign_to_params_buffers", False)
    for name, param in own.items():
        key = prefix + name
        if key in state_dict:
            _load_tensor(module, name, param, state_dict[key], key, assign, error_msgs)
        elif strict:
            missing_keys.append(key)
    extra_state_key = prefix + EXTRA_STATE_KEY
    if has_extra_state:
        if extra_state_key in state_dict:
            module.set_extra_state(state_dict[extra_state_key])
        elif strict:
            missing_keys.append(extra_state_key)
    elif strict and extra_state_key in state_dict:
        unexpected_keys.append(extra_state_key)
    if strict:
        for key in state_dict:
            if key.startswith(prefix) and key != extra_state_key:
                first, dot, _ = key[len(prefix) :].partition(".")
                if first not in (module._modules if dot else own):
                    unexpected_keys.append(key)


def _load_tensor(
    module: Registered, name: str, param: Tensor, value: Any, key: str, assign: bool, error_msgs: list[str]
) -> None:
    if not isinstance(value, Tensor):
        error_msgs.append(
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
            f"but received {type(value)}"
        )
        return
    if is_lazy(param) and is_lazy(value):
        return  # neither has a shape yet
    if param.dim() == 0 and value.dim() == 1 and value.shape[0] == 1:
        value = value[0]  # PyTorch 0.3 had no zero-dimensional tensors; its checkpoints hold one element here.
    if value.shape != param.shape:
        error_msgs.append(
            f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
            f"the shape in current model is {param.shape}."
        )
        return
    if param.is_meta and not value.is_meta and not assign:
        warn(
            f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is "
            "a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their corresponding key in "
            "the module instead of copying them in place?)"
        )
    swap = torch.__future__.get_swap_module_params_on_conversion()
    try:
        if swap:
            with torch.no_grad():
                _exchange(param, value, assign)
        elif assign:
            if isinstance(param, Parameter):
                if not isinstance(value, Parameter):
                    value = Parameter(value, requires_grad=param.requires_grad)
                else:
                    value.requires_grad_(param.requires_grad)
            setattr(module, name, value)
        else:
            with torch.no_grad():
                param.copy_(value)
    except Exception as exception:  # noqa: BLE001  (all errors are collected)
        error_msgs.append(
            f'While {"swapping" if swap else "copying"} the parameter named "{key}", whose dimensions in the model '
            f"are {param.size()} and whose dimensions in the checkpoint are {value.size()}, "
            f"an exception occurred : {exception.args}."
        )


def _exchange(param: Tensor, value: Tensor, assign: bool) -> None:
    """Replace `param` by the result of `module_load`."""
    new = param.module_load(value, assign=assign)
    if new is value or new is param:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in module_load"
        )
    if isinstance(param, Parameter):
        new = (
            new.requires_grad_(param.requires_grad)
            if isinstance(new, Parameter)
            else Parameter(new, param.requires_grad)
        )
    torch.utils.swap_tensors(param, new)


def _own_state(module: Registered) -> dict[str, Tensor]:
    """Return the parameters and persistent buffers of `module` itself, by name."""
    own: dict[str, Tensor] = {name: p for name, p in module._parameters.items() if p is not None}
    dropped = module._non_persistent_buffers_set
    own.update({name: b for name, b in module._buffers.items() if b is not None and name not in dropped})
    return own
