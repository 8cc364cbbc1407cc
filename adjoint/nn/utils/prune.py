"""Pruning: masks that set elements of parameters to zero before each call."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import adjoint as torch
from adjoint import Tensor

from ..modules.module import Module

Scores = Tensor | None


class BasePruningMethod(ABC):
    """A rule that chooses the elements to prune, and the hook that applies its mask before each call."""

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        """Set the attribute to the pruned parameter."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return a mask for `t`, which `default_mask` has already pruned. Zeros in the mask mark the elements to prune."""

    def apply_mask(self, module: Module) -> Any:
        """Return the original parameter times its mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Scores = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a parameter by this method, after any earlier pruning, and register the hook."""
        found: list[Any] = [
            (key, hook)
            for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
        ]
        if len(found) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer."
            )
        earlier: Any = None
        for key, hook in found:
            earlier = hook
            del module._forward_pre_hooks[key]
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        if earlier is not None:
            container = earlier if isinstance(earlier, PruningContainer) else PruningContainer()
            if container is not earlier:
                container._tensor_name = name
                container.add_pruning_method(earlier)
            container.add_pruning_method(method)
            method = container
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got "
                f"{importance_scores.shape} vs {original.shape}"
            )
        if earlier is None:
            module.register_parameter(name + "_orig", module._parameters.pop(name))
            default_mask = torch.ones_like(original)
        else:
            default_mask = getattr(module, name + "_mask").detach().clone(memory_format=torch.contiguous_format)
        try:
            mask = method.compute_mask(importance_scores, default_mask=default_mask)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if earlier is None:
                original = getattr(module, name + "_orig")
                del module._parameters[name + "_orig"]
                module.register_parameter(name, original)
            raise
        return method

    def prune(self, t: Tensor, default_mask: Scores = None, importance_scores: Scores = None) -> Tensor:
        """Return `t` with the chosen elements set to zero. Nothing is registered."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        default_mask = torch.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module: Module) -> None:
        """Make the pruned parameter permanent. The original is lost."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original: Any = module._parameters[name + "_orig"]
        original.data = weight.data
        del module._parameters[name + "_orig"]
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several pruning methods on one parameter. Each method prunes elements that the earlier methods have left."""

    PRUNING_TYPE = "global"

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if len(args) == 1 and not isinstance(args[0], Iterable):
            self._tensor_name = args[0]._tensor_name
            self.add_pruning_method(args[0])
        else:
            for method in args[0] if len(args) == 1 else args:
                self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method for the same parameter."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Apply the last pruning method to the elements that `default_mask` keeps, and return the combined mask."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            chosen: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim: int = method.dim
            dim = dim if dim >= 0 else t.dim() + dim
            keep = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
            chosen = [slice(None)] * t.dim()
            chosen[dim] = keep
            chosen = tuple(chosen)
        elif method.PRUNING_TYPE == "global":
            chosen = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask[chosen] = method.compute_mask(t[chosen], default_mask=mask[chosen]).to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing, and prepares a parameter for pruning."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the given mask."""
        return default_mask


class _Unstructured(BasePruningMethod):
    """Prunes single elements. `amount` is the number of pruned elements, or a fraction if it is a float."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _chosen(self, t: Tensor, count: int) -> Any:
        """Return the elements to prune, in the form of the result of `topk`."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return a mask without the chosen elements."""
        size = t.nelement()
        count = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(count, size)
        mask = default_mask.clone(memory_format=torch.contiguous_format)
        if count != 0:
            mask.view(-1)[self._chosen(t, count).indices] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes random elements. `amount` is the number of pruned elements, or a fraction if it is a float."""

    def _chosen(self, t: Tensor, count: int) -> Any:
        return torch.topk(torch.rand_like(t).view(-1), k=count)


class L1Unstructured(_Unstructured):
    """Prunes the elements with the smallest absolute values.

    `amount` is the number of pruned elements, or a fraction if it is a float.
    """

    def _chosen(self, t: Tensor, count: int) -> Any:
        return torch.topk(torch.abs(t).view(-1), k=count, largest=False)


class _Structured(BasePruningMethod):
    """Prunes whole slices along one dimension."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.dim = dim

    def _checked(self, t: Tensor) -> tuple[int, int]:
        """Return the number of slices to prune, and the number of all slices."""
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(count, size)
        return count, size

    def _kept(self, t: Tensor, indices: Tensor, default_mask: Tensor) -> Tensor:
        mask = torch.zeros_like(t)
        chosen: list[Any] = [slice(None)] * t.dim()
        chosen[self.dim] = indices
        mask[tuple(chosen)] = 1
        return mask * default_mask.to(mask.dtype)


class RandomStructured(_Structured):
    """Prunes random slices along `dim`. `amount` is the number of pruned slices, or a fraction if it is a float."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return a mask without random slices."""
        count, size = self._checked(t)
        if count == 0:
            return default_mask
        drawn = torch.rand(size)
        threshold = torch.kthvalue(drawn, k=count)[0]
        return self._kept(t, (drawn > threshold).nonzero().flatten(), default_mask)


class LnStructured(_Structured):
    """Prunes the slices along `dim` with the smallest norms of order `n`.

    `amount` is the number of pruned slices, or a fraction if it is a float.
    """

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return a mask without the slices with the smallest norms."""
        count, size = self._checked(t)
        if count == 0:
            return default_mask
        axes = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        norms = torch.norm(t, p=self.n, dim=axes)
        return self._kept(t, torch.topk(norms, k=size - count, largest=True)[1], default_mask)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: float, n: Any, dim: int, importance_scores: Scores = None
    ) -> BasePruningMethod:
        """Prune a parameter by this method, after any earlier pruning, and register the hook."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes according to a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the given mask without the elements that `default_mask` has pruned."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module: Module, name: str) -> Module:
    """Prune nothing. The parameter becomes `<name>_orig` and has a mask of ones."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune random elements. `amount` is the number of pruned elements, or a fraction if it is a float."""
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Scores = None) -> Module:
    """Prune the elements with the smallest absolute values, or with the smallest `importance_scores`.

    >>> import adjoint as torch
    >>> layer = torch.nn.utils.prune.l1_unstructured(torch.nn.Linear(4, 3), "weight", amount=0.5)
    >>> int((layer.weight == 0).sum())
    6
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune random slices along `dim`."""
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(
    module: Module, name: str, amount: float, n: Any, dim: int, importance_scores: Scores = None
) -> Module:
    """Prune the slices along `dim` with the smallest norms of order `n`."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune according to the given mask. Zeros in the mask mark the elements to prune."""
    CustomFromMask.apply(module, name, mask=mask)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: dict[Any, Tensor] | None = None, **kwargs: Any
) -> None:
    """Prune elements of several parameters, selected from all parameters together.

    Args:
        parameters: pairs of a module and the name of its parameter.
        pruning_method: an unstructured method, such as `L1Unstructured`. `kwargs` are its arguments.
        importance_scores: a dictionary of the values to compare instead of the parameters, by pair.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = importance_scores if importance_scores is not None else {}
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = [(module, name) for module, name in parameters]
    relevant = torch.cat([scores.get((m, n), getattr(m, n)).reshape(-1) for m, n in pairs])
    default_mask = torch.cat([getattr(m, n + "_mask", torch.ones_like(getattr(m, n))).reshape(-1) for m, n in pairs])
    container: Any = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    container.add_pruning_method(method)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of type '
            f"{method.PRUNING_TYPE}"
        )
    final = container.compute_mask(relevant, default_mask)
    start = 0
    for module, name in pairs:
        parameter = getattr(module, name)
        custom_from_mask(module, name, mask=final[start : start + parameter.numel()].view_as(parameter))
        start += parameter.numel()


def remove(module: Module, name: str) -> Module:
    """Make the pruning of a parameter permanent. Raise ValueError if the parameter is not pruned."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Return whether a parameter of `module`, or of one of its descendants, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod) for each in module.modules() for hook in each._forward_pre_hooks.values()
    )


def _validate_pruning_amount_init(amount: Any) -> None:
    if not isinstance(amount, (int, float, numbers.Real)):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    share: Any = amount
    if share < 0 or (not isinstance(amount, numbers.Integral) and share > 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    if isinstance(amount, numbers.Integral) and int(amount) > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _validate_structured_pruning(t: Tensor) -> None:
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
            f"{t.shape} with {t.dim()} dims"
        )


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    return int(amount) if isinstance(amount, numbers.Integral) else round(float(amount) * tensor_size)


__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip
