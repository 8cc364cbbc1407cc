"""The state of models and optimizers by the names of parameters, whatever is shared out; tensors say what part they are."""

from __future__ import annotations

from typing import Any

import adjoint as torch

__all__ = ["get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_state_dict"]


def get_model_state_dict(model: Any) -> dict[str, Any]:
    """The state of a model, in which parameters that are shared out are this rank's parts."""
    return dict(model.state_dict(keep_vars=True))


def get_optimizer_state_dict(model: Any, optimizer: Any) -> dict[str, Any]:
    """The state of an optimizer by the names of the model's parameters, and its options.

    An optimizer that has made no step gets the state that it has before the first one, for `load` to fill.
    """
    if not optimizer.state:
        _begin(optimizer)
    names = {parameter: name for name, parameter in model.named_parameters()}
    state = {}
    for parameter, held in optimizer.state.items():
        sharding = getattr(parameter, "_sharding", None)
        for value in held.values():
            if sharding is not None and getattr(value, "shape", None) == parameter.shape:
                value._sharding = sharding
        state[names[parameter]] = held
    groups = [
        {**group, "params": [names[parameter] for parameter in group["params"]]} for group in optimizer.param_groups
    ]
    return {"state": state, "param_groups": groups}


def _begin(optimizer: Any) -> None:
    """Let an optimizer make its state, by a step that changes nothing."""
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


def get_state_dict(model: Any, optimizer: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The states of a model and of its optimizer."""
    return get_model_state_dict(model), get_optimizer_state_dict(model, optimizer)


def set_state_dict(
    model: Any, optimizer: Any, *, model_state_dict: dict[str, Any], optim_state_dict: dict[str, Any]
) -> None:
    """Take over what `get_state_dict` has given, and `load` has filled."""
    model.load_state_dict(model_state_dict)
    named = dict(model.named_parameters())
    for group, saved in zip(optimizer.param_groups, optim_state_dict["param_groups"], strict=True):
        group.update((name, value) for name, value in saved.items() if name != "params")
    for name, held in optim_state_dict["state"].items():
        optimizer.state[named[name]] = dict(held)
