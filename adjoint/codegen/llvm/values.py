"""Values of a kernel during lowering, and the representation of numbers and types in LLVM code."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy

from ...kernels.runtime.floating import unwarned
from .element_types import NumberType, PointerType, VectorType, bf16, boolean, f16, i64


class CompilationError(Exception):
    """The error for a kernel that cannot be compiled. `of_processor`: whether the reason is this processor."""

    of_processor = False


class UnsupportedInstruction(CompilationError):
    """The error for a kernel that requires an instruction that the processor lacks."""

    of_processor = True


@dataclass(slots=True)
class Value:
    """A value that exists only when the kernel runs: its type, and its name (or constant) in LLVM's text."""

    type: Any
    name: str

    def __str__(self) -> str:
        return f"{self.type.text} {self.name}"


def alignment(type_: Any) -> int:
    """Return the alignment, in bytes, that memory of this type is certain to have. NumPy arrays may begin at any address."""
    return 8 if isinstance(type_, PointerType) else 1


def size_of(type_: Any) -> int:
    """Return the number of bytes that one value takes in memory."""
    return 8 if isinstance(type_, PointerType) else max(1, type_.element.bits // 8) * type_.width


def constant(number: Any, type_: Any) -> Value:
    """Return a number as a value of this type. If the type is a vector, each element is the number."""
    element = type_.element
    if element.kind == "f":
        text = _float_text(number, element)
    elif element is boolean:
        text = "true" if number else "false"
    else:
        if int(number) != number:
            raise CompilationError(f"{number} is no {element}")
        value = int(number)
        text = str(value - (1 << element.bits) if value >> (element.bits - 1) == 1 else value)
    if isinstance(type_, VectorType):
        text = f"splat ({element.text} {text})"
    return Value(type_, text)


def _float_text(number: Any, element: NumberType) -> str:
    if element is f16:
        return str(int(numpy.float16(number).view(numpy.uint16)))
    if element is bf16:
        if number == 0:
            return "0"
        raise CompilationError("a bfloat16 constant is made by conversion: bf16(f32(x))")
    if element.bits == 32:
        with unwarned():
            number = float(numpy.float32(number))
    return "0x" + struct.pack(">d", float(number)).hex().upper()


NUMBERS = int, float, numpy.integer, numpy.floating


def is_number(value: Any) -> bool:
    """Return whether this is a number that is known at compile time."""
    return isinstance(value, NUMBERS)


def weak_type(number: Any) -> Any:
    """Return the type of a Python number. A float has no type, because it could have either precision."""
    if isinstance(number, bool):
        return boolean
    if isinstance(number, int):
        return i64
    raise CompilationError(f"{number} alone has no type: write f32({number}), f64({number}) or T({number})")
