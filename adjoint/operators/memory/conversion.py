"""Conversion of tensors to another dtype, device or memory layout, and functions that accept types."""

from __future__ import annotations

from typing import Any

from numpy import ndarray

from ... import dtypes
from ...codegen.backend import NUMPY
from ...codegen.kernel import Kernel
from ...device import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    cpu,
    device,
    memory_format,
    meta,
    preserve_format,
)  # fmt: skip
from ...dispatch.annotations import Array
from ...dispatch.arguments import invalid_arguments, require
from ...dispatch.decorators import internal, public
from ...dispatch.signatures import type_name
from ...kernels.memory import copying
from ...kernels.runtime.layout import has_channels_last
from ...kernels.runtime.meta_array import Meta, in_order, parked
from ...tape import mode_switches, modes
from ...tape.aliases import detached
from ...tape.anomaly import note_operation
from ...tape.inference_tensors import mark_if_inference
from ...tape.modes import ANOMALY, is_recording
from ...tensor import Tensor, can_require_grad, wrap

_BUILTIN_TYPES = {float: dtypes.float64, int: dtypes.int64, bool: dtypes.bool, complex: dtypes.complex128}

_LAST = "bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None"


def checked_dtype(dtype: Any, function: str) -> Any:
    """Return `dtype`. Python's number types are converted, and None is returned unchanged."""
    if dtype is None or type(dtype) is dtypes.dtype:
        return dtype
    try:
        return _BUILTIN_TYPES[dtype]
    except (KeyError, TypeError):
        raise TypeError(f"{function}(): argument 'dtype' must be torch.dtype, not {type_name(dtype)}") from None


def check_device(place: Any) -> None:
    """Raise an error unless tensors can be on the device `place`, the CPU."""
    kind = place.type if type(place) is device else device(place).type
    if kind in ("cuda", "xpu"):
        raise AssertionError(f"Torch not compiled with {kind.upper()} enabled")
    if kind != "cpu":
        raise RuntimeError(f"adjoint is not linked with support for {kind} devices")


def is_meta(place: Any) -> bool:
    """Return whether `place` is `meta`. Raise an error unless it is `meta` or the CPU."""
    kind = place.type if type(place) is device else place if place == "cpu" else device(place).type
    if kind == "meta":
        return True
    if kind != "cpu":
        check_device(place)
    return False


def on_meta(device: Any) -> bool:
    """Return whether a new tensor is on `meta`, and therefore needs no elements."""
    if device is None and modes.FLAGS.special:
        device = mode_switches.current_place()
    return device is not None and device is not cpu and is_meta(device)


def allocator(device: Any, make: Any = NUMPY.allocate) -> Any:
    """Return the function that makes an array from its shape and dtype: `make`, or on `meta` one that takes no memory."""
    return in_order if on_meta(device) else make


@internal(
    Kernel(copying.to_dtype, quiet=True),
    node="ToCopyBackward0",
    out=False,
    tangent="linear",
    batch="elementwise",
    aten_name="to",
    sparse="shapes.to_dtype",
    narrow="converts",
)
class to_dtype:
    """A copy with elements of another dtype."""

    saved_display = {"self_dtype": None}

    def forward(self: Array, dtype, memory_format=None): ...

    def grad_self(grad, self_dtype, xp):
        kind = dtypes.from_numpy(self_dtype)
        return xp.to_dtype(grad if kind.is_complex else xp.real(grad), kind)


def _is_laid_out(input: Tensor, memory_format: Any) -> bool:
    """Return whether `memory_format` leaves `input` unchanged. Tensors that are not channels-last count as contiguous."""
    if memory_format is preserve_format:
        return True
    array = input._array
    if type(array) is not ndarray:  # one example of a batch determines only row-major order
        return memory_format is contiguous_format or Tensor.is_contiguous(input, memory_format=memory_format)
    last = has_channels_last(array)
    if memory_format is contiguous_format:
        return not last
    return last and memory_format is {4: channels_last, 5: channels_last_3d}.get(array.ndim)


def converted(input: Tensor, dtype: Any = None, copy: bool = False, memory_format: Any = None) -> Tensor:
    """Return `input` as `dtype`, or the tensor itself if nothing changes and no `copy` is requested."""
    own = dtypes.from_numpy(input._array.dtype)
    if (dtype is None or dtype is own) and not copy and (memory_format is None or _is_laid_out(input, memory_format)):
        return input
    dtype = own if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex) and can_require_grad(input._array):
        cut = detached(input, None) if type(input) is Tensor else input.detach()
        result: Tensor = to_dtype(cut, dtype, memory_format)
        if ANOMALY.enabled:
            note_operation("to", [input], [result], False)
        return result
    return to_dtype(input, dtype, memory_format)


@public(
    namespace=None,
    method=True,
    forms=(
        f"torch.device device = None, torch.dtype dtype = None, {_LAST}",
        f"torch.dtype dtype, {_LAST}",
        f"Tensor tensor, {_LAST}",
    ),
)
def to(input, *args, **names):
    """The tensor converted to another dtype (or to the dtype of another tensor).

    If nothing changes and no `copy` is requested, the tensor itself is returned.

    Call `to(dtype)`, `to(device, dtype)` or `to(other)`, each with `non_blocking`, `copy` and `memory_format`.

    >>> import adjoint as torch
    >>> torch.tensor([1, 2]).to(torch.float64)
    tensor([1., 2.], dtype=torch.float64)
    """
    if len(args) == 1 and not names:
        (wanted,) = args
        if type(wanted) is dtypes.dtype:
            return converted(input, wanted)
        name = wanted if type(wanted) is str else wanted.type if type(wanted) is device else None
        if name == "cpu" and type(input._array) is not Meta:
            return input
        if isinstance(wanted, Tensor) and Meta not in (type(input._array), type(wanted._array)):
            return converted(input, wanted.dtype)
    kind, place, flags = to_arguments(args, names)
    if place is not None:
        here = type(input._array) is Meta
        if is_meta(place):
            if not here:
                return _on_meta(input, kind or input.dtype)
        elif here and input.is_meta:
            raise Meta.error(Meta.refusal)
    return converted(input, kind, flags.get("copy", False), flags.get("memory_format"))


@public(namespace=None, method=True)
def to_device(input, device, /, *, stream=None):
    """The tensor on another device. The array API standard requires this form of `to(device)`.

    >>> import adjoint as torch
    >>> torch.ones(2).to_device("cpu")
    tensor([1., 1.])
    """
    if stream is not None:
        raise ValueError("to_device(): the devices have no streams; `stream` must be None")
    return input.to(device)


def _on_meta(input: Tensor, kind: dtypes.dtype) -> Tensor:
    """Return a tensor like `input` on the device `meta`, without elements."""
    result: Tensor
    if not (input.requires_grad and is_recording()):
        result = wrap(parked(input._array, kind.numpy))
        mark_if_inference(result)
        return result
    result = to_dtype(input, kind)
    result._array = parked(result._array)
    return result


def to_arguments(args: tuple[Any, ...], names: dict[str, Any]) -> tuple[dtypes.dtype | None, Any, dict[str, Any]]:
    """Return the dtype, the device and the flags given to `to` of a tensor or a module."""
    kind, rest, flags = None, list(args), dict(names)
    place = flags.pop("device", None)
    order = ["non_blocking", "copy"]
    first = rest.pop(0) if rest else flags.pop("tensor", None)
    if isinstance(first, Tensor):
        kind, place = first.dtype, meta if type(first._array) is Meta else cpu
    elif type(first) is dtypes.dtype or isinstance(first, type):
        kind = checked_dtype(first, "to")
    elif first is None or (isinstance(first, (str, device, int)) and not isinstance(first, bool)):
        place = first if first is not None else place
        order.insert(0, "dtype")
    else:
        raise invalid_arguments("to", *args, **names)
    if len(rest) > len(order) or set(order[: len(rest)]) & set(flags):
        raise invalid_arguments("to", *args, **names)
    flags.update(zip(order, rest, strict=False))
    if "dtype" in flags and kind is None:
        kind = flags.pop("dtype")
        if not (kind is None or type(kind) is dtypes.dtype or kind in _BUILTIN_TYPES):
            raise invalid_arguments("to", *args, **names)
        kind = checked_dtype(kind, "to")
    order_in_memory = flags.get("memory_format")
    fits = set(flags) <= {"non_blocking", "copy", "memory_format"} and isinstance(order_in_memory, memory_format | None)
    if not fits or any(not isinstance(flags.get(name, False), bool) for name in ("non_blocking", "copy")):
        raise invalid_arguments("to", *args, **names)
    return kind, place, flags


def _cast_method(name, kind):
    held = dtypes.HELD[kind]

    def cast(self, /, memory_format=None):
        return (
            self if self._array.dtype is held and memory_format is None else converted(self, kind, False, memory_format)
        )

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"The tensor as `{kind}`; itself if it is that already."
    return public(namespace=None, method=True)(cast)


for _name, _kind in {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
    "chalf": dtypes.complex32, "cfloat": dtypes.complex64, "cdouble": dtypes.complex128, "long": dtypes.int64,
    "int": dtypes.int32, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8, "bool": dtypes.bool,
}.items():  # fmt: skip
    _cast_method(_name, _kind)


@public(namespace=None, method=True)
def type_as(input, other):
    """The tensor with the dtype of `other`."""
    require("Tensor", other, "type_as", "other", 1)
    return converted(input, other.dtype)


@public(namespace=None, method=True)
def cuda(input, device=None, non_blocking=False, memory_format=None):
    """Raise AssertionError, because all tensors are on the CPU."""
    check_device("cuda")


@public(namespace=None, method=True)
def xpu(input, device=None, non_blocking=False, memory_format=None):
    """Raise AssertionError, because all tensors are on the CPU."""
    check_device("xpu")


@public(namespace=None, method=True)
def pin_memory(input, device=None):
    """Raise RuntimeError, because only accelerators need page-locked memory."""
    raise RuntimeError(
        "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on "
        "this system."
    )
