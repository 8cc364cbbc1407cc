"""Averages of the parameters of a model over its training, and a learning rate schedule for it (Izmailov et al., 2018)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

import adjoint as torch
from adjoint import Tensor

from .lr_scheduler import LRScheduler
from .lr_scheduler.scheduler import for_each_group
from .optimizer import Optimizer

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    "update_bn",
]  # fmt: skip

_Average = Callable[[Tensor, Tensor, Any], Tensor]
_Averages = Callable[[list[Tensor], list[Tensor], Any], None]


def _multi(average: _Average, share: Callable[[Any], float]) -> _Averages:
    """Return the function for many averages at once. `share` is the weight of the current value."""

    @torch.no_grad()
    def update(averaged_param_list: list[Tensor], current_param_list: list[Tensor], num_averaged: Any) -> None:
        held: Any
        for held, current in zip(averaged_param_list, current_param_list, strict=True):
            if held.is_floating_point() or held.is_complex():
                held.lerp_(current, share(num_averaged))
            else:
                held.copy_(average(held, current, num_averaged))

    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> _Averages:
    """Return a function that moves averages towards current values, for many averages at once.

    `decay` is the weight of the old average.
    """
    return _multi(get_ema_avg_fn(decay), lambda _: 1 - decay)


def get_swa_multi_avg_fn() -> _Averages:
    """Return a function that averages all values so far, for many averages at once."""
    return _multi(get_swa_avg_fn(), lambda num_averaged: 1 / (float(num_averaged) + 1))


def get_ema_avg_fn(decay: float = 0.999) -> _Average:
    """Return a function that moves an average towards the current value. `decay` is the weight of the old average."""
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")

    @torch.no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> _Average:
    """Return a function that averages all values so far."""

    @torch.no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(torch.nn.Module):
    """A copy of a model with averaged parameters.

    `update_parameters` adds the current parameters of the model to the averages.

    Args:
        device: the device of the copy.
        avg_fn: a function `avg_fn(average, current, number)` that returns the new average of each parameter. None
            computes the mean.
        multi_avg_fn: a function that does the same for lists of tensors, in place.
        use_buffers: whether to average the buffers too. Otherwise the buffers are copied.

    >>> import adjoint as torch
    >>> model = torch.nn.Linear(2, 2)
    >>> averaged = torch.optim.swa_utils.AveragedModel(model)
    >>> averaged.update_parameters(model)
    >>> int(averaged.n_averaged)
    1
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: torch.nn.Module,
        device: Any = None,
        avg_fn: _Average | None = None,
        multi_avg_fn: _Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", torch.tensor(0, dtype=torch.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the output of the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: torch.nn.Module) -> None:
        """Add the current parameters of `model` to the averages."""
        ours: list[Any] = list(self.module.parameters())
        theirs: list[Any] = list(model.parameters())
        buffers = list(zip(self.module.buffers(), model.buffers(), strict=True))
        if self.use_buffers:
            ours += [own for own, _ in buffers]
            theirs += [other for _, other in buffers]
        held = [each.detach() for each in ours]
        current = [each.detach() for each in theirs]
        if self.n_averaged == 0:
            for own, other in zip(held, current, strict=True):
                own.copy_(other)
        elif self.avg_fn is not None:
            number = self.n_averaged
            for own, other in zip(held, current, strict=True):
                own.copy_(self.avg_fn(own, other, number))
        else:
            update = get_swa_multi_avg_fn() if self.multi_avg_fn is None else self.multi_avg_fn
            update(held, current, self.n_averaged)
        if not self.use_buffers:
            for own, other in buffers:
                own.detach().copy_(other.detach())
        self.n_averaged += 1


@torch.no_grad()
def update_bn(loader: Iterable[Any], model: torch.nn.Module, device: Any = None) -> None:
    """Compute the running statistics of all batch normalizations in `model` again, in one pass over the data.

    Args:
        loader: an iterable of batches. If a batch is a list or tuple, its first element is used.
        device: the device for the batches.
    """
    momenta: dict[Any, Any] = {}
    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None  # a cumulative average
    for batch in loader:
        given = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(given if device is None else given.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Moves the learning rate of each group to a fixed value, and then keeps it constant.

    Args:
        swa_lr: the final value, or a list with one value for each group.
        anneal_epochs: the number of epochs until the final value.
        anneal_strategy: "cos" or "linear".
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: Any = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for value, group in zip(for_each_group(optimizer, "swa_lr", swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = value
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        self.anneal_func = self._cosine_anneal if anneal_strategy == "cos" else self._linear_anneal
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _linear_anneal(t: float) -> float:
        return t

    @staticmethod
    def _cosine_anneal(t: float) -> float:
        return (1 - math.cos(math.pi * t)) / 2

    def state_dict(self) -> dict[str, Any]:
        """Return the state without the annealing function, which `load_state_dict` restores."""
        return {name: value for name, value in super().state_dict().items() if name != "anneal_func"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state."""
        super().load_state_dict(state_dict)
        self.anneal_func = self._cosine_anneal if self._anneal_strategy == "cos" else self._linear_anneal

    def get_lr(self) -> list[Any]:
        """Compute the learning rates of this epoch."""
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before = self.anneal_func(max(0, min(1, (step - 1) / max(1, self.anneal_epochs))))
        after = self.anneal_func(max(0, min(1, step / max(1, self.anneal_epochs))))
        found = []
        for group in self.optimizer.param_groups:
            final, lr = group["swa_lr"], group["lr"]
            start = final if before == 1 else (lr - before * final) / (1 - before)
            found.append(final * after + start * (1 - after))
        return found
