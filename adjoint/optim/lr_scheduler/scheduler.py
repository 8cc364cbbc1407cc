"""The base of all schedulers: it counts epochs and writes learning rates into the optimizer's groups."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from adjoint import Tensor

from ..._runtime.tracebacks import end_methods_at_caller, warn
from ..optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)
_OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make sure "
    "to call `optimizer.step()` before `lr_scheduler.step()`. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
_BEFORE_OPTIMIZER = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call "
    "them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in "
    "PyTorch skipping the first value of the learning rate schedule. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
_NOT_INITIALIZED = (
    "param 'initial_lr' is not specified in param_groups[{}] when resuming scheduler with last_epoch >= 0.\n"
    "This typically happens when:\n"
    "1. You're trying to resume training from a checkpoint but haven't properly loaded the optimizer state\n"
    "2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
)


class LRScheduler:
    """The base class of schedulers.

    A subclass defines `get_lr`, which returns the learning rates of the epoch `last_epoch`.

    Args:
        optimizer: the optimizer whose groups get the learning rates.
        last_epoch: the epoch to continue from, or -1 to start.

    Raises:
        TypeError: if `optimizer` is not an Optimizer.
        KeyError: if the scheduler continues, but the groups of the optimizer have no initial learning rate.
    """

    optimizer: Optimizer
    base_lrs: list[Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        end_methods_at_caller(cls)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        require_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(_NOT_INITIALIZED.format(i))
        self.base_lrs = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        _note_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the learning rates of the first epoch."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes except the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore attributes that `state_dict` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """Return the latest learning rates, one for each group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """Compute the learning rates of the epoch `last_epoch` from the rates of the previous epoch."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Advance to the next epoch and set its learning rates. `epoch` is deprecated."""
        if self._step_count == 1 and not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warn(_OVERRIDDEN, UserWarning)
        elif self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warn(_BEFORE_OPTIMIZER, UserWarning)
        self._step_count += 1
        if epoch is not None:
            warn(EPOCH_DEPRECATION_WARNING, UserWarning)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                values = self._get_closed_form_lr() if hasattr(self, "_get_closed_form_lr") else self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set(values)

    def _set(self, values: list[Any]) -> None:
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            set_option(group, "lr", lr)
        self._last_lr = [copied(group["lr"]) for group in self.optimizer.param_groups]

    def _current(self) -> list[Any]:
        """Return the current learning rates. Warn if the call is not part of a step."""
        self._warn_outside_step()
        return [group["lr"] for group in self.optimizer.param_groups]

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", UserWarning)


end_methods_at_caller(LRScheduler)


class _LRScheduler(LRScheduler):
    """The name of `LRScheduler` before PyTorch 2.0, for schedulers that derive from it."""


def require_optimizer(optimizer: Any) -> None:
    """Raise an error unless `optimizer` is an Optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def copied(value: Any) -> Any:
    """Return an option of a group. A tensor is copied, because tensors are changed in place."""
    return value.clone() if isinstance(value, Tensor) else value


def set_option(group: dict[str, Any], key: str, value: Any) -> None:
    """Set an option of a group. A tensor is changed in place."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value.squeeze() if isinstance(value, Tensor) else value)
    else:
        group[key] = copied(value)


def for_each_group(optimizer: Optimizer, name: str, value: Any) -> list[Any]:
    """Return one number per group: the items of a list, or one value repeated.

    Later changes of a tensor argument have no effect.
    """
    if not isinstance(value, (list, tuple)):
        value = [value] * len(optimizer.param_groups)
    if len(value) != len(optimizer.param_groups):
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(value)} values, param_groups has {len(optimizer.param_groups)}."
        )
    return list(map(copied, value))


def _note_steps(optimizer: Optimizer) -> None:
    """Wrap `optimizer.step` so that the optimizer records each step."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    reference = weakref.ref(optimizer)
    step: Callable[..., Any] = optimizer.step.__func__  # type: ignore[attr-defined]

    @functools.wraps(step)
    def noted(*args: Any, **kwargs: Any) -> Any:
        owner = reference()
        owner._opt_called = True  # type: ignore[union-attr]
        return step(owner, *args, **kwargs)

    noted._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = noted  # type: ignore[method-assign]
