"""Tensors as instances of a class derived from `Tensor`, and exchanging the contents of tensors (`swap_tensors`)."""

from __future__ import annotations

import weakref
from typing import Any, TypeVar

from ... import dtypes
from ..._runtime.tracebacks import ending_at_caller
from ...dispatch.arguments import require
from ...dispatch.decorators import public
from ...kernels.memory import storage
from ...kernels.memory.bounds import whole
from ...tape import modes
from ...tape.inference_tensors import share_inference
from ...tape.node import live_accumulator
from ...tape.torch_dispatch import disabled_torch_dispatch_impl
from ...tape.versions import Mark, shared_counter
from ...tensor import Tensor, make_subclass, new
from ..create.creation import check_requires_grad
from ..shape.view import alias, checked_sizes
from .conversion import checked_dtype

T = TypeVar("T", bound=Tensor)

SLOTS = ("_array", "_edge", "_grad", "_base", "_counter", "_extra", "_creation", "_view_version")


@public(namespace=None, method=True)
def as_subclass(input: Tensor, cls: type[T]) -> T:
    """The tensor as a view of type `cls`. Gradients pass through the view.

    Raises:
        TypeError: if `cls` is not a subclass of `Tensor`.

    >>> import adjoint as torch
    >>> class Metres(torch.Tensor):
    ...     pass
    >>> torch.ones(2).as_subclass(Metres) * 3
    Metres([3., 3.])
    """
    _check(cls)
    view = alias(input)
    if type(view) is not Tensor:  # within `vmap`, where tensors are of a kind of their own
        return view
    try:
        view.__class__ = cls  # type: ignore[assignment]
    except TypeError:  # `cls` has slots of its own
        made = new(cls)
        for slot in SLOTS:
            setattr(made, slot, getattr(view, slot))
        return made
    return view


def _make_subclass(cls: type[T], data: Tensor, require_grad: bool = False) -> T:
    """A leaf of type `cls` that shares memory and version counter with `data`."""
    _check(cls)
    require("Tensor", data, "_make_subclass", "data", 2)
    if require_grad:
        check_requires_grad(True, data._array.dtype)
    of_inference = data._extra is not None and data._extra.inference
    if of_inference and require_grad and not modes.STATE.inference:
        raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
    made = make_subclass(cls, data._array, require_grad)
    if not of_inference:
        made._counter = shared_counter(data)
    share_inference(made, data)
    return made  # type: ignore[return-value]


def _make_wrapper_subclass(
    cls: type[T], size: Any, strides: Any = None, storage_offset: Any = None, memory_format: Any = None,
    dtype: dtypes.dtype | None = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, *others: Any, **named: Any,
) -> T:  # fmt: skip
    """A leaf of type `cls` with a size, strides and a dtype, but without elements.

    All elements read as zeros.

    This is for classes that contain tensors, and define `__torch_dispatch__` to compute with these tensors. Other
    arguments that describe memory have no effect.

    Raises:
        TypeError: if an argument has the wrong type.
        RuntimeError: if the tensor cannot require grad, or has an offset but no strides, or too many or few strides.
    """
    _check(cls)
    if cls.__torch_dispatch__ is disabled_torch_dispatch_impl:  # type: ignore[attr-defined]
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    for name in named:
        if name not in _WITHOUT_EFFECT:
            raise TypeError(f"_make_wrapper_subclass() got an unexpected keyword argument '{name}'")
    kind = checked_dtype(dtype, "_make_wrapper_subclass") or dtypes.get_default_dtype()
    steps = None if strides is None else tuple(map(whole, strides))
    if steps is None and storage_offset:
        raise RuntimeError("setting storage offset without stride not supported")
    shape = checked_sizes(size, "_make_wrapper_subclass", "size", 2)
    array = storage.without_elements(shape, kind.numpy, steps, whole(storage_offset or 0))
    if requires_grad:
        check_requires_grad(True, kind.numpy)
    return make_subclass(cls, array, requires_grad)  # type: ignore[return-value]


_WITHOUT_EFFECT = {
    "dispatch_sizes_strides_policy", "dispatch_device", "dispatch_layout", "_extra_dispatch_keys", "storage_size",
}  # fmt: skip


def _check(cls: Any) -> None:
    """Raise an error unless `cls` is a class of tensors."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your class "
            "inherits from Tensor."
        )


Tensor._make_subclass = staticmethod(_make_subclass)
Tensor._make_wrapper_subclass = staticmethod(_make_wrapper_subclass)  # type: ignore[method-assign, assignment]


@public(namespace=None, method=True)
def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """Return the new value of this parameter or buffer when its module loads `other`.

    A tensor class may define another rule.

    Modules call this method while `torch.__future__.set_swap_module_params_on_conversion(True)` is active.

    Returns:
        If `assign` is true, return `other` without history. Otherwise copy `other` into this tensor without history,
            and return this tensor.

    >>> import adjoint as torch
    >>> torch.zeros(2).module_load(torch.ones(2))
    tensor([1., 1.])
    """
    return other.detach() if assign else self.copy_(other).detach()


@ending_at_caller
def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange the contents of two tensors, including their classes.

    Each variable then refers to the other tensor's contents.

    Raises:
        RuntimeError: if a weak reference to one of the tensors exists, or if the classes have different slots.

    >>> import adjoint as torch
    >>> a, b = torch.ones(2), torch.zeros(3)
    >>> torch.utils.swap_tensors(a, b)
    >>> a
    tensor([0., 0., 0.])
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if any(reference is not _own_reference(tensor) for reference in weakref.getweakrefs(tensor)):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    try:
        t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    except TypeError:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots") from None
    for slot in ("__dict__", *SLOTS):
        one, other = getattr(t1, slot, None), getattr(t2, slot, None)
        setattr(t1, slot, other)
        setattr(t2, slot, one)
    for tensor in (t1, t2):
        node = live_accumulator(tensor)
        if node is not None:
            node.variable = tensor


def _own_reference(tensor: Tensor) -> Any:
    """Return the weak reference to the tensor in its own version counter, or None."""
    mark = None if tensor._counter is None else tensor._counter[0]
    return mark.tensor if isinstance(mark, Mark) else None
