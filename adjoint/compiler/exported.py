"""Exported programs: captured programs as text and weights. They run without the functions from which they were captured.

The text is a function in Python's syntax, one line for each instruction. Values are `v0`, `v1`, ..., operators have
their own names, and all other objects in an instruction have a prefix:

    def program(args, kwargs, weights):
        tensor("args[0]", "float32", (3, 4), (16, 4))
        v0 = args[0]
        v1 = weights["0.weight"]
        v2 = t(v1)
        v3 = addmm(weights["0.bias"], v0, v2, 1, 1)
        return v3
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy
from numpy import ndarray

import adjoint as torch

from ..codegen.compiled_ufuncs import of_any_size
from ..dispatch.array_classes import DENSE
from ..dispatch.source import compile_source
from ..kernels.runtime.floating import unwarned
from ..operators import OPERATORS
from ..tensor import Tensor, wrap
from .backward import zeros
from .errors import Unsupported
from .known import ARITHMETIC, CREATING, Made
from .launches import outlined
from .native import fused
from .objects import Fits, compile_deferred
from .program import Constant, Instruction, Program, Reference, Source
from .program_text import PLAIN, TextWriter
from .symbols import Number
from .tracer import Copied, Overwriting, Quiet
from .variant import Variant, captured

# --- reading --------------------------------------------------------------------------------------------------------------

LITERALS: dict[str, Callable[..., Any]] = {
    "float": float,
    "complex": complex,
    "dtype": lambda name: getattr(torch, name),
    "memory_format": lambda name: getattr(torch, name),
    "device": torch.device,
    "numpy_dtype": lambda name: getattr(torch, name).numpy,
    "array": lambda value, name: numpy.asarray(value, numpy.dtype(name)),
    "slice": slice,
}


class Reader:
    """Creates a program from text. It runs each instruction once on `values`, to find the shapes and strides of the values."""

    def __init__(self, weights: dict[str, Tensor]) -> None:
        self.program = Program()
        self.weights = weights
        self.values: dict[int, Any] = {}
        self.numbers: dict[str, int] = {}

    def new(self, name: str, value: Any) -> int:
        """Give a value in the text a number in the program."""
        number = self.numbers[name] = self.program.new_value(value if isinstance(value, ndarray) else None)
        self.values[number] = value
        return number

    def operand(self, node: ast.expr) -> Any:
        """Return an operand of an instruction."""
        if isinstance(node, ast.Name):
            return Reference(self.numbers[node.id])
        if isinstance(node, ast.Subscript):
            return Constant(self.weights[ast.literal_eval(node.slice)]._array)
        if isinstance(node, (ast.List, ast.Tuple)):
            parts = [self.operand(each) for each in node.elts]
            kind = list if isinstance(node, ast.List) else tuple
            return (
                Constant(kind([each.value for each in parts]))
                if all(isinstance(each, Constant) for each in parts)
                else kind(parts)
            )
        if isinstance(node, ast.Call):
            return Constant(LITERALS[node.func.id](*[self.operand(each).value for each in node.args]))  # type: ignore[attr-defined]
        return Constant(ast.literal_eval(node))

    def line(self, node: ast.stmt, line: tuple[str, int]) -> None:
        """An instruction."""
        call: Any = node.value  # type: ignore[attr-defined]
        targets = node.targets[0] if isinstance(node, ast.Assign) else ast.List([])
        several = isinstance(targets, ast.List) and isinstance(node, ast.Assign)
        names = [each.id for each in (targets.elts if isinstance(targets, ast.List) else [targets])]  # type: ignore[attr-defined]
        operands = [self.operand(each) for each in call.args]
        kwargs = {each.arg: self.operand(each.value).value for each in call.keywords}
        name, function, op, changes = self.function(call.func, operands, kwargs)
        if function is None:
            function, operands = Copied(operands[0].value), []
        with unwarned():
            result = function(*[outlined(each, self.values) for each in operands])
        values = list(result) if several else [result] * len(names)
        numbers = [
            None if each == "_" else self.new(each, as_known(value)) for each, value in zip(names, values, strict=True)
        ]
        keeps = changes or (op is not None and op.random) or name in ("call", "make")
        self.program.instructions.append(
            Instruction(name, function, operands, numbers, several, changes, keeps, op, line)
        )

    def function(self, node: Any, operands: list[Any], kwargs: dict[str, Any]) -> tuple[str, Any, Any, bool]:
        """Return the name of an instruction, its function, its operator, and whether it changes its first operand."""
        if isinstance(node, ast.Name):
            if node.id == "copied":
                return "constant", None, None, False
            if node.id in PLAIN:
                return node.id, PLAIN[node.id], None, node.id == "copy_"
            op = OPERATORS[node.id]
            return op.name, op.code.computing, op, False
        if isinstance(node, ast.Attribute):
            op = OPERATORS[node.attr]
            names = [each for each in op.names if each in op.keyword_only]
            kernel = of_any_size(DENSE.inplace_kernel(op))
            return f"{op.name}_", Overwriting(kernel, len(operands) - len(names), names), op, True
        kind, name = node.value.id, ast.literal_eval(node.slice)
        if kind == "number":
            return "number", Number(getattr(torch, name)), None, False
        if kind == "make" and name in CREATING:
            return "make", Made(getattr(torch, name), kwargs), None, False
        if kind == "arithmetic" and name in NUMERIC:
            return name, NUMERIC[name], None, False
        module, _, name = name.partition(":")
        if kind == "call" and module.startswith(("adjoint.kernels.", "adjoint.operators.")):
            return "call", Quiet(getattr(import_module(module), name)), None, False
        raise ValueError(f"a program calls {ast.unparse(node)}, which computes nothing")


NUMERIC: dict[str, Any] = {
    **{name: getattr(operator, name) for name in "add sub mul truediv floordiv mod pow neg pos abs".split()},
    **{name: function for name, function in vars(math).items() if not name.startswith("_") and callable(function)},
    **{str(getattr(function, "__name__", "")): function for function in ARITHMETIC},
}
"""The functions of numbers that programs call."""


def as_known(value: Any) -> Any:
    """Return a result of a kernel as an array, and other values unchanged."""
    return numpy.asarray(value) if isinstance(value, numpy.generic) else value


# --- programs -------------------------------------------------------------------------------------------------------------


class ExportedProgram:
    """A program for inference, as text and weights. Call it with arguments like the arguments of the capture.

    `text`: the program. `weights`: the tensors that it reads, by name. Tensors of a module have their names in its
    `state_dict`.

    >>> import adjoint as torch
    >>> program = torch.compiler.export(torch.nn.ReLU(), (torch.tensor([-1.0, 2.0]),))
    >>> program(torch.tensor([3.0, -4.0]))
    tensor([3., 0.])
    """

    def __init__(self, text: str, weights: dict[str, Tensor]) -> None:
        self.text, self.weights = text, weights
        self.checks: list[Check] = []
        self._run: Any = None

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"ExportedProgram of {len(self.weights)} weights:\n{self.text}"

    @property
    def state_dict(self) -> dict[str, Tensor]:
        """Return the weights by name."""
        return dict(self.weights)

    def module(self) -> ExportedProgram:
        """Return the program itself. It is called like the module."""
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program.

        Raises:
            RuntimeError: if the arguments differ from the arguments of the capture in structure, dtypes, shapes,
                strides or numbers.
        """
        self._prepare()
        for check in self.checks:
            check(args, kwargs)
        result: Any = self._run(args, kwargs)
        return result

    def fits(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Return whether the program accepts these arguments."""
        self._prepare()
        return all(check.fits(args, kwargs) for check in self.checks)

    def _prepare(self) -> None:
        """Create the function that runs the program, once."""
        if self._run is None:
            checks: list[Check] = []
            run = self._prepared(checks)
            self.checks, self._run = checks, run

    def _prepared(self, checks: list[Check]) -> Any:
        """Return the function that runs the program."""
        (definition,) = ast.parse(self.text).body
        changes = any(
            each in self.text for each in (" change.", " call[", " copy_(")
        )  # operations that must not run on weights now
        reader, source = Reader(self.weights), Source()
        head, lasting = ["def run(args, kwargs):"], set()
        returned: ast.expr = ast.Constant(None)
        state = torch.get_rng_state()
        examples: dict[str, Any] = {}
        for node in definition.body:  # type: ignore[attr-defined]
            if isinstance(node, ast.Return):
                returned = node.value or returned
            elif isinstance(node, ast.Expr) and isinstance(node.value.func, ast.Name) and node.value.func.id in CHECKS:  # type: ignore[attr-defined]
                values = [reader.operand(each).value for each in node.value.args]  # type: ignore[attr-defined]
                checks.append(Check(node.value.func.id, *values))  # type: ignore[attr-defined]
                examples[checks[-1].place] = vars(checks[-1]).pop("example")
            elif isinstance(node, ast.Assign) and not isinstance(node.value, ast.Call):
                name, place = node.targets[0].id, ast.unparse(node.value)  # type: ignore[attr-defined]
                weight = place.startswith("weights[")
                if weight:
                    value = self.weights[ast.literal_eval(node.value.slice)]._array  # type: ignore[attr-defined]
                    loaded = source.constant(value)
                    value = value.copy("K") if changes else value
                else:
                    value = examples[ast.unparse(argument(node.value))]
                    loaded = f"{place}._array" if isinstance(value, ndarray) else place
                number = reader.new(name, value)
                lasting.add(number)
                head.append(f"    v{number} = {loaded}")
            else:
                reader.line(node, ("exported program", node.lineno))
        torch.set_rng_state(state)
        program = reader.program
        wanted = {
            reader.numbers[each.id]
            for each in ast.walk(returned)
            if isinstance(each, ast.Name) and each.id in reader.numbers
        }
        instructions = fused(program, program.instructions, program.used(wanted), lasting | wanted)
        source.run(instructions, lasting | wanted, program.shapes)
        result = Returned(reader, source).visit(returned)
        lines = [*head, *(f"    {line}" for line in source.lines), f"    return {ast.unparse(result)}"]
        namespace = {**source.namespace, "wrap": wrap, **LITERALS}
        compile_source("\n".join(lines) + "\n", "<adjoint exported program>", namespace)
        compile_deferred(namespace)
        return namespace["run"]


class Returned(ast.NodeTransformer):
    """Replaces values of the program by tensors in its result."""

    def __init__(self, reader: Reader, source: Source) -> None:
        self.reader = reader

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return a value of the program."""
        number = self.reader.numbers[node.id]
        text = f"wrap(v{number})" if isinstance(self.reader.values[number], ndarray) else f"v{number}"
        return ast.parse(text, mode="eval").body

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Return an argument of the program."""
        return argument(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Permit the calls that write literals. Raise an error for other calls."""
        if not (isinstance(node.func, ast.Name) and node.func.id in LITERALS):
            raise ValueError(f"a program returns {ast.unparse(node)}, which is not a value")
        node.args = [self.visit(each) for each in node.args]
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Permit tuples, lists, dictionaries and constants. Raise an error for other expressions."""
        if not isinstance(node, (ast.Tuple, ast.List, ast.Dict, ast.Constant, ast.UnaryOp, ast.USub, ast.Load)):
            raise ValueError(f"a program returns {ast.unparse(node)}, which is not a value")
        return super().generic_visit(node)


def argument(node: ast.expr) -> ast.expr:
    """Return an expression that names an argument (`args` or `kwargs` with constant indices), or raise an error."""
    inner = node
    while isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Constant):
        inner = inner.value
    if not (isinstance(inner, ast.Name) and inner.id in ("args", "kwargs")):
        raise ValueError(f"a program reads {ast.unparse(node)}, which is not an argument")
    return node


def found(place: str) -> Any:
    """Return a function that reads an argument at its place."""
    body = argument(ast.parse(place, mode="eval").body)
    return eval(f"lambda args, kwargs: {ast.unparse(body)}", {"__builtins__": {}})


class Check:
    """A condition on the object at a place in the arguments.

    `is_met`: the condition. `example`: a value like the captured value. `text`: a description of the expected value.
    """

    def __init__(self, kind: str, place: str, *expected: Any) -> None:
        self.place, self.found = place, found(place)
        self.is_met, self.example, self.text = CHECKS[kind](*expected)

    def fits(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Return whether the condition is met."""
        try:
            return bool(self.is_met(self.found(args, kwargs)))
        except (LookupError, TypeError):
            return False

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise an error unless the condition is met."""
        if not self.fits(args, kwargs):
            value = None
            with suppress(LookupError, TypeError):
                value = self.found(args, kwargs)
            given = shape_of(value) if isinstance(value, Tensor) else repr(value)
            raise RuntimeError(f"the exported program takes {self.text} as {self.place}, not {given}")


Condition = tuple[Callable[[Any], Any], Any, str]
"""A condition on a value, an example, and a description."""


def like_tensor(name: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> Condition:
    """Return the condition that a value is a tensor with a dtype, a shape and strides."""
    dtype = getattr(torch, name)
    example = zeros(shape, dtype.numpy, strides)
    fits = Fits(example)
    return lambda value: isinstance(value, Tensor) and value.dtype is dtype and fits(value._array), example, str(fits)


def equal(expected: Any) -> Condition:
    """Return the condition that a value is equal and of the same type."""
    return lambda value: type(value) is type(expected) and (value == expected or value != value), None, repr(expected)


def number_of_type(kind: str) -> Condition:
    """Return the condition that a value is a number of a type."""
    return lambda value: type(value).__name__ == kind, {"float": 1.0, "int": 1}[kind], repr(kind)


def sequence(kind: str, length: int) -> Condition:
    """Return the condition that a value is a list or a tuple with a length."""
    return lambda value: type(value).__name__ == kind and len(value) == length, None, f"a {kind} of {length}"


def with_keys(keys: tuple[Any, ...]) -> Condition:
    """Return the condition that a value is a dictionary with keys in an order."""
    return lambda value: type(value) is dict and tuple(value) == keys, None, f"a dictionary with the keys {keys}"


CHECKS: dict[str, Callable[..., Condition]] = {
    "tensor": like_tensor,
    "value": equal,
    "number_of_type": number_of_type,
    "sequence": sequence,
    "keys": with_keys,
}


def shape_of(tensor: Tensor) -> str:
    """Return the dtype, shape and strides of a tensor."""
    array = tensor._array
    return f"{tensor.dtype.name}{list(tensor.shape)} with strides {getattr(array, 'strides', None)}"


# --- public functions -----------------------------------------------------------------------------------------------------


def exported(variant: Variant, function: Any) -> ExportedProgram:
    """Return the exported form of a captured program.

    Raises:
        torch._dynamo.exc.Unsupported: if the program computes gradients, takes steps, or returns an object without text
            form.
    """
    if variant.signature is None:
        raise Unsupported("only programs for inference are exported: call the function under torch.no_grad()")
    checks, returned = variant.signature
    program, names = variant.example, {}
    if isinstance(function, torch.nn.Module):
        names = {id(each._array): name for name, each in [*function.named_parameters(), *function.named_buffers()]}
    writer = TextWriter(program, names)
    writer.loads()
    kept = program.used({int(number) for number in variant.returned})
    for instruction, keep in zip(program.instructions, kept, strict=True):
        if keep:
            writer.instruction(instruction)
    lines = [
        "def program(args, kwargs, weights):",
        *(f"    {each}" for each in [*checks, *writer.lines, f"return {returned}"]),
    ]
    return ExportedProgram("\n".join(lines) + "\n", writer.weights)


def export(model: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> ExportedProgram:
    """Call a function or a module once without recording gradients, and return its operations as a program.

    The program accepts arguments with the same structure, with tensors of the same dtypes, shapes and strides, and with
    the same numbers.

    Raises:
        torch._dynamo.exc.Unsupported: if the call cannot be captured as one program.

    >>> import adjoint as torch
    >>> program = torch.compiler.export(lambda x: (x * 2).sum(), (torch.ones(3),))
    >>> print(program)  # doctest: +ELLIPSIS
    def program(args, kwargs, weights):
        sequence('args', 'tuple', 1)
        keys('kwargs', ())
        tensor('args[0]', 'float32', (3,), (4,))
        v0 = args[0]
        v1 = mul(v0, array(2.0, 'float32'))  # ...
        v2 = sum_all(v1, None)  # ...
        return v2
    <BLANKLINE>
    """
    with torch.no_grad():
        _, variant, reason = captured(model, args, kwargs or {}, set())
    if variant is None:
        raise Unsupported(f"the function cannot be exported: {reason or 'a tensor among its arguments is unusual'}")
    return exported(variant, model)


FORMAT = "adjoint program 1"


def save(function: Any, path: Any) -> None:
    """Write an exported program to a file, or the programs of a compiled function that was called under `no_grad`.

    The file contains the text of each program, and the weights.

    Raises:
        torch._dynamo.exc.Unsupported: if a program has no text form.
        TypeError: if the object is another function.

    >>> import io
    >>> import adjoint as torch
    >>> file = io.BytesIO()
    >>> torch.compiler.save(torch.compiler.export(torch.nn.ReLU(), (torch.ones(2),)), file)
    >>> file.tell() > 0
    True
    """
    programs = [function] if isinstance(function, ExportedProgram) else None
    if programs is None:
        compiled: Any = getattr(getattr(function, "_compiled_call_impl", None) or function, "compiled", None)
        if not hasattr(compiled, "variants"):
            raise TypeError(f"a compiled function or an exported program is needed, not {type(function).__name__}")
        owner = getattr(compiled.compiled_function, "__self__", compiled.compiled_function)
        programs = [exported(each, owner) for variant in compiled.variants for each in variant.at_sizes()]
    torch.save({"format": FORMAT, "programs": [(each.text, each.weights) for each in programs]}, path)


def load(path: Any) -> Any:
    """Read the file that `save` has written.

    Return an `ExportedProgram`, or a function that runs the program which fits its arguments.

    Raises:
        RuntimeError: if the file contains no exported program.

    >>> import io
    >>> import adjoint as torch
    >>> file = io.BytesIO()
    >>> torch.compiler.save(torch.compiler.export(torch.nn.ReLU(), (torch.ones(2),)), file)
    >>> _ = file.seek(0)
    >>> torch.compiler.load(file)(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    given = torch.load(path)
    if not (isinstance(given, dict) and given.get("format") == FORMAT):
        raise RuntimeError("the file does not contain an exported program")
    programs = [ExportedProgram(*each) for each in given["programs"]]
    return programs[0] if len(programs) == 1 else Programs(programs)


class Programs:
    """Several programs of one function."""

    def __init__(self, programs: list[ExportedProgram]) -> None:
        self.programs = programs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program that fits the arguments."""
        for program in self.programs:
            if program.fits(args, kwargs):
                return program(*args, **kwargs)
        return self.programs[0](*args, **kwargs)  # raises an error that describes its arguments
