"""The dtypes of the standard: their promotion, their kinds and their limits.

`__array_namespace_info__` describes the namespace: devices, dtypes and capabilities.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy

import adjoint as torch

from ..dtypes import from_numpy

__all__ = ["__array_namespace_info__", "astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

DTYPES: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
"""The names of the dtypes of each kind that is not a union of other kinds."""

DTYPES["integral"] = DTYPES["signed integer"] + DTYPES["unsigned integer"]
DTYPES["numeric"] = DTYPES["integral"] + DTYPES["real floating"] + DTYPES["complex floating"]

Scalar = bool | int | float | complex
SCALARS = (bool, int, float, complex)


def _is_kind(dtype: torch.dtype, kind: str) -> bool:
    if kind not in DTYPES:
        raise ValueError(f"isdtype(): there is no kind {kind!r}; the kinds are {', '.join(map(repr, DTYPES))}")
    if kind == "real floating":
        return dtype.is_floating_point
    if kind == "complex floating":
        return dtype.is_complex
    if kind == "numeric":
        return dtype is not torch.bool
    return str(dtype).removeprefix("torch.") in DTYPES[kind]


def isdtype(dtype: torch.dtype, kind: torch.dtype | str | tuple[torch.dtype | str, ...]) -> bool:
    """Return whether `dtype` equals `kind`, or belongs to a kind ("integral", ...) or to one of several kinds."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return any(_is_kind(dtype, each) if isinstance(each, str) else dtype is each for each in kinds)


def _promoted(first: torch.dtype, second: torch.dtype) -> torch.dtype:
    """Return the common dtype of two dtypes. NumPy's rules apply to integers, and PyTorch's rules to other dtypes."""
    if first is second:
        return first
    if _is_kind(first, "integral") and _is_kind(second, "integral"):
        promoted = from_numpy(numpy.promote_types(first.numpy, second.numpy))
        if promoted.is_floating_point:
            raise TypeError(f"there is no integer dtype to which {first} and {second} promote")
        return promoted
    if first is torch.bool or (_is_kind(first, "integral") and second is not torch.bool):
        return second  # its kind is higher
    if second is torch.bool or _is_kind(second, "integral"):
        return first
    return torch.promote_types(first, second)


def result_type(*arrays_and_dtypes: torch.Tensor | torch.dtype | Scalar) -> torch.dtype:
    """Return the dtype of the result of an operation. Zero-dimensional tensors have the same weight as other tensors."""
    numbers = [each for each in arrays_and_dtypes if isinstance(each, SCALARS)]
    others = [each for each in arrays_and_dtypes if not isinstance(each, SCALARS)]
    if not others:
        raise ValueError("result_type(): at least one array or dtype must be given")
    dtypes = [each if isinstance(each, torch.dtype) else each.dtype for each in others]
    dtype = dtypes[0]
    for each in dtypes[1:]:
        dtype = _promoted(dtype, each)
    for number in numbers:
        dtype = _promoted_by_number(dtype, number)
    return dtype


def _promoted_by_number(dtype: torch.dtype, number: Scalar) -> torch.dtype:
    """Return the dtype itself, unless the number has a higher kind."""
    promoted: Any = torch.result_type(torch.empty(1, dtype=dtype), torch.asarray(number))
    return cast(torch.dtype, promoted)


def can_cast(from_: torch.dtype | torch.Tensor, to: torch.dtype, /) -> bool:
    """Return whether values of the first dtype promote to the second dtype."""
    dtype = from_ if isinstance(from_, torch.dtype) else from_.dtype
    try:
        return _promoted(dtype, to) is to
    except TypeError:
        return False


def astype(x: torch.Tensor, dtype: torch.dtype, /, *, copy: bool = True, device: Any = None) -> torch.Tensor:
    """Return the tensor with another dtype. With `copy=False`, return the tensor itself if it already has this dtype."""
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"astype(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    if x.dtype.is_complex and not dtype.is_complex and dtype is not torch.bool:
        raise TypeError(f"astype(): {x.dtype} does not become {dtype}; take real(x) or imag(x)")
    return converted(x, dtype, device, copy or None)


def converted(x: torch.Tensor, dtype: torch.dtype | None, device: Any, copy: bool | None) -> torch.Tensor:
    """Return the tensor with this dtype on this device.

    Gradients pass through the conversion. If `copy` is true, the elements are copied in any case.
    """
    options: dict[str, Any] = {"dtype": dtype, "device": device, "copy": bool(copy)}
    result: torch.Tensor = x.to(**options)
    if copy is False and result is not x:
        raise ValueError("asarray(): another dtype or device needs a copy, which copy=False forbids")
    return result


class FloatLimits(NamedTuple):
    """The limits of a floating-point dtype, or of the parts of a complex dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: torch.dtype


class IntegerLimits(NamedTuple):
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: torch.dtype


def finfo(type: torch.dtype | torch.Tensor, /) -> FloatLimits:
    """Return the limits of a floating-point or complex dtype.

    For a complex dtype, the result names the dtype of its parts.
    """
    found = torch.finfo(type if isinstance(type, torch.dtype) else type.dtype)
    return FloatLimits(
        found.bits, found.eps, found.max, found.min, found.smallest_normal, getattr(torch, str(found.dtype))
    )


def iinfo(type: torch.dtype | torch.Tensor, /) -> IntegerLimits:
    """The limits of an integer dtype."""
    dtype = type if isinstance(type, torch.dtype) else type.dtype
    found = torch.iinfo(dtype)
    return IntegerLimits(found.bits, found.max, found.min, dtype)


def as_common(*values: torch.Tensor | Scalar) -> list[torch.Tensor]:
    """Return the values as tensors of the dtype to which they promote."""
    dtype = result_type(*values)
    return [
        (value if value.dtype is dtype else value.to(dtype))
        if isinstance(value, torch.Tensor)
        else torch.asarray(value, dtype=dtype)
        for value in values
    ]


def summed_dtype(x: torch.Tensor) -> torch.dtype:
    """Return the dtype of sums and products, which has 64 bits for integers."""
    if isdtype(x.dtype, "unsigned integer"):
        return torch.uint64
    return torch.int64 if isdtype(x.dtype, ("signed integer", "bool")) else x.dtype


class __array_namespace_info__:
    """The inspection functions of the standard."""

    def capabilities(self) -> dict[str, Any]:
        """Return the capabilities: support for boolean masks and for shapes that depend on values, and at most 64 dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> torch.device:
        """Return the device of new tensors."""
        place: Any = torch.get_default_device()
        return cast(torch.device, place)

    def devices(self) -> list[torch.device]:
        """The devices."""
        return [torch.device("cpu"), torch.device("meta")]

    def default_dtypes(self, *, device: Any = None) -> dict[str, torch.dtype]:
        """Return the dtypes of new tensors, by kind."""
        real = torch.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": torch.complex128 if real is torch.float64 else torch.complex64,
            "integral": torch.int64,
            "indexing": torch.int64,
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, torch.dtype]:
        """Return the dtypes of the standard by name: all dtypes, or the dtypes of the given kinds."""
        kinds = ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        for each in kinds:
            if each not in DTYPES:
                raise ValueError(f"unsupported kind: {each!r}")
        return {name: getattr(torch, name) for each in kinds for name in DTYPES[each]}
