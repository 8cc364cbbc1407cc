"""The types of compiled kernels: numbers, vectors of numbers, and pointers to numbers or vectors in memory.

A kernel uses them as annotations and calls them to convert values: `f64(x)`. `T`, `S` and `I` are type variables. The
caller of `compile` chooses the types that they represent.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy

from ..._runtime.platform import ctypes

__all__ = [
    "BITS", "FLOATS", "INDICES", "NUMBERS", "I", "Int", "Pointer", "S", "Static", "T", "bf16", "boolean", "f16", "f32", "f64",
    "i8", "i16", "i32", "i64", "type_of", "u8", "u16", "u32", "u64",
]  # fmt: skip
"""The names that the kernel language provides."""

_FLOATS = {16: "half", 32: "float", 64: "double"}


@dataclass(frozen=True, slots=True)
class NumberType:
    """A number in a register and in memory.

    `kind` is "f" for floating point, "i" for signed and "u" for unsigned integers, and "b" for truth values, which
    exist only in registers. `storage_only`: whether the type has no arithmetic, so that its values are converted first
    (bfloat16 and float16).
    """

    name: str
    kind: str
    bits: int
    ctype: Any = None
    storage_only: bool = False
    text: str = field(init=False, compare=False)
    """The name of the type in LLVM code."""

    def __post_init__(self) -> None:
        computes = self.kind == "f" and not self.storage_only
        object.__setattr__(self, "text", _FLOATS[self.bits] if computes else f"i{self.bits}")

    def __repr__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def element(self) -> NumberType:
        """The number type itself. For a vector type, this is the type of its numbers."""
        return self

    @property
    def width(self) -> int:
        """The number of values that a register of this type holds."""
        return 1


@dataclass(frozen=True, slots=True)
class VectorType:
    """`width` numbers of one type in a register."""

    element: NumberType
    width: int
    text: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", f"<{self.width} x {self.element.text}>")

    def __repr__(self) -> str:
        return f"<{self.width} x {self.element}>"

    @property
    def kind(self) -> str:
        """The kind of the numbers of this type."""
        return self.element.kind


@dataclass(frozen=True, slots=True)
class PointerType:
    """The address of consecutive numbers or vectors."""

    target: NumberType | VectorType
    text: ClassVar[str] = "ptr"

    def __repr__(self) -> str:
        return f"Pointer[{self.target}]"


@dataclass(frozen=True, slots=True)
class TypeVariable:
    """A type with a name. The code that compiles a kernel chooses the type."""

    name: str


_Target = TypeVar("_Target")

if TYPE_CHECKING:

    class Pointer(Generic[_Target]):
        """In an annotation: the address of values of one type."""

        def __getitem__(self, index: Any) -> Any: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __add__(self, elements: Any) -> Pointer[_Target]: ...

else:

    class Pointer:
        """In an annotation: the address of values of one type."""

        def __class_getitem__(cls, target: Any) -> Any:
            return cls


Static: Any = type("Static", (), {})
"""In an annotation: a parameter whose value is known at compile time."""

T: Any = TypeVariable("T")
S: Any = TypeVariable("S")
I: Any = TypeVariable("I")
f16: Any = NumberType("f16", "f", 16, ctypes.c_uint16, storage_only=True)
bf16: Any = NumberType("bf16", "f", 16, ctypes.c_uint16, storage_only=True)
f32: Any = NumberType("f32", "f", 32, ctypes.c_float)
f64: Any = NumberType("f64", "f", 64, ctypes.c_double)
i8: Any = NumberType("i8", "i", 8, ctypes.c_int8)
i16: Any = NumberType("i16", "i", 16, ctypes.c_int16)
i32: Any = NumberType("i32", "i", 32, ctypes.c_int32)
i64: Any = NumberType("i64", "i", 64, ctypes.c_int64)
u8: Any = NumberType("u8", "u", 8, ctypes.c_uint8)
u16: Any = NumberType("u16", "u", 16, ctypes.c_uint16)
u32: Any = NumberType("u32", "u", 32, ctypes.c_uint32)
u64: Any = NumberType("u64", "u", 64, ctypes.c_uint64)
boolean: Any = NumberType("boolean", "b", 1, ctypes.c_bool)
Int: Any = i64

BY_DTYPE: dict[str, Any] = {
    "float16": f16, "bfloat16": bf16, "float32": f32, "float64": f64, "int8": i8, "int16": i16, "int32": i32, "int64": i64,
    "uint8": u8, "uint16": u16, "uint32": u32, "uint64": u64, "bool": u8,
}  # fmt: skip


@functools.cache
def type_of(dtype: numpy.dtype[Any]) -> Any:
    """Return the type of the numbers of an array, or None if kernels have no type for them."""
    return BY_DTYPE.get(dtype.name)


def NUMBERS(dtype: numpy.dtype[Any]) -> Any:
    """Return the type of numbers with arithmetic."""
    found = type_of(dtype)
    return None if found is None or found.storage_only or dtype.kind == "b" else found


def FLOATS(dtype: numpy.dtype[Any]) -> Any:
    """Return the type of float32 or float64."""
    return type_of(dtype) if dtype.char in "fd" else None


def INDICES(dtype: numpy.dtype[Any]) -> Any:
    """Return the type of int32 or int64."""
    return type_of(dtype) if dtype.name in ("int32", "int64") else None


def BITS(dtype: numpy.dtype[Any]) -> Any:
    """Return the type of the bits of an element, for kernels that only move elements."""
    return {1: u8, 2: u16, 4: u32, 8: u64}.get(dtype.itemsize)
