"""Schedulers that increase the learning rate and decrease it again, and move the momentum in the opposite direction."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ..optimizer import Optimizer
from .scheduler import LRScheduler, for_each_group, require_optimizer, set_option


def _momentum_is_beta1(optimizer: Optimizer) -> bool:
    """Return whether the momentum is the first of `betas`. Raise ValueError if the optimizer has no momentum."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return "betas" in optimizer.defaults


def _set_momentum(group: dict[str, Any], value: float, is_beta1: bool) -> None:
    if is_beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        set_option(group, "momentum", value)


class OneCycleLR(LRScheduler):
    """One cycle from a low learning rate up to `max_lr` and down to a much lower rate (Smith and Topin, 2018).

    Args:
        max_lr: the highest learning rate, or a list with one rate for each group.
        total_steps: the number of steps of the cycle. Alternatively, pass `epochs` and `steps_per_epoch`.
        pct_start: the fraction of the cycle in which the rate increases.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: whether to move the momentum from `max_momentum` to `base_momentum` and back.
        div_factor: the ratio of `max_lr` to the initial rate.
        final_div_factor: the ratio of the initial rate to the final rate.
        three_phase: whether to return to the initial rate as fast as the rate increased, and then to decrease to the
            final rate.

    Call `step` after every batch.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        require_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        self._schedule_phases = _phases(self.total_steps, float(pct_start), three_phase)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        highest = for_each_group(optimizer, "max_lr", max_lr)
        if last_epoch == -1:
            for group, value in zip(optimizer.param_groups, highest, strict=True):
                group["initial_lr"] = value / div_factor
                group["max_lr"] = value
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _momentum_is_beta1(optimizer)
            if last_epoch == -1:
                self._set_first_momentums(max_momentum, base_momentum)
        super().__init__(optimizer, last_epoch)

    def _set_first_momentums(self, highest: Any, lowest: Any) -> None:
        high = for_each_group(self.optimizer, "max_momentum", highest)
        low = for_each_group(self.optimizer, "base_momentum", lowest)
        for group, most, least in zip(self.optimizer.param_groups, high, low, strict=True):
            _set_momentum(group, most, self.use_beta1)
            group["max_momentum"] = most
            group["base_momentum"] = least

    @staticmethod
    def _annealing_cos(start: float, end: float, pct: float) -> float:
        return end + (start - end) / 2.0 * (math.cos(math.pi * pct) + 1)

    @staticmethod
    def _annealing_linear(start: float, end: float, pct: float) -> float:
        return (end - start) * pct + start

    def _anneal(self, start: float, end: float, fraction: float) -> float:
        kind = vars(self).get("_anneal_func_type")  # a state of PyTorch 1.13 or older has the function, `anneal_func`
        anneal = getattr(self, "anneal_func" if kind is None else f"_annealing_{kind}")
        return anneal(start, end, fraction)

    def get_lr(self) -> list[Any]:
        """Compute the learning rates of this step, and set the momentum."""
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        start = 0.0
        for phase in self._schedule_phases[:-1]:
            if step <= phase["end_step"]:
                break
            start = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        fraction = (step - start) / (phase["end_step"] - start)
        values = []
        for group in self.optimizer.param_groups:
            values.append(self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], fraction))
            if self.cycle_momentum:
                momentum = self._anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], fraction)
                _set_momentum(group, momentum, self.use_beta1)
        return values


def _total_steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total_steps is None and (epochs is None or steps_per_epoch is None):
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    given: dict[str, Any] = {"total_steps": total_steps}
    if total_steps is None:
        given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    for name, value in given.items():
        if value <= 0 or not isinstance(value, int):
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(given.values())


def _phases(total: int, pct_start: float, three_phase: bool) -> list[dict[str, Any]]:
    """Return the ends of the phases, and the names of the options at the start and the end of each phase."""
    up = float(pct_start * total) - 1
    first = _phase(up, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    if not three_phase:
        return [first, _phase(total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
    return [
        first,
        _phase(float(2 * pct_start * total) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
        _phase(total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
    ]


def _phase(end_step: float, start_lr: str, end_lr: str, start_momentum: str, end_momentum: str) -> dict[str, Any]:
    return {
        "end_step": end_step,
        "start_lr": start_lr,
        "end_lr": end_lr,
        "start_momentum": start_momentum,
        "end_momentum": end_momentum,
    }


class CyclicLR(LRScheduler):
    """Cycles between two learning rates (Smith, 2017).

    Args:
        base_lr: the lower learning rate, or a list with one rate for each group.
        max_lr: the upper learning rate, or a list with one rate for each group.
        step_size_up: the number of steps from the lower to the upper rate.
        step_size_down: the number of steps from the upper to the lower rate; by default `step_size_up`.
        mode: "triangular", "triangular2" (each cycle is half as high as the previous one) or "exp_range" (scaled by
            `gamma ** step`).
        scale_fn: a function that scales the height of the cycle. `mode` then has no effect.
        scale_mode: whether `scale_fn` is called with the number of the "cycle" or of the step ("iterations").
        cycle_momentum: whether to move the momentum from `max_momentum` to `base_momentum` and back.

    Call `step` after every batch.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        require_optimizer(optimizer)
        self.optimizer = optimizer
        lowest = for_each_group(optimizer, "base_lr", base_lr)
        if last_epoch == -1:
            for group, value in zip(optimizer.param_groups, lowest, strict=True):
                set_option(group, "lr", value)
        self.max_lrs = for_each_group(optimizer, "max_lr", max_lr)
        up = float(step_size_up)
        down = float(step_size_down) if step_size_down is not None else up
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        functions: dict[str, Callable[[float], float]] = {
            "triangular2": self._triangular2_scale_fn,
            "exp_range": functools.partial(self._exp_range_scale_fn, gamma),
        }
        self._scale_fn_ref = functions.get(mode, self._triangular_scale_fn)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _momentum_is_beta1(optimizer)
            self.base_momentums = for_each_group(optimizer, "base_momentum", base_momentum)
            self.max_momentums = for_each_group(optimizer, "max_momentum", max_momentum)
            if last_epoch == -1:
                for group, most, least in zip(
                    optimizer.param_groups, self.max_momentums, self.base_momentums, strict=True
                ):
                    _set_momentum(group, most, self.use_beta1)
                    group["max_momentum"] = most
                    group["base_momentum"] = least
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lowest

    def state_dict(self) -> dict[str, Any]:
        """Return the state. A scale function is included only if it is an object with attributes."""
        state = super().state_dict()
        del state["_scale_fn_ref"]
        function = state.pop("_scale_fn_custom")
        held = getattr(function, "__dict__", {})
        state["_scale_fn_custom"] = held.copy() if function is not None and not hasattr(function, "__code__") else None
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state. A scale function is not replaced, but an object gets its attributes."""
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        if state_dict.get("_scale_fn_custom") is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(state_dict["_scale_fn_custom"])

    def scale_fn(self, x: float) -> float:
        """Return the height of the cycle `x`, or the height at the step `x`."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return self._scale_fn_ref(x)

    @staticmethod
    def _triangular_scale_fn(x: float) -> float:
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x: float) -> float:
        return 1 / (2.0 ** (x - 1))

    @staticmethod
    def _exp_range_scale_fn(gamma: float, x: float) -> float:
        return gamma**x

    def get_lr(self) -> list[Any]:
        """Compute the learning rates of this step, and set the momentum."""
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        height = place / self.step_ratio if place <= self.step_ratio else (place - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(
                self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
            ):
                _set_momentum(group, high - (high - low) * height * scale, self.use_beta1)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]
