"""An optimizer with other parameters and another state for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import adjoint as torch

from .optimizer import Optimizer

__all__ = ["swap_in_optimizer_params_and_state"]

NAME = "swap_in_optimizer_params_and_state"


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, torch.Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Let an optimizer work on other parameters with another state, and restore its own at the end of the `with` block.

    Args:
        optimizer: an optimizer that has made a step.
        swapin_parameters: the parameters, in the order of the optimizer's own.
        swapin_optim_state: a state in the form of `optimizer.state_dict()`. Steps change its tensors. Its dictionaries
            are copied.

    Raises:
        RuntimeError: if the optimizer has no state, or if the parameters or the state do not fit its groups.

    >>> import adjoint as torch
    >>> w, v = torch.tensor(1.0, requires_grad=True), torch.tensor(5.0)
    >>> optimizer = torch.optim.SGD([w], lr=0.5, momentum=0.9)
    >>> w.grad = v.grad = torch.tensor(2.0)
    >>> optimizer.step()
    >>> with torch.optim.swap_in_optimizer_params_and_state(optimizer, {"v": v}, optimizer.state_dict()):
    ...     optimizer.step()
    >>> w, v
    (tensor(0., requires_grad=True), tensor(3.1000))
    """
    if not optimizer.state:
        raise RuntimeError(f"{NAME} requires initialized optimizer state.")
    _check(optimizer.param_groups, swapin_optim_state)
    numbers = [number for group in swapin_optim_state["param_groups"] for number in group["params"]]
    if len(swapin_parameters) < len(numbers):
        raise RuntimeError(f"{NAME} requires the explicit parameter state to match optimizer.param_groups ordering.")
    param_of = dict(zip(numbers, swapin_parameters.values(), strict=False))
    own = optimizer.state, optimizer.param_groups
    states = swapin_optim_state["state"]
    optimizer.state = defaultdict(dict, {param_of[number]: dict(states.get(number, {})) for number in numbers})
    optimizer.param_groups = [
        {**group, "params": [param_of[number] for number in group["params"]]}
        for group in swapin_optim_state["param_groups"]
    ]
    try:
        yield
    finally:
        optimizer.state, optimizer.param_groups = own


def _check(groups: list[dict[str, Any]], given: Any) -> None:
    """Refuse a state that does not fit the groups of an optimizer."""
    if not isinstance(given, dict):
        raise RuntimeError(f"{NAME} requires a DCP-style optimizer state_dict.")
    for key, kind, what in (
        ("state", dict, "a dict mapping packed parameter ids to per-param state dicts"),
        ("param_groups", list, "a list of param-group dicts"),
    ):
        if not isinstance(given.get(key), kind):
            raise RuntimeError(
                f"{NAME} requires swapin_optim_state['{key}'] to be {what}, got {type(given.get(key)).__name__}."
            )
    states, theirs = given["state"], given["param_groups"]
    if len(theirs) != len(groups):
        raise RuntimeError("swapin_optim_state has a different number of parameter groups than the live optimizer.")
    style = f"{NAME} requires optimizer.state_dict()-style"
    for place, (own, group) in enumerate(zip(groups, theirs, strict=True)):
        numbers = group.get("params")
        if not isinstance(numbers, list) or not all(isinstance(number, int) for number in numbers):
            raise RuntimeError(f"{style} param_groups[*]['params'] entries keyed by packed parameter ids.")
        if len(numbers) != len(own["params"]):
            raise RuntimeError(
                f"swapin_optim_state param group {place} has a different number of params than the live optimizer "
                "param group."
            )
        if group.keys() != own.keys():
            raise RuntimeError(
                f"{style} param group keys to exactly match the live optimizer group keys for group {place}. Keys only "
                f"in swap-in: {[k for k in group if k not in own]}. Keys only in live: {[k for k in own if k not in group]}."
            )
    if any(isinstance(key, torch.Tensor) for key in states):
        raise RuntimeError(f"{style} state keyed by packed parameter ids.")
    extra = [key for key in states if not any(key in group["params"] for group in theirs)]
    if extra:
        raise RuntimeError(
            f"{NAME} requires swapin_optim_state['state'] to be keyed only by packed parameter ids from "
            f"param_groups[*]['params']; got extra keys {extra}."
        )
    if not all(isinstance(state, dict) for state in states.values()):
        raise RuntimeError(f"{NAME} requires per-parameter optimizer state entries to be dictionaries.")
