"""The state of models and optimizers by the names of parameters, with sharded or with whole tensors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import adjoint as torch

from ..groups import get_rank, is_initialized
from ..objects import broadcast_object_list
from ..tensor.dtensor import DTensor, part_of

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]


@dataclass
class StateDictOptions:
    """The options of reading and setting states.

    Attributes:
        full_state_dict: whether to use whole tensors instead of parts.
        cpu_offload: with `full_state_dict`, whether only rank 0 gets the tensors. The other ranks get an empty dict.
        ignore_frozen_params: whether to omit parameters that do not require grad.
        strict: whether all names must exist when a state is set.
        broadcast_from_rank0: with `full_state_dict`, whether to use the state of rank 0. The other ranks may pass an
            empty dict.
        flatten_optimizer_state_dict: whether the state of an optimizer is one dict with dotted names.
        keep_submodule_prefixes, dsd_fqn_modifiers: accepted for compatibility with PyTorch.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _options(options: StateDictOptions | None) -> StateDictOptions:
    found = options or StateDictOptions()
    if found.broadcast_from_rank0 and not found.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return found


def _wrappers(model: Any) -> list[str]:
    """Return the name prefixes that a `DistributedDataParallel` adds, the longest first.

    The names in this module do not contain these prefixes.
    """
    kind = torch.nn.parallel.DistributedDataParallel
    found = [f"{name}.module." if name else "module." for name, each in model.named_modules() if isinstance(each, kind)]
    return sorted(found, key=len, reverse=True)


def _outside(name: str, wrappers: list[str]) -> str:
    """Return a name without the prefixes of wrappers."""
    for wrapper in wrappers:
        if name.startswith(wrapper):
            name = wrapper.removesuffix("module.") + name[len(wrapper) :]
    return name


def _given(value: Any, options: StateDictOptions) -> Any:
    """Return a tensor in the form that the options request. All processes gather it."""
    if not options.full_state_dict or not isinstance(value, torch.Tensor):
        return value
    return value.full_tensor().detach() if isinstance(value, DTensor) else value.detach().clone()


def _gets_no_tensors(options: StateDictOptions) -> bool:
    """Return whether this process gets no tensors."""
    return options.full_state_dict and options.cpu_offload and is_initialized() and get_rank() != 0


def get_model_state_dict(
    model: Any, *, submodules: Iterable[Any] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Return the state of a model. A sharded parameter is a `DTensor`, or a whole tensor if the options request it."""
    options, wrappers = _options(options), _wrappers(model)
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    chosen = set(submodules or ())
    inside = tuple(f"{name}." for name, each in model.named_modules() if each in chosen)
    state = {}
    for name, value in model.state_dict().items():
        if (options.ignore_frozen_params and name in frozen) or (chosen and not name.startswith(inside)):
            continue
        state[_outside(name, wrappers)] = _given(value, options)
    return {} if _gets_no_tensors(options) else state


def set_model_state_dict(
    model: Any, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Set the state of a model. Each process takes its part of whole tensors.

    Returns:
        The missing and unexpected keys, as `load_state_dict` returns them.
    """
    options, wrappers = _options(options), _wrappers(model)
    state = _of_rank_0(model_state_dict) if options.broadcast_from_rank0 else model_state_dict
    own = model.state_dict()
    taken = {}
    for name, value in own.items():
        outside = _outside(name, wrappers)
        if outside in state:
            taken[name] = _taken(state[outside], value)
    known = {_outside(name, wrappers) for name in own}
    taken |= {name: value for name, value in state.items() if name not in known}
    return model.load_state_dict(taken, strict=options.strict)


def _of_rank_0(state: Any) -> Any:
    """Return the value of rank 0."""
    held = [state if get_rank() == 0 else None]
    broadcast_object_list(held, 0)
    return held[0]


def _taken(value: Any, like: Any) -> Any:
    """Return a tensor, divided like the tensor that it replaces."""
    if isinstance(like, DTensor) and isinstance(value, torch.Tensor) and not isinstance(value, DTensor):
        if value.shape != like.shape:
            return value  # `load_state_dict` raises the error
        return like._like(part_of(value, like.device_mesh, like.placements).to(like.dtype))
    return value


def _listed(optimizers: Any) -> list[Any]:
    return [optimizers] if isinstance(optimizers, torch.optim.Optimizer) else list(optimizers)


def _names(model: Any) -> dict[Any, str]:
    wrappers = _wrappers(model)
    return {parameter: _outside(name, wrappers) for name, parameter in model.named_parameters()}


def get_optimizer_state_dict(
    model: Any, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Return the state of optimizers by the names of the model's parameters, and their options.

    If an optimizer has made no step, return its initial state, which `load` can fill.
    """
    options, names = _options(options), _names(model)
    state: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    for optimizer in _listed(optimizers):
        if not optimizer.state:
            _begin(optimizer)
        for parameter, held in optimizer.state.items():
            state[names[parameter]] = {key: _given(value, options) for key, value in held.items()}
        groups += [
            {**group, "params": [names[parameter] for parameter in group["params"]]} for group in optimizer.param_groups
        ]
    if _gets_no_tensors(options):
        return {}
    return (
        _flattened(state, groups) if options.flatten_optimizer_state_dict else {"state": state, "param_groups": groups}
    )


def _flattened(state: dict[str, Any], groups: list[dict[str, Any]]) -> dict[str, Any]:
    flat = {f"state.{name}.{key}": value for name, held in state.items() for key, value in held.items()}
    for group in groups:
        for name in group["params"]:
            flat |= {f"param_groups.{name}.{key}": value for key, value in group.items() if key != "params"}
    return flat


def _begin(optimizer: Any) -> None:
    """Create the state of an optimizer, by a step that changes nothing."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    held = [(parameter.grad, parameter.detach().clone()) for parameter in parameters]
    rates = [group["lr"] for group in optimizer.param_groups]
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
    for group in optimizer.param_groups:
        group["lr"] = torch.zeros_like(group["lr"]) if isinstance(group["lr"], torch.Tensor) else 0.0
    optimizer.step()
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate
    with torch.no_grad():
        for parameter, (grad, value) in zip(parameters, held, strict=True):
            parameter.grad = grad
            parameter.copy_(value)
    for state in optimizer.state.values():
        if isinstance(state.get("step"), torch.Tensor):
            state["step"].zero_()


def set_optimizer_state_dict(
    model: Any, optimizers: Any, optim_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> None:
    """Set the state of optimizers. Each process takes its part of whole tensors.

    Raises:
        RuntimeError: if the state lacks the options of a parameter.
    """
    options, names = _options(options), _names(model)
    given = _of_rank_0(optim_state_dict) if options.broadcast_from_rank0 else optim_state_dict
    for optimizer in _listed(optimizers):
        own = {names[parameter]: parameter for group in optimizer.param_groups for parameter in group["params"]}
        nested = _nested(given, own) if options.flatten_optimizer_state_dict else given
        for group in optimizer.param_groups:
            for parameter in group["params"][:1]:
                saved = next((each for each in nested["param_groups"] if names[parameter] in each["params"]), None)
                if saved is None:
                    raise RuntimeError(f"the state of the optimizer has no options for {names[parameter]}")
                group.update((key, value) for key, value in saved.items() if key != "params")
        for name, held in nested["state"].items():
            if name in own:
                optimizer.state[own[name]] = {key: _state_taken(value, own[name]) for key, value in held.items()}


def _state_taken(value: Any, parameter: Any) -> Any:
    same = isinstance(value, torch.Tensor) and value.shape == parameter.shape
    return _taken(value, parameter) if same else value


def _nested(flat: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Undo `_flattened` for parameters of these names."""
    state: dict[str, Any] = {}
    groups = []
    for name in names:
        for start, place in (("state", state), ("param_groups", None)):
            beginning = f"{start}.{name}."
            found = {
                key[len(beginning) :]: value
                for key, value in flat.items()
                if key.startswith(beginning) and "." not in key[len(beginning) :]
            }
            if place is None:
                groups.append({**found, "params": [name]})
            elif found:
                place[name] = found
    return {"state": state, "param_groups": groups}


def get_state_dict(
    model: Any, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the states of a model and of its optimizers."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, options=options),
    )


def set_state_dict(
    model: Any,
    optimizers: Any,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Set the states of a model and of its optimizers. Return the missing and unexpected keys of the model."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
