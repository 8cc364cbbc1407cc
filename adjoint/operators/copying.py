"""Copies and conversions: `clone`, `copy_`, `to` and the casts, `fill_`, and what only looks at a tensor."""

from __future__ import annotations

from typing import Any

import numpy

from .. import dtypes
from ..device import contiguous_format, device
from ..kernels import broadcast, copying
from ..tensor import Tensor
from .build import operator, public

# ruff: noqa: D101, N801, F821  (declarations are named as the functions they become)


# --- copies ---------------------------------------------------------------------------------------------------


@operator(kernel=copying.clone)
class clone:
    """A copy in memory of its own, through which gradients pass.

    >>> import adjoint as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> x.clone()
    tensor([1., 1.], grad_fn=<CloneBackward0>)
    """

    def forward(self: Array, *, memory_format=None): ...

    def grad_self(grad):
        return grad


@public(namespace=None, method=True, on_arrays=copying.contiguous)
def contiguous(input, memory_format=contiguous_format):
    """The tensor itself if its elements lie in memory in row-major order (or `memory_format`), otherwise a copy."""
    if input.is_contiguous(memory_format):
        return input
    return clone(input, memory_format=memory_format)


@operator(namespace=None, method=False, node="ToCopyBackward0")
class to_dtype:
    """A copy with elements of another dtype."""

    def forward(self: Array, dtype, memory_format=None):
        return copying.convert(self, dtype.numpy, memory_format)

    def grad_self(grad, self_dtype, xp):
        if grad.dtype == self_dtype or (self_dtype.kind != "c" and numpy.dtype(getattr(grad.dtype, "numpy", grad.dtype)).kind == "c"):
            return grad
        return xp.to_dtype(grad, dtypes.from_numpy(self_dtype))


@operator(namespace=None, method=False, inplace=True, node="CopyBackwards", out=False, casts=True)
class copy:
    """`src`, broadcast to the shape of `self`."""

    def forward(self: Array, src: Array, non_blocking=False):
        return copying.overwritten(self, src)

    def grad_self(grad, xp):
        return xp.zeros_like(grad)

    def grad_src(grad):
        return grad


@operator(namespace=None, method=False, node="SumBackward1", out=False)
class sum_to_shape:
    """The sum over the dimensions along which `shape` was broadcast."""

    def forward(self: Array, shape):
        return broadcast.sum_to_shape(self, shape)

    def grad_self(grad, self_shape, xp):
        return xp.expand(grad, self_shape)


@public(namespace=None, method=("sum_to_size",), on_arrays=broadcast.sum_to_shape)
def sum_to_size(input, *size):
    """The tensor summed to `size`, which must broadcast to its shape: the transpose of `expand`."""
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    if shape == input._array.shape:
        return input
    if not broadcast.can_expand(shape, input._array.shape):
        raise RuntimeError(f"size {{{list(shape)}}} is not expandable to size {{{list(input._array.shape)}}}.")
    return sum_to_shape(input, shape)


# --- conversion -----------------------------------------------------------------------------------------------


def check_device(place: Any) -> None:
    """Raise unless tensors can live at `place`: on the CPU."""
    kind = place.type if type(place) is device else device(place).type
    if kind == "cuda":
        raise AssertionError("Torch not compiled with CUDA enabled")
    if kind != "cpu":
        raise RuntimeError(f"PyTorch is not linked with support for {kind} devices")


def _converted(input, dtype, copy, memory_format):
    """`input` as `dtype`: itself where nothing changes."""
    if (dtype is None or dtype is input.dtype) and not copy and (memory_format is None or input.is_contiguous(memory_format)):
        return input
    dtype = input.dtype if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        input = input.detach()
    return to_dtype(input, dtype, memory_format)


@public(namespace=None, method=("to",))
def to(input, *args, **names):
    """The tensor with another dtype (or that of another tensor); itself if it has that and no `copy` is asked for.

    `to(dtype)`, `to(device, dtype)` or `to(other)`, each with `non_blocking`, `copy` and `memory_format`.

    >>> import adjoint as torch
    >>> torch.tensor([1, 2]).to(torch.float64)
    tensor([1., 2.], dtype=torch.float64)
    """
    if len(args) == 1 and not names and type(args[0]) is dtypes.dtype:
        return _converted(input, args[0], False, None)
    kind, rest, flags = None, list(args), dict(names)
    place = flags.pop("device", None)
    other = flags.pop("other", flags.pop("tensor", None))
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
    elif rest and (rest[0] is None or isinstance(rest[0], (str, device, int)) and not isinstance(rest[0], bool)):
        place = rest.pop(0)
        if rest and (rest[0] is None or type(rest[0]) is dtypes.dtype):
            kind = rest.pop(0)
    elif rest and type(rest[0]) is dtypes.dtype:
        kind = rest.pop(0)
    if other is not None:
        kind = other.dtype
    kind = flags.pop("dtype", kind)
    for name in ("non_blocking", "copy"):
        if rest and name not in flags:
            flags[name] = rest.pop(0)
    memory_format = flags.pop("memory_format", None)
    copied = flags.pop("copy", False)
    flags.pop("non_blocking", None)
    if rest or flags or not (kind is None or type(kind) is dtypes.dtype):
        raise TypeError(_wrong_arguments(args, names))
    if place is not None:
        check_device(place)
    return _converted(input, kind, copied, memory_format)


def _wrong_arguments(args, names):
    given = ", ".join([_type_name(value) for value in args] + [f"{name}={_type_name(value)}" for name, value in names.items()])
    given += ", " if len(args) + len(names) == 1 and names else ""
    return (
        f"to() received an invalid combination of arguments - got ({given}), but expected one of:\n"
        " * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, "
        "torch.memory_format memory_format = None)\n"
        " * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n"
        " * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n"
    )


def _type_name(value):
    return {dtypes.dtype: "torch.dtype", device: "torch.device"}.get(type(value), type(value).__name__)


def _cast_method(kind, name):
    def cast(self, memory_format=None):
        return self if self._array.dtype is held and memory_format is None else _converted(self, kind, False, memory_format)

    held = kind.numpy
    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"The tensor as `{kind}`; itself if it is that already."
    return cast


for _name in ("float", "double", "half", "bfloat16", "long", "int", "short", "bool", "cfloat", "cdouble"):
    setattr(Tensor, _name, _cast_method(getattr(dtypes, _name), _name))
Tensor.char = _cast_method(dtypes.int8, "char")
Tensor.byte = _cast_method(dtypes.uint8, "byte")


# --- filling --------------------------------------------------------------------------------------------------


def filled(array, value):
    """`value` as it may be written to `array`."""
    return numpy.broadcast_to(numpy.asarray(value).astype(array.dtype), array.shape)


@operator(namespace=None, method=False, inplace=True, out=False, casts=True, node="FillBackward2")
class fill:
    """The number `value` in place of every element."""

    def forward(self: Array, value):
        return filled(self, value)

    def grad_self(grad, xp):
        return xp.zeros_like(grad)


@operator(namespace=None, method=False, inplace=True, out=False, casts=True, node="FillBackward3")
class fill_tensor:
    """The zero-dimensional tensor `value` in place of every element."""

    def forward(self: Array, value: Array):
        return copying.overwritten(self, value)

    def grad_self(grad, xp):
        return xp.zeros_like(grad)

    def grad_value(grad, value_shape, xp):
        return xp.sum_to_size(grad, value_shape)


_fill_scalar_, _fill_tensor_ = Tensor.fill_, Tensor.fill_tensor_
del Tensor.fill_tensor_


def _check_fill_value(value):
    if value._array.ndim:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value._array.ndim} dimensions."
        )


@public(method=True)
def fill_(input, value):
    """Set every element to `value`, a number or a zero-dimensional tensor, in place.

    >>> import adjoint as torch
    >>> torch.zeros(3).fill_(7)
    tensor([7., 7., 7.])
    """
    if isinstance(value, Tensor):
        _check_fill_value(value)
        return _fill_tensor_(input, value)
    return _fill_scalar_(input, value)


@operator(namespace=None, method=False, out=False, node="FillBackward0")
class full_of_number:
    """A tensor like `self` of which every element is the number `value`."""

    def forward(self: Array, value):
        return copying.clone(filled(self, value))

    def grad_self(grad, xp):
        return xp.zeros_like(grad)


@operator(namespace=None, method=False, out=False, node="FillBackward1")
class full_of_tensor:
    """A tensor like `self` of which every element is the zero-dimensional tensor `value`."""

    def forward(self: Array, value: Array):
        return copying.clone(copying.overwritten(self, value.astype(self.dtype)))

    def grad_self(grad, xp):
        return xp.zeros_like(grad)

    def grad_value(grad, value_shape, xp):
        return xp.sum_to_size(grad, value_shape)


@public(name="fill")
def fill_function(input, value):
    """A tensor like `input` of which every element is `value`, a number or a zero-dimensional tensor."""
    if isinstance(value, Tensor):
        _check_fill_value(value)
        return full_of_tensor(input, value)
    return full_of_number(input, value)


@operator(namespace=None, method=False, inplace=True, out=False)
class zero:
    """Zero in place of every element."""

    def forward(self: Array):
        return filled(self, 0)

    def grad_self(grad, xp):
        return xp.zeros_like(grad)
