"""The framework of declared optimizers: options with checks, the state of each parameter, and a formula.

A formula is a method `_update(xp, options, param, grad, *state)`. It changes `param` and `state` in place, with
elementwise operators and the methods of `xp`. `adjoint._fused_update_` applies the formula to the arrays of a whole
list of parameters, if it supports these arrays. Otherwise the formula is applied to the tensors of one parameter after
the other. A recorded update changes copies, because the next step must not change the tensors that this step saves for
backward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from types import SimpleNamespace
from typing import Any

import adjoint as torch
from adjoint import Tensor

from .optimizer import Optimizer, Params, _get_capturable_supported_devices, scalar_dtype

Given = Mapping[str, Any]
Check = Callable[[Given], None]
Batch = tuple[SimpleNamespace, list[list[Tensor]]]
"""Numbers, and the lists of parameters, gradients and state to which they apply."""
Numbered = tuple[dict[str, Any], list[Tensor], list[Tensor], list[dict[str, Any]]]
"""Numbers, and the parameters, gradients and state to which they apply."""


class Declared(Optimizer):
    """An optimizer defined by the class attributes below and by `_numbers` and `_update`."""

    # The names of the options in the order of groups and state dicts. The constructor has another order.
    _options = ""
    _later_tensors: tuple[str, ...] = ("step",)
    # The conditions on the options, in the order in which they are checked.
    _checks: tuple[Check, ...] = ()
    # The state tensors of a parameter, in the order of the formula. Their initial values are zeros.
    _state: tuple[str, ...] = ()
    # Whether the numbers in the formula depend on the state of the parameter, not only on the step.
    _own_numbers = False
    # Whether the state of a parameter contains its step count.
    _counts_steps = True
    # Whether rounding follows PyTorch's fused kernels: half types are computed in float32 and rounded once.
    _rounds_once = False
    # Whether the formula supports sparse gradients; if not, PyTorch's error message.
    _takes_sparse = False
    _sparse_advice = ""
    # PyTorch's name for the tensors of a captured step, alone and with `foreach`.
    _captured = "params and state_steps", "params and state_steps"
    _xla_captures = True, False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            given = signature(cls.__init__).parameters.values()
            options = {each.name: each.default for each in given if each.name in cls._options.split()}
            later = {name: value for name, value in options.items() if value is None or isinstance(value, bool)}
            cls._later_options = later | vars(cls).get("_later_options", {})

    def __init__(self, params: Params, given: Given) -> None:
        for check in self._checks:
            check(given)
        super().__init__(params, {name: given[name] for name in self._options.split()})
        if given.get("fused"):
            _check_fused(given)
            self._step_supports_amp_scaling = True

    # Methods that a subclass defines

    def _state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        """Return the names of the state tensors that the formula uses with the options of the group."""
        return self._state

    def _start(self, state: dict[str, Any], param: Tensor, group: dict[str, Any]) -> None:
        """Initialize the state of a parameter."""
        state["step"] = torch.zeros((), dtype=scalar_dtype(group))
        for name in self._state_names(group):
            state[name] = torch.zeros_like(param)

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> dict[str, Any]:
        """Return the options as numbers, with other numbers that the formula needs in this step."""
        raise NotImplementedError

    @staticmethod
    def _update(xp: Any, options: Any, param: Any, grad: Any, *state: Any) -> None:
        """The formula."""
        raise NotImplementedError

    # The update

    def _update_group(self, group: dict[str, Any]) -> None:
        grads = self._gradients(group)
        params = [param for param, grad in zip(group["params"], grads, strict=True) if grad is not None]
        if len(params) < len(grads):
            grads = [grad for grad in grads if grad is not None]
        if not params:
            return
        if group.get("fused"):
            _require_fusible(params)
            if self._takes_sparse and any(grad.is_sparse for grad in grads):
                raise RuntimeError(f"`_fused_{type(self).__name__.lower()}` does not support sparse gradients")
            if self._skips(params, grads, group):
                return
        elif group.get("capturable") and not torch.compiler.is_compiling():
            devices = _get_capturable_supported_devices(self._xla_captures[bool(group["foreach"])])
            names = self._captured[bool(group["foreach"])]
            raise AssertionError(f"If capturable=True, {names} must be on supported devices: {devices}.")
        recorded = group["differentiable"]
        for options, lists in self._batches(params, grads, group):
            if not recorded and torch._fused_update_(self._update, options, lists, self._rounds_once):
                continue
            self._check_layouts(lists[0], lists[1])
            for tensors in zip(*lists, strict=True):
                real = map(torch.view_as_real, tensors) if tensors[0].is_complex() else tensors
                if recorded:
                    self._record(options, *real)
                else:
                    self._update(Tensor, options, *real)

    def _skips(self, params: list[Tensor], grads: list[Tensor], group: dict[str, Any]) -> bool:
        """Divide the gradients by the `grad_scale` of a scaler, or return True if its `found_inf` is 1."""
        if getattr(self, "found_inf", None) == 1:
            for param in params:
                if self._counts_steps and not self.state[param]:
                    self._start(self.state[param], param, group)
            return True
        scale = getattr(self, "grad_scale", None)
        if scale is not None:
            for grad in grads:
                grad.div_(scale)
        return False

    def _record(self, options: Any, param: Tensor, grad: Tensor, *state: Tensor) -> None:
        changed = [tensor.clone() for tensor in (param, *state)]
        self._update(RECORDED, options, changed[0], grad, *changed[1:])
        for tensor, new in zip((param, *state), changed, strict=True):
            tensor.copy_(new)

    def _batches(self, params: list[Tensor], grads: list[Tensor], group: dict[str, Any]) -> Iterator[Batch]:
        """Group the parameters and their states by the numbers in their formula, and count their steps."""
        states = [self.state[param] for param in params]
        for param, grad, state in zip(params, grads, states, strict=True):
            if not state:
                self._check_layouts([param], [grad])
                self._start(state, param, group)
        steps = torch._count_steps_([state["step"] for state in states])
        names = self._state_names(group)
        if not self._own_numbers and steps.count(steps[0]) == len(steps):
            batches = [(self._numbers(group, steps[0], states[0]), params, grads, states)]
        else:
            batches = self._by_numbers(params, grads, states, steps, group)
        for numbers, some, their, states in batches:
            yield (
                SimpleNamespace(**{name: number(value) for name, value in numbers.items()}),
                [some, their, *([state[name] for state in states] for name in names)],
            )

    def _check_layouts(self, params: list[Tensor], grads: list[Any]) -> None:
        """Refuse sparse gradients if the formula does not support them."""
        if not self._takes_sparse and any(grad.is_sparse for grad in grads):
            name = next(kind.__name__ for kind in type(self).__mro__ if "_update" in vars(kind))
            raise RuntimeError(f"{name} does not support sparse gradients{self._sparse_advice}")

    def _by_numbers(
        self,
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
        steps: list[float],
        group: dict[str, Any],
    ) -> list[Numbered]:
        batches: dict[Any, Numbered] = {}
        for param, grad, state, step in zip(params, grads, states, steps, strict=True):
            numbers = self._numbers(group, step, state)
            _, some, their, their_states = batches.setdefault(tuple(numbers.values()), (numbers, [], [], []))
            some.append(param)
            their.append(grad)
            their_states.append(state)
        return list(batches.values())


# --- options --------------------------------------------------------------------------------------------------


def number(value: Any) -> Any:
    """Convert a learning rate or another option to a number.

    The option may be a tensor of one element or a NumPy scalar.

    In a recorded update, a tensor that requires grad is returned unchanged.
    """
    if isinstance(value, Tensor) and value.requires_grad and torch.is_grad_enabled():
        return value.clone().squeeze()
    return value.item() if hasattr(value, "item") else value


def learning_rate(given: Given) -> None:
    """Refuse a learning rate that is negative or a tensor with several elements."""
    lr = given["lr"]
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if lr < 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")


def not_negative(*names: str) -> Check:
    """Return a check that refuses negative values of these options."""

    def check(given: Given) -> None:
        for name in names:
            if not given[name] >= 0.0:
                raise ValueError(f"Invalid {name} value: {given[name]}")

    return check


def epsilon(given: Given) -> None:
    """Refuse a negative epsilon."""
    if not given["eps"] >= 0.0:
        raise ValueError(f"Invalid epsilon value: {given['eps']}")


def decay_rates(given: Given) -> None:
    """Refuse decay rates outside `[0, 1)`."""
    for i, beta in enumerate(given["betas"]):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


def _check_fused(given: Given) -> None:
    """Refuse combinations of options that PyTorch refuses. Otherwise `fused` and `foreach` have no effect."""
    if given["differentiable"]:
        raise RuntimeError("`fused` does not support `differentiable`")
    if given["foreach"]:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def _require_fusible(params: list[Tensor]) -> None:
    """Refuse parameters that PyTorch's fused kernels do not support."""
    for param in params:
        if not param.is_floating_point() or param.is_meta:
            raise RuntimeError(
                "`fused=True` requires all the params to be floating point Tensors of supported devices: "
                "['mps', 'cuda', 'xpu', 'hpu', 'cpu', 'mtia', 'privateuseone'] "
                f"but {param.dtype} and {param.device.type}"
            )


# --- recorded updates ------------------------------------------------------------------------------------------


class RecordedMethods:
    """The methods that formulas call in a recorded update: the methods of tensors, with factors that may also be tensors.

    If backward needs a tensor that the formula changes later, a copy is changed instead.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(Tensor, name)

    @staticmethod
    def add(tensor: Tensor, other: Tensor, *, alpha: Any = 1) -> Tensor:
        """Return the sum with `alpha * other`."""
        return tensor + other.clone() * alpha

    @staticmethod
    def add_(tensor: Tensor, other: Tensor, *, alpha: Any = 1) -> None:
        """Add `alpha * other`."""
        tensor.add_(other * alpha)

    @staticmethod
    def addcmul_(tensor: Tensor, first: Tensor, second: Tensor, *, value: Any = 1) -> None:
        """Add `value * first * second`."""
        tensor.add_(first * second * value)

    @staticmethod
    def addcdiv_(tensor: Tensor, first: Tensor, second: Tensor, *, value: Any = 1) -> None:
        """Add `value * first / second`."""
        tensor.add_(first * value / second)

    @staticmethod
    def lerp_(tensor: Tensor, end: Tensor, weight: Any) -> None:
        """Add `weight * (end - tensor)`."""
        tensor.lerp_(end, torch.as_tensor(weight, dtype=tensor.dtype))

    @staticmethod
    def maximum(tensor: Tensor, other: Tensor) -> Tensor:
        """Return the larger of the two."""
        return torch.maximum(tensor.clone(), other)


RECORDED = RecordedMethods()


# --- parts of formulas ----------------------------------------------------------------------------------------


def direction(xp: Any, options: Any, param: Any, grad: Any) -> Any:
    """Return the gradient for descent: negated if the group maximizes, plus the weight decay unless it is decoupled."""
    if options.maximize:
        grad = -grad
    return xp.add(grad, param, alpha=options.weight_decay) if options.weight_decay != 0 else grad


def decays(group: dict[str, Any], lr: Any) -> dict[str, Any]:
    """Return the options of weight decay: a term of the gradient or, if decoupled, a factor of the parameter."""
    decay = group["weight_decay"]
    decoupled = decay != 0 and group["decoupled_weight_decay"]
    return {
        "maximize": group["maximize"],
        "weight_decay": 0 if decoupled else number(decay),
        "shrink": number(1 - lr * decay) if decoupled else 1,
    }


def decayed(xp: Any, options: Any, param: Any, grad: Any) -> Any:
    """Return the gradient for descent, after a decoupled weight decay has reduced the parameter."""
    if options.maximize:
        grad = -grad
    if options.shrink != 1:
        xp.mul_(param, options.shrink)
    return xp.add(grad, param, alpha=options.weight_decay) if options.weight_decay != 0 else grad
