"""The text of a program in Python's syntax: one line for each instruction, and literals for constants."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy
from numpy import ndarray

import adjoint as torch

from ..dispatch.steps.promote import prepared
from ..kernels.memory.copying import copy_
from ..kernels.runtime.layout import laid_out
from ..operators import OPERATORS
from ..tensor import Tensor, wrap
from .errors import Unsupported
from .known import ARITHMETIC, Made, own_name
from .program import Constant, Instruction, Program, Reference
from .symbols import Number
from .tracer import Copied, Overwriting, Quiet, rounded

PLAIN: dict[str, Callable[..., Any]] = {"convert": prepared, "lay_out": laid_out, "round": rounded, "copy_": copy_}
"""Functions that programs call in addition to operators."""


class TextWriter:
    """Writes a program as text.

    `weights` are the tensors that it reads, by name; `names` are the names of tensors, by their arrays.
    """

    def __init__(self, program: Program, names: dict[int, str]) -> None:
        self.program, self.names = program, names
        self.weights: dict[str, Tensor] = {}
        self.lines: list[str] = []

    def weight(self, tensor: Tensor) -> str:
        """Return the expression for a tensor from outside."""
        key = id(tensor._array)
        name = self.names.get(key)
        if name is None:
            name = self.names[key] = f"constant.{len(self.weights)}"
        self.weights[name] = tensor.detach()  # keeps the array alive
        return f"weights[{name!r}]"

    def loads(self) -> None:
        """Write the lines that read the arguments of the program."""
        for number, given in self.program.inputs.items():
            if given.kind == "grad":
                raise Unsupported("a program that reads gradients is not exported")
            self.lines.append(f"v{number} = {given.source if given.kind == 'argument' else self.weight(given.source)}")
        self.lines += [f"v{number} = {place}" for number, place in self.program.numbers.items()]

    def instruction(self, instruction: Instruction) -> None:
        """Write the line of an instruction."""
        results = ", ".join("_" if number is None else f"v{number}" for number in instruction.results)
        if instruction.several:
            results = f"[{results}]"
        function, arguments = instruction.function, [*map(self.operand, instruction.operands)]
        if isinstance(function, Copied):
            text = self.weight(wrap(function.array))
            self.lines.append(f"{results} = copied({text})  # {place_of(instruction)}")
            return
        if isinstance(function, Made):
            arguments += [f"{name}={literal(value)}" for name, value in function.kwargs.items()]
        text = f"{called(instruction)}({', '.join(arguments)})"
        self.lines.append(f"{results}{' = ' if results else ''}{text}  # {place_of(instruction)}")

    def operand(self, operand: Any) -> str:
        """Return the text of an operand."""
        if isinstance(operand, Reference):
            return f"v{operand.number}"
        if isinstance(operand, Constant):
            if isinstance(operand.value, ndarray) and operand.value.ndim:
                return self.weight(wrap(operand.value))
            return literal(operand.value)
        inner = ", ".join(map(self.operand, operand))
        return f"[{inner}]" if isinstance(operand, list) else f"({inner}{',' if len(operand) == 1 else ''})"


def place_of(instruction: Instruction) -> str:
    """Return the user's line of an instruction."""
    return "{}:{}".format(*instruction.line)


def called(instruction: Instruction) -> str:
    """Return the text of the function that an instruction calls, if it has a meaning in another process."""
    function: Any = instruction.function
    op: Any = instruction.kernel
    if op is not None and OPERATORS.get(op.name) == op:  # other processes lack a program's own operators
        return f"change.{op.name}" if isinstance(function, Overwriting) else str(op.name)
    if isinstance(function, Number):
        return f"number[{function.dtype.name!r}]"
    if isinstance(function, Made):
        return f"make[{function.function.__name__!r}]"
    if instruction.name in PLAIN and function is PLAIN[instruction.name]:
        return instruction.name
    inner = function.kernel if isinstance(function, Quiet) else function
    module, name = getattr(inner, "__module__", None), getattr(inner, "__name__", "")
    if module in ("_operator", "math") or inner in ARITHMETIC:
        return f"arithmetic[{name!r}]"
    if isinstance(function, Quiet) and getattr(sys.modules.get(str(module)), name, None) is inner:
        return f"call[{f'{own_name(module)}:{name}'!r}]"
    raise Unsupported(f"{instruction.name}() is not exported: it depends on this process ({place_of(instruction)})")


def literal(value: Any) -> str:
    """Return the text of a constant."""
    kind = type(value)
    if value is None or value is ... or kind in (bool, int, str, bytes):
        return repr(value)
    if kind is float:
        return repr(value) if numpy.isfinite(value) else f"float({str(value)!r})"
    if kind is complex:
        return f"complex({str(value)!r})"
    if isinstance(value, torch.dtype):
        return f"dtype({value.name!r})"
    if isinstance(value, torch.memory_format):
        return f"memory_format({str(value).removeprefix('torch.')!r})"
    if isinstance(value, torch.device):
        return f"device({str(value)!r})"
    if isinstance(value, numpy.dtype):
        return f"numpy_dtype({value.name!r})"
    if isinstance(value, (ndarray, numpy.generic)) and value.ndim == 0:
        return f"array({literal(value.item())}, {value.dtype.name!r})"
    if kind is slice:
        return f"slice({literal(value.start)}, {literal(value.stop)}, {literal(value.step)})"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if kind is list:
        return f"[{', '.join(map(literal, value))}]"
    if kind is dict:
        return "{" + ", ".join(f"{literal(key)}: {literal(each)}" for key, each in value.items()) + "}"
    raise Unsupported(f"a constant of type {kind.__name__} is not exported")
