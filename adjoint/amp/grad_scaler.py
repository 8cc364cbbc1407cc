"""`GradScaler` scales losses up so that half-precision gradients do not vanish. It skips steps that overflow."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

import adjoint as torch

from .._runtime.tracebacks import warn


class OptState(Enum):
    """The state of a scaler for one optimizer since the last update."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def stored(grad: Any) -> Any:
    """Return the elements of a gradient. For a sparse gradient, return the stored elements, with duplicates added up."""
    if grad.layout is torch.strided:
        return grad
    return (grad.coalesce() if grad.is_sparse else grad).values()


class GradScaler:
    """Scales losses, unscales gradients, and skips steps whose gradients are not finite.

    Args:
        device: the device type "cpu". Other device types give a warning, and the scaler has no effect.
        init_scale: the initial scale.
        growth_factor: the factor of the scale after `growth_interval` steps without infinite gradients.
        backoff_factor: the factor of the scale after a step with infinite gradients.
        enabled: whether the scaler has any effect.

    >>> import adjoint as torch
    >>> weight = torch.ones(1, requires_grad=True)
    >>> optimizer, scaler = torch.optim.SGD([weight], lr=0.5), torch.amp.GradScaler("cpu")
    >>> scaler.scale((weight * 2).sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> weight
    tensor([0.], requires_grad=True)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device != "cpu":
            warn(f"torch.{device}.amp.GradScaler is enabled, but {device.upper()} is not available.  Disabling.")
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale: torch.Tensor | None = None
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_refresh_per_optimizer_state)

    def __getstate__(self) -> dict[str, Any]:
        if not self._enabled:
            return vars(self)
        return {**vars(self), "_init_scale": self.get_scale(), "_scale": None, "_growth_tracker": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _current(self) -> torch.Tensor:
        if self._scale is None:
            self._scale = torch.tensor(self._init_scale, dtype=torch.float32)
        return self._scale

    def scale(self, outputs: Any) -> Any:
        """Return a tensor, or several tensors in lists, multiplied by the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, torch.Tensor):
            return outputs * self._current()
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)  # as in PyTorch: a list could not hold the letters of a string
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, for example before they are clipped.

        Raises:
            RuntimeError: if it is called twice before `update`, or after `step`.
            ValueError: if a gradient is float16.
        """
        if not self._enabled:
            return
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        if self._scale is None:
            raise AssertionError(
                "Attempted unscale_ but _scale is None.  This may indicate your script did not use "
                "scaler.scale(loss or outputs) earlier in the iteration."
            )
        inverse = self._scale.double().reciprocal().float()
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, torch.tensor(0.0), False)
        state["stage"] = OptState.UNSCALED

    def _unscale_grads_(
        self, optimizer: Any, inv_scale: torch.Tensor, found_inf: torch.Tensor, allow_fp16: bool
    ) -> dict[torch.device, torch.Tensor]:
        """Multiply the gradients by `inv_scale`. Return, by device, 1 if one of them was not finite."""
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if not allow_fp16 and any(grad.dtype is torch.float16 for grad in grads):
            raise ValueError("Attempting to unscale FP16 gradients.")
        found_inf = found_inf.clone()
        with torch.no_grad():
            for grad in grads:
                if not bool(torch.isfinite(stored(grad)).all()):
                    found_inf.fill_(1.0)
                grad.mul_(inv_scale)
        return {found_inf.device: found_inf} if grads else {}

    def _step_of_scaling_optimizer(self, optimizer: Any, state: dict[str, Any], args: Any, kwargs: Any) -> Any:
        """Take a step of an optimizer that unscales gradients itself, by `grad_scale` and `found_inf`."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near future "
                "GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and let the "
                "optimizer use them directly.",
                FutureWarning,
            )
            result = optimizer.step(*args, grad_scaler=self, **kwargs)
        else:
            unscaled = state["stage"] is OptState.UNSCALED
            if not unscaled:
                found = self._unscale_grads_(optimizer, torch.tensor(1.0), torch.tensor(0.0), True)
                state["found_inf_per_device"] = found
            optimizer.grad_scale = None if unscaled else self._current()
            optimizer.found_inf = sum(state["found_inf_per_device"].values(), torch.tensor(0.0))
            result = optimizer.step(*args, **kwargs)
            del optimizer.grad_scale, optimizer.found_inf
        state["stage"] = OptState.STEPPED
        return result

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscale the gradients if necessary, and take a step if they are finite. Return the result of the step.

        Raises:
            RuntimeError: if it is called twice before `update`, or with a closure.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_of_scaling_optimizer(optimizer, state, args, kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        found = state["found_inf_per_device"]
        if not found:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if any(map(bool, found.values())) else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale: float | torch.Tensor | None = None) -> None:
        """Reduce the scale if a gradient was not finite, and increase it after enough steps.

        If `new_scale` is given, set the scale to it.
        """
        if not self._enabled:
            return
        scale = self._current()
        with torch.no_grad():
            if new_scale is not None:
                if isinstance(new_scale, torch.Tensor) and (new_scale.numel() != 1 or new_scale.requires_grad):
                    raise AssertionError(
                        "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
                        "requires_grad=False."
                    )
                scale.fill_(float(new_scale))
            else:
                states = self._per_optimizer_states.values()
                found = [each for state in states for each in state["found_inf_per_device"].values()]
                if not found:
                    raise AssertionError("No inf checks were recorded prior to update.")
                if any(found):
                    scale.mul_(self._backoff_factor)
                    self._init_growth_tracker = 0
                else:
                    self._init_growth_tracker += 1
                    if self._init_growth_tracker == self._growth_interval:
                        if bool(torch.isfinite(scale * self._growth_factor)):
                            scale.mul_(self._growth_factor)
                        self._init_growth_tracker = 0
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def get_scale(self) -> float:
        """Return the scale, or 1 if the scaler is disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale)

    def _get_growth_tracker(self) -> int:
        """Return the number of steps since the scale changed, or 0 if the scaler is disabled."""
        return self._init_growth_tracker if self._enabled else 0

    def is_enabled(self) -> bool:
        """Return whether the scaler is enabled."""
        return self._enabled

    def get_growth_factor(self) -> float:
        """Return the growth factor of the scale."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the growth factor of the scale."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the backoff factor of the scale."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the backoff factor of the scale."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return the number of steps after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of steps after which the scale grows."""
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """Return the scale and its parameters, or an empty dict if the scaler is disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._init_growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval, self._init_growth_tracker = state_dict["growth_interval"], state_dict["_growth_tracker"]
