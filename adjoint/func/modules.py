"""Modules as functions of their parameters and buffers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import adjoint as torch

from .._runtime.tracebacks import ending_at_caller

MISSING = object()
"""What an attribute was that the module did not have."""

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


@ending_at_caller
def functional_call(
    module: torch.nn.Module,
    parameter_and_buffer_dicts: dict[str, Any] | Sequence[dict[str, Any]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call `module` with other tensors in place of its parameters and buffers.

    The module itself does not change.

    Args:
        module: the module.
        parameter_and_buffer_dicts: tensors by name, as in `state_dict`. If there are several dicts, their names must
            differ.
        args: the positional arguments of the call, as a tuple, or a single argument.
        kwargs: the keyword arguments of the call.
        tie_weights: whether to replace a tensor with several names under all of them.
        strict: whether every parameter and buffer must be given.

    Raises:
        ValueError: if two dicts share a name, or if tied names get unequal tensors.
        RuntimeError: if `strict` and names are missing or unknown.

    >>> import adjoint as torch
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> torch.func.functional_call(model, {"weight": torch.tensor([[2.0]])}, torch.tensor([3.0]))
    tensor([6.])
    """
    given = _merged(parameter_and_buffer_dicts)
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    replacement = replaced(module, given, tie_weights, strict)
    try:  # an interrupt can leave a `with` block without `__exit__`
        replacement.__enter__()
        return module(*args, **(kwargs or {}))
    finally:
        try:
            replacement.__exit__()
        except BaseException:
            replacement.__exit__()  # an interrupt waits until that is done
            raise


def _merged(dicts: Any) -> dict[str, Any]:
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    if not all(isinstance(part, dict) for part in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for part in dicts for name in part]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for part in dicts for name, value in part.items()}


def _own(module: torch.nn.Module) -> dict[str, Any]:
    """Return parameters and buffers under each of their names."""
    named: dict[str, Any] = dict(module.named_parameters(remove_duplicate=False))
    named.update(module.named_buffers(remove_duplicate=False))
    return named


class replaced:
    """A context manager that replaces tensors of the module by the tensors in `given`; see `functional_call`."""

    def __init__(self, module: torch.nn.Module, given: dict[str, Any], tie_weights: bool, strict: bool) -> None:
        self.given, self.values = given, _values(module, given, tie_weights, strict)
        self.places = [(*_place(module, name), value) for name, value in self.values.items()]
        self.before = [holder.get(name, MISSING) for holder, name, _ in self.places]

    def __enter__(self) -> None:
        for holder, name, value in self.places:
            holder[name] = value

    def __exit__(self, *exception: object) -> None:
        for (holder, name, replacement), original in zip(self.places, self.before, strict=True):
            present = holder.get(name)
            if present is not replacement and present is not original and isinstance(present, torch.Tensor):
                path = next(key for key, value in self.values.items() if value is replacement)
                self.given[path] = present  # assigned by forward
            if original is MISSING:
                holder.pop(name, None)
            else:
                holder[name] = original


def _values(module: torch.nn.Module, given: dict[str, Any], tie_weights: bool, strict: bool) -> dict[str, Any]:
    """Return the replacements under every name that the module has for them."""
    own = _own(module) if tie_weights or strict else {}
    if strict:
        tied = {id(own[name]) for name in given if name in own} if tie_weights else set()
        missing = sorted(name for name in own if name not in given and id(own[name]) not in tied)
        unexpected = sorted(set(given) - set(own))
        parts = [f"Unexpected key(s): {', '.join(map(repr, unexpected))}."] if unexpected else []
        parts += [f"Missing key(s): {', '.join(map(repr, missing))}."] if missing else []
        if parts:
            raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(parts))
    for name, value in given.items():
        _check_place(module, name, value)
    values = dict(given)
    if tie_weights:
        by_tensor: dict[int, str] = {}
        for name in filter(own.__contains__, given):
            other = by_tensor.setdefault(id(own[name]), name)
            if values[other] is not values[name]:
                raise ValueError(
                    f"functional_call got multiple values for keys {sorted((other, name))}, which are tied. Consider using "
                    "tie_weights=False"
                )
        for name, tensor in own.items():
            if name not in values and id(tensor) in by_tensor:
                values[name] = values[by_tensor[id(tensor)]]
    return values


def _check_place(module: torch.nn.Module, path: str, value: Any) -> None:
    """Raise an error unless `value` is a tensor and the module at `path` exists."""
    prefix, _, name = path.rpartition(".")
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')
    owner: Any = module
    parts = prefix.split(".") if prefix else []
    for depth, part in enumerate(parts, 1):
        if not hasattr(owner, part):
            raise AttributeError(f"{type(owner).__name__} has no attribute `{part}`")
        owner = getattr(owner, part)
        if not isinstance(owner, torch.nn.Module):
            raise TypeError(f"submodule `{'.'.join(parts[:depth])}`: {owner} is not an instance of torch.nn.Module")
    if not isinstance(value, torch.Tensor) and value is not None:
        raise TypeError(f"{value} is not an instance of torch.Tensor")
    present = getattr(owner, name, None)
    if not isinstance(present, torch.Tensor) and present is not None:
        raise TypeError(f"attribute `{name}`: {present} is not an instance of torch.Tensor")


def _place(module: torch.nn.Module, path: str) -> tuple[dict[str, Any], str]:
    """Return the dict that contains the tensor at `path`, and its key."""
    prefix, _, name = path.rpartition(".")
    owner = module.get_submodule(prefix)
    for holder in (owner._parameters, owner._buffers):
        if name in holder:
            return holder, name
    return vars(owner), name


@ending_at_caller
def stack_module_state(models: Sequence[torch.nn.Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and the buffers of several modules of one class, each stacked along a new first dimension.

    >>> import adjoint as torch
    >>> models = [torch.nn.Linear(2, 3) for _ in range(5)]
    >>> parameters, buffers = torch.func.stack_module_state(models)
    >>> parameters["weight"].shape
    torch.Size([5, 3, 2])
    """
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(model.training for model in models) or all(not model.training for model in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if not all(type(model) is type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(model.named_parameters()) for model in models]
    buffers = [dict(model.named_buffers()) for model in models]
    return (
        {name: _stacked(name, [each[name] for each in parameters]) for name in parameters[0]},
        {name: _stacked(name, [each[name] for each in buffers]) for name in buffers[0]},
    )


def _stacked(name: str, tensors: list[Any]) -> Any:
    requires_grad = tensors[0].requires_grad
    if any(tensor.requires_grad != requires_grad for tensor in tensors):
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    return torch.stack([tensor.detach() for tensor in tensors]).requires_grad_(requires_grad)


def replace_all_batch_norm_modules_(root: torch.nn.Module) -> torch.nn.Module:
    """Make every batch normalization in `root` use only the statistics of the batch, as `vmap` requires.

    Return `root`.

    >>> import adjoint as torch
    >>> torch.func.replace_all_batch_norm_modules_(torch.nn.BatchNorm1d(2)).running_mean is None
    True
    """
    for module in root.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
