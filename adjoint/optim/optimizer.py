"""The base of all optimizers: groups of parameters with their options, the state of each parameter, and hooks."""

from __future__ import annotations

import functools
import itertools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable
from copy import deepcopy
from typing import Any

import adjoint as torch
from adjoint import Tensor

from .._runtime.tracebacks import end_at_caller, end_constructor_at_caller, shorten, warn
from ..utils.hooks import RemovableHandle

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

Params = Iterable[Any]
ParamsT = params_t = _params_t = Params
Closure = Callable[[], Any]


class _Required:
    """The default of an option that every group must specify."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()

_global_optimizer_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_optimizer_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before each step of every optimizer."""
    return _add_hook(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after each step of every optimizer."""
    return _add_hook(_global_optimizer_post_hooks, hook)


def _add_hook(
    hooks: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any], prepend: bool = False
) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a `step` method: call the hooks of the optimizer and the global hooks, and mark a section in profiles."""

    @functools.wraps(step)
    def hooked_step(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        try:
            own = self.__dict__
            if "_optimizer_step_pre_hooks" not in own:  # a subclass that never called __init__
                self._make_hook_tables()
            if not (
                own["_optimizer_step_pre_hooks"]
                or own["_optimizer_step_post_hooks"]
                or _global_optimizer_pre_hooks
                or _global_optimizer_post_hooks
                or torch.autograd._profiler_enabled()
            ):
                return step(self, *args, **kwargs)
            with torch.autograd.profiler.record_function(f"Optimizer.step#{type(self).__name__}.step"):
                return among_hooks(self, *args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    def among_hooks(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        given = (self, *args)
        for hook in (*_global_optimizer_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
            result = hook(self, given, kwargs)
            if result is not None:
                if not (isinstance(result, tuple) and len(result) == 2):
                    named = f"<function {type(self).__name__}.step at {id(step):#x}>"
                    raise RuntimeError(
                        f"{named} must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                given, kwargs = result
        out = step(*given, **kwargs)
        for hook in (*self._optimizer_step_post_hooks.values(), *_global_optimizer_post_hooks.values()):
            hook(self, given, kwargs)
        return out

    hooked_step.hooked = True  # type: ignore[attr-defined]
    return hooked_step


class Optimizer:
    """The base class of all optimizers.

    Args:
        params: parameters, `(name, parameter)` pairs, or dictionaries that define groups. A group has its parameters
            under the key "params", and may have separate options.
        defaults: the default options of groups.

    A subclass defines `step`, or defines the update of a group (`_update_group`).
    """

    # The values of newer options for groups that are loaded from an older state.
    _later_options: dict[str, Any] = {}
    # The names of tensors that are numbers in an older state.
    _later_tensors: tuple[str, ...] = ()

    param_groups: list[dict[str, Any]]
    state: defaultdict[Any, Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        end_constructor_at_caller(cls)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hook_tables()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {_type_name(params)}"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        param_groups = list(params)
        if len(param_groups) == 0:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(param_groups[0], dict):
            param_groups = [{"params": param_groups}]
        for param_group in param_groups:
            self.add_param_group(param_group)

    def _make_hook_tables(self) -> None:
        self._optimizer_step_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_step_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()

    # Stepping

    @_with_hooks
    def step(self, closure: Closure | None = None) -> Any:
        """Update all parameters that have a gradient.

        Args:
            closure: a function that reevaluates the model and returns the loss. `step` returns this loss.
        """
        if type(self)._update_group is Optimizer._update_group:
            raise NotImplementedError
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        # No `with` block, which would take as long as the update of a small parameter.
        grad_enabled = torch.is_grad_enabled()
        differentiable = self.defaults.get("differentiable", False)
        torch._C._set_grad_enabled(differentiable)
        try:
            for group in self.param_groups:
                self._update_group(group)
        finally:
            torch._C._set_grad_enabled(grad_enabled)
        return loss

    def _update_group(self, group: dict[str, Any]) -> None:
        """Update in place the parameters of a group that have a gradient."""
        raise NotImplementedError

    def _gradients(self, group: dict[str, Any]) -> list[Any]:
        """Return the gradients of the parameters of a group, with None for parameters without gradient."""
        return [param.grad for param in group["params"]]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zeros if `set_to_none` is False."""
        if torch.autograd._profiler_enabled():
            with torch.autograd.profiler.record_function(f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"):
                return self._clear(set_to_none)
        return self._clear(set_to_none)

    def _clear(self, set_to_none: bool) -> None:
        if set_to_none:
            for group in self.param_groups:
                for param in group["params"]:
                    param.grad = None
            return
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                if param.grad.grad_fn is not None:
                    param.grad.detach_()
                else:
                    param.grad.requires_grad_(False)
                param.grad.zero_()

    # Groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with separate options.

        Raises:
            TypeError: if `param_group` is not a dictionary, or if "params" contains objects that are not tensors.
            ValueError: if a tensor is not a leaf or is already in a group, or if only some parameters have names.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            param_group["params"] = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in "
                "sets will change between runs. Please use a list instead."
            )
        else:
            param_group["params"] = list(params)
        self._split_names(param_group)
        for param in param_group["params"]:
            if not isinstance(param, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {_type_name(param)}")
            if not self.defaults.get("differentiable", None) and not (param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        self._require_new(param_group)
        self.param_groups.append(param_group)

    @staticmethod
    def _split_names(param_group: dict[str, Any]) -> None:
        params = param_group["params"]
        named = [isinstance(param, tuple) for param in params]
        if not any(named):
            return
        if not all(named):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        param_group["params"] = [param for _, param in params]
        param_group["param_names"] = [name for name, _ in params]

    def _require_new(self, param_group: dict[str, Any]) -> None:
        params = param_group["params"]
        own = set(params)
        if len(params) != len(own):
            warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information"
            )
        present = {param for group in self.param_groups for param in group["params"]}
        if not present.isdisjoint(own):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in param_group) != ("param_names" in self.param_groups[0]):
            kind = "with names to the optimizer" if "param_names" in param_group else "without names to the optimizer"
            raise ValueError(f"all optimizer param groups should be with/without names. cannot add param group {kind}")

    # State dicts

    def state_dict(self) -> dict[str, Any]:
        """Return `{"state": ..., "param_groups": ...}`, with numbers in place of parameters."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        number_of: dict[int, int] = {}
        packed_groups = []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            for param in group["params"]:
                number_of.setdefault(id(param), len(number_of))
            packed["params"] = [number_of[id(param)] for param in group["params"]]
            packed_groups.append(packed)
        packed_state = {
            number_of[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()
        }
        state_dict = {"state": packed_state, "param_groups": packed_groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            result = hook(self, state_dict)
            if result is not None:
                state_dict = result
        return state_dict

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned. Tensors are converted to the dtype of their parameters.

        Raises:
            ValueError: if the groups do not match.
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            result = hook(self, state_dict)
            if result is not None:
                state_dict = result
        groups = self.param_groups
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved_groups, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        saved_ids = itertools.chain.from_iterable(group["params"] for group in saved_groups)
        params = itertools.chain.from_iterable(group["params"] for group in groups)
        param_of = dict(zip(saved_ids, params, strict=True))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in param_of:

                def convert(tensor: Tensor, name: Hashable, key: Any = key) -> Tensor:
                    return self._process_value_according_to_param_policy(param_of[key], tensor, key, saved_groups, name)

                state[param_of[key]] = _cast(value, convert)
            else:
                state[key] = value
        new_groups = []
        for group, saved in zip(groups, saved_groups, strict=True):
            saved["params"] = group["params"]
            if "param_names" in group and "param_names" not in saved:
                saved["param_names"] = group["param_names"]
            new_groups.append(saved)
        self.__setstate__({"state": state, "param_groups": new_groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    @staticmethod
    def _process_value_according_to_param_policy(
        param: Tensor, value: Tensor, param_id: int, param_groups: list[dict[str, Any]], key: Hashable = None
    ) -> Tensor:
        """Convert a loaded tensor to the dtype of `param`, or a step count to float32 if capturable or fused."""
        if key != "step":
            return value.to(param.dtype) if param.is_floating_point() else value
        group = next((group for group in param_groups if param_id in group["params"]), {})
        return value.to(torch.float32) if group.get("fused") or group.get("capturable") else value

    # Hooks

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step. The hook returns None or new `(args, kwargs)`."""
        return _add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return _add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict` is created."""
        return _add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict` is created. Its result, if any, replaces the state dict."""
        return _add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading. Its result, if any, replaces the state dict."""
        return _add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after loading."""
        return _add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # Copying and printing

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_optimizer_step_pre_hooks" not in self.__dict__:
            self._make_hook_tables()
        self.defaults.setdefault("differentiable", False)
        for group in self.param_groups:
            for name, value in self._later_options.items():
                group.setdefault(name, value)
            for values in (self.state[param] for param in group["params"] if param in self.state):
                for name in self._later_tensors:
                    if name in values and not isinstance(values[name], Tensor):
                        values[name] = torch.tensor(float(values[name]), dtype=scalar_dtype(group))

    def __repr__(self) -> str:
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group.keys()):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"


def scalar_dtype(group: dict[str, Any]) -> torch.dtype:
    """Return the dtype of the numbers that the state of a parameter stores as tensors, such as its step count."""
    return _get_scalar_dtype(group.get("fused"))


def _get_scalar_dtype(is_fused: bool | None = None) -> torch.dtype:
    return torch.float64 if torch.get_default_dtype() is torch.float64 and not is_fused else torch.float32


def _type_name(value: Any) -> str:
    """Return the name of a value's type in PyTorch's errors, such as `torch.FloatTensor` for a tensor."""
    return value.type() if isinstance(value, Tensor) else type(value).__name__


def _cast(value: Any, convert: Callable[..., Tensor], key: Hashable = None) -> Any:
    """Apply `convert(tensor, key)` to the tensors in loaded state."""
    if isinstance(value, Tensor):
        return convert(value, key)
    if isinstance(value, dict):
        return {k: _cast(v, convert, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return type(value)(_cast(v, convert) for v in value)  # type: ignore[call-arg]
    return value


# ---------------------------------------------------------------------------------------------------------------------
# Names that optimizers outside this package import


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Record the operations of `step` if the optimizer is `differentiable`."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with torch.set_grad_enabled(self.defaults["differentiable"]):
            return func(self, *args, **kwargs)

    return step


def _default_to_fused_or_foreach(params: Any, differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Decide that a step uses neither fused kernels nor lists of tensors, which do not exist here."""
    return False, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Return the device types that can capture steps."""
    return ["cuda", "xpu", "hpu", "privateuseone"] + ["xla"] * supports_xla


def _get_value(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    return x


def _dispatch_sqrt(x: Any) -> Any:
    return x.sqrt() if isinstance(x, Tensor) else x**0.5


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Replace complex parameters, and their state tensors, by views with real numbers."""
    for number, param in enumerate(params):
        if torch.is_complex(param):
            params[number] = torch.view_as_real(param)
            for tensors in state_and_grads:
                tensors[number] = torch.view_as_real(tensors[number])


end_at_caller(Optimizer, "add_param_group", "load_state_dict", "state_dict")
