"""Parametrizations: a parameter or buffer of a module as a function of other tensors."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import adjoint as torch
from adjoint import Tensor

from ..modules.container import ModuleDict, ModuleList
from ..modules.conversion import swaps
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip

_cache: ContextVar[dict[tuple[Any, ...], Tensor] | None] = ContextVar("cache", default=None)
"""The tensors that have been computed inside `cached`.

Each new entry creates a new dictionary. Code that copies the context, such as a recomputation, then sees the entries
that existed at that time.
"""


@contextmanager
def cached() -> Iterator[None]:
    """A context that caches parametrized tensors after their first use, separately for uses with and without recording."""
    if _cache.get() is not None:
        yield
        return
    token = _cache.set({})
    try:
        yield
    finally:
        _cache.reset(token)


def _require_tensor(value: Any, words: str) -> None:
    if not isinstance(value, Tensor):
        raise ValueError(words.format(type(value).__name__))


def _require_same(words: str, first: Any, second: Any, first_name: str, second_name: str) -> None:
    """Raise an error if a shape or dtype has changed."""
    if first != second:
        raise ValueError(f"{words}\n{first_name}: {first}\n{second_name}: {second}")


def _store(target: Tensor, value: Tensor) -> None:
    """Give `target`, which remains the same object, another value."""
    if not swaps(target):
        target.set_(value)
        return
    if isinstance(target, Parameter) and not isinstance(value, Parameter):
        value = Parameter(value, target.requires_grad)
    torch.utils.swap_tensors(target, value)


def _register_parameter_or_buffer(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied in order to `original` (or `original0`, `original1`, ...).

    Args:
        modules: the parametrizations, at least one.
        original: the tensor. A method `right_inverse` of the parametrizations computes the stored tensor from
            `original`.
        unsafe: whether the parametrizations may change shape and dtype without a check.
    """

    original: Tensor
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor | Parameter, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with torch.no_grad():
            new: Any = original
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        pass
        self.is_tensor = isinstance(new, Tensor)
        if not self.is_tensor and not isinstance(new, Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            for kind in ("dtype", "device"):
                words = f"When `right_inverse` outputs one tensor, it may not change the {kind}."
                old, changed = getattr(original, kind), getattr(new, kind)
                _require_same(words, old, changed, f"original.{kind}", f"right_inverse(original).{kind}")
            with torch.no_grad():
                _store(original, new)
            _register_parameter_or_buffer(self, "original", original)
        else:
            self._register_several(new, original)
        if not unsafe:
            made = self()
            _require_tensor(made, "A parametrization must return a tensor. Got {}.")
            words = (
                "Registering a parametrization may not change the {} of the tensor, unless `unsafe` flag is enabled."
            )
            _require_same(words.format("dtype"), dtype, made.dtype, "unparametrized dtype", "parametrized dtype")
            _require_same(words.format("shape"), shape, made.shape, "unparametrized shape", "parametrized shape")

    def _register_several(self, parts: Sequence[Any], original: Tensor) -> None:
        for i, part in enumerate(parts):
            _require_tensor(
                part,
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got element {i} of the sequence with type {{}}.",
            )
            if isinstance(original, Parameter):
                part = Parameter(part, original.requires_grad)
            part.requires_grad_(original.requires_grad)
            _register_parameter_or_buffer(self, f"original{i}", part)

    def right_inverse(self, value: Tensor) -> None:
        """Store the tensors that give `value`, by calling `right_inverse` of the parametrizations in reversed order.

        Raises:
            RuntimeError: if a parametrization has no `right_inverse`.
            ValueError: if the result differs from the stored tensors in type, dtype or number.
        """
        with torch.no_grad():
            new: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                new = module.right_inverse(new)
            if self.is_tensor:
                _require_tensor(new, "`right_inverse` should return a tensor. Got {}")
                words = "The tensor returned by `right_inverse` has dtype {} while `original` has dtype {}"
                if new.dtype != self.original.dtype:
                    raise ValueError(words.format(new.dtype, self.original.dtype))
                _store(self.original, new)
                return
            if not isinstance(new, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(new)}.")
            if len(new) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got a sequence of length {len(new)}."
                )
            for i, part in enumerate(new):
                stored = getattr(self, f"original{i}")
                _require_tensor(
                    part, f"`right_inverse` must return a sequence of tensors. Got element {i} of type {{}}"
                )
                if part.dtype != stored.dtype:
                    raise ValueError(
                        f"Tensor {i} returned by `right_inverse` has dtype {part.dtype} while `original{i}` has dtype "
                        f"{stored.dtype}"
                    )
            for i, part in enumerate(new):
                _store(getattr(self, f"original{i}"), part)

    def forward(self) -> Tensor:
        """Return the parametrized tensor."""
        if self.is_tensor:
            value = self[0](self.original)
        else:
            value = self[0](*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in list(self)[1:]:
            value = module(value)
        return value


def _refuse_state(self: Module) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _deep_copy(self: Module, memo: dict[int, Any]) -> Module:
    """Copy the module and its attributes. The default deep copy would call `__getstate__`, which refuses to pickle."""
    if id(self) not in memo:
        made = memo[id(self)] = self.__new__(type(self))
        made.__dict__ = copy.deepcopy(self.__dict__, memo)
    return memo[id(self)]


def _inject_new_class(module: Module) -> None:
    """Give `module` a separate class that can have properties."""
    kind = type(module)
    members: dict[str, Any] = {"__getstate__": _refuse_state, "__module__": __name__}
    if not hasattr(kind, "__deepcopy__"):
        members["__deepcopy__"] = _deep_copy
    module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), members)


def _inject_property(module: Module, tensor_name: str) -> None:
    """Turn the attribute into a property that computes the parametrized tensor. Assignments call `right_inverse`."""

    def compute(self: Any) -> Tensor:
        known = _cache.get()
        if known is None:
            return self.parametrizations[tensor_name]()
        key = id(self), tensor_name, torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        if key not in known:
            known = known | {key: self.parametrizations[tensor_name]()}
            _cache.set(known)
        return known[key]

    def assign(self: Any, value: Tensor) -> None:
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(compute, assign))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Replace `module.tensor_name` by the result of `parametrization`, applied to a stored tensor.

    Args:
        parametrization: a module whose `forward` computes the tensor. A method `right_inverse` computes the stored
            tensor from the current value, and from values that are assigned later. Without this method, the current
            value is stored.
        unsafe: whether the parametrization may change shape and dtype.

    Returns:
        `module`, whose class is now a subclass of the former class.

    Raises:
        ValueError: if the tensor does not exist, or if the parametrization changes the shape or the dtype.

    >>> import adjoint as torch
    >>> class Symmetric(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).mT
    >>> layer = torch.nn.utils.parametrize.register_parametrization(torch.nn.Linear(3, 3), "weight", Symmetric())
    >>> torch.equal(layer.weight, layer.weight.mT)
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_another(module, tensor_name, parametrization)
        found: Any = module.parametrizations[tensor_name]
        found.append(parametrization)
        found.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        listed = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = listed
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    return module


def _check_another(module: Module, tensor_name: str, parametrization: Any) -> None:
    """Raise an error if one more parametrization, or its inverse, changes shape or dtype."""
    value = getattr(module, tensor_name)
    new = parametrization(value)
    _require_tensor(new, "A parametrization must return a tensor. Got {}.")
    words = "Registering a parametrization may not change the {} of the tensor, unless the `unsafe` flag is enabled."
    for kind in ("dtype", "shape"):
        _require_same(
            words.format(kind),
            getattr(value, kind),
            getattr(new, kind),
            f"module.{tensor_name}.{kind}",
            f"parametrization(module.{tensor_name}).{kind}",
        )
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(new)
    except NotImplementedError:
        return
    _require_tensor(back, "parametrization.right_inverse must return a tensor. Got: {}")
    for kind in ("dtype", "shape"):
        _require_same(
            f"The tensor returned by parametrization.right_inverse must have the same {kind} as module.{tensor_name}, unless "
            "the `unsafe` flag is enabled.",
            getattr(value, kind),
            getattr(back, kind),
            f"module.{tensor_name}.{kind}",
            f"returned {kind}",
        )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether the named tensor of `module` is parametrized. Without a name, return whether any tensor is parametrized."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Remove all parametrizations of a tensor. The tensor is then an ordinary parameter or buffer again.

    If `leave_parametrized` is True, it has the value that the parametrizations compute. Otherwise it is the stored tensor.
    In this case, only one tensor may be stored.

    Raises:
        ValueError: if the tensor is not parametrized, or if several tensors are stored for it and `leave_parametrized`
            is False.
        RuntimeError: if the stored tensor cannot take the computed value, for example because of its dtype.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    held: Any = module.parametrizations
    listed = held[tensor_name]
    if listed.is_tensor:
        original = listed.original
        if leave_parametrized:
            try:
                with torch.no_grad():
                    _store(original, getattr(module, tensor_name))
            except RuntimeError as error:
                raise RuntimeError(
                    "Calling remove_parametrizations() with leave_parametrized=True for a parameter that is an instance of a "
                    "tensor subclass requires set_() to be implemented correctly for the tensor subclass.Alternatively, one can "
                    "opt into the swap_tensors pathEither set leave_parametrized=False or provide a working implementationfor "
                    "set_() in the tensor subclass or set torch.__future__.set_swap_module_params_on_conversion(True)."
                ) from error
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of "
            "tensors."
        )
    delattr(type(module), tensor_name)
    del held[tensor_name]
    _register_parameter_or_buffer(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class that `module` had before its first parametrization."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Copy the parametrizations of one or all tensors of `from_module`, with the stored tensors, to `to_module`."""
    if not is_parametrized(from_module):
        return to_module
    if not isinstance(from_module.parametrizations, ModuleDict):
        raise AssertionError(f"Expected {from_module}.parametrizations to be ModuleDict")
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        source: Any = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for module in source:
            register_parametrization(to_module, name, module)
        target: Any = to_module.parametrizations[name]
        if hasattr(source, "original"):
            target.original = source.original
        else:
            for i in range(source.ntensors):
                setattr(target, f"original{i}", getattr(source, f"original{i}"))
    return to_module
