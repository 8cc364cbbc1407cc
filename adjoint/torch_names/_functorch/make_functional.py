"""Modules as functions, with the interface before `torch.func.functional_call`.

Libraries still import it from `functorch`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import adjoint as torch
from adjoint import nn
from adjoint.func.modules import functional_call


class _Functional(nn.Module):
    """A module without its state.

    The state is an argument of each call. Parameters that share memory in the model occur once.
    """

    def __init__(self, stateless_model: nn.Module) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = tuple(name for name, _ in stateless_model.named_parameters())
        self.buffer_names = tuple(name for name, _ in stateless_model.named_buffers())

    def _call(self, values: Sequence[Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        names = self.param_names + self.buffer_names[: len(values) - len(self.param_names)]
        return functional_call(self.stateless_model, dict(zip(names, values, strict=True)), args, keywords)


class FunctionalModule(_Functional):
    """A module without buffers as a function of its parameters."""

    def forward(self, params: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        """Call the module with these parameters."""
        return self._call(tuple(params), args, kwargs)


class FunctionalModuleWithBuffers(_Functional):
    """A module as a function of its parameters and its buffers."""

    def forward(self, params: Sequence[Any], buffers: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        """Call the module with these parameters and buffers."""
        return self._call((*params, *buffers), args, kwargs)


def make_functional(
    model: nn.Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Any, ...]]:
    """Return a function that calls a module with parameters, and copies of the module's parameters.

    Raises:
        RuntimeError: if the module has buffers.
    """
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    copied = _copied(model, disable_autograd_tracking)
    return FunctionalModule(copied), tuple(copied.parameters())


def make_functional_with_buffers(
    model: nn.Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """Return a function that calls a module with parameters and buffers, and copies of the module's parameters and buffers."""
    copied = _copied(model, disable_autograd_tracking)
    return FunctionalModuleWithBuffers(copied), tuple(copied.parameters()), tuple(copied.buffers())


def _copied(model: nn.Module, without_gradients: bool) -> nn.Module:
    copied = copy.deepcopy(model)
    return copied.requires_grad_(False) if without_gradients else copied


def combine_state_for_ensemble(
    models: Sequence[nn.Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """Return a function that calls a module with parameters and buffers, and the stacked states of several modules, for `vmap`.

    Raises:
        RuntimeError: if there is no module, or if the modules differ in class or in training mode.
    """
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if any(model.training != models[0].training for model in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    functions, parameters, buffers = zip(*map(make_functional_with_buffers, models), strict=True)
    return functions[0], _stacked(parameters), _stacked(buffers)


def _stacked(rows: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(torch.stack([value.detach() for value in column]) for column in zip(*rows, strict=True))


def functional_init_with_buffers(
    model_class: type[nn.Module], ensemble_shape: Sequence[int] = (), device: Any = "cpu"
) -> Callable[..., Any]:
    """Return a function that takes the arguments of `model_class` and creates an ensemble of models.

    `ensemble_shape` contains the number of models, or nothing for a single model.

    The function returns the stacked parameters and buffers, a function of parameters, buffers and a tuple of inputs, and
    the names of the parameters and of the buffers.
    """
    if len(ensemble_shape) > 1:
        raise ValueError("NYI: ensemble_shape with more than 1 element")

    def init(*args: Any, **keywords: Any) -> Any:
        models = [model_class(*args, **keywords).to(device) for _ in range(ensemble_shape[0] if ensemble_shape else 1)]
        function, params, buffers = combine_state_for_ensemble(models)
        if not ensemble_shape:
            params, buffers = tuple(models[0].parameters()), tuple(models[0].buffers())
        call = lambda params, buffers, inputs: function(params, buffers, *inputs)
        return params, buffers, call, function.param_names, function.buffer_names

    return init


def functional_init(
    model_class: type[nn.Module], ensemble_shape: Sequence[int] = (), device: Any = "cpu"
) -> Callable[..., Any]:
    """Do the same as `functional_init_with_buffers`, for modules without buffers."""
    with_buffers = functional_init_with_buffers(model_class, ensemble_shape, device)

    def init(*args: Any, **keywords: Any) -> Any:
        params, _, call, names, _ = with_buffers(*args, **keywords)
        return params, lambda params, inputs: call(params, (), inputs), names

    return init
