"""One kernel for given types, lowered to LLVM code, compiled, and callable from Python."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any

from numpy import ndarray

from ..._runtime.first_use import unwatched
from ..._runtime.platform import ctypes
from ...kernels.runtime.addresses import AFTER_HEAD, IN_OBJECTS, address
from ..costs import CALLS
from ..observed_kernels import KERNELS
from .built_in import built_in, define_functions_of_python
from .element_types import NumberType, PointerType, Static, VectorType, f64, i64
from .functions import Frame, LoopKernel
from .host import HOST, MachineCode
from .lowering import Lowering
from .statements import STATEMENTS
from .values import CompilationError, Value, llvm_type


class CompiledFunction:
    """Machine code.

    The function is called with numbers and addresses, runs without the interpreter lock, and checks no arguments.

    `parameters`: the types of its parameters. `call`: the function that runs it. `quick`: the function that runs it for
    little work. It also accepts arrays in place of addresses. After many calls, a built-in function that keeps the
    interpreter lock replaces it. `split`: the function that calls it for pieces of a range, once `workers` has needed
    such a function. Code that runs kernels reads these attributes at each call. While a profiler observes kernels, the
    attributes hold other functions.
    """

    __slots__ = ("call", "code", "kernel", "parameters", "quick", "split")

    def __init__(self, kernel: LoopKernel, code: MachineCode, call: Any, parameters: tuple[Any, ...]) -> None:
        self.kernel = kernel
        self.code = code
        self.call = self.quick = call
        self.parameters = parameters
        self.split: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code."""
        return self.call(*arguments)

    def __repr__(self) -> str:
        return f"<compiled kernel {self.code.name}>"


@unwatched
def compile_kernel(kernel: LoopKernel, given: dict[str, Any]) -> CompiledFunction:
    """Compile a kernel for these types and static values.

    Raises:
        CompilationError: if the kernel uses an unsupported feature, or a type or static value is missing.
    """
    with HOST.lock:
        name = "_".join([kernel.name, *(f"{key}{value}" for key, value in given.items() if _is_name(value))])
        name = "".join(letter if letter.isalnum() or letter == "_" else "_" for letter in name)
        module = Module()
        result, parameters = module.add(kernel, name, given)
        text = module.text()
        ranged = [item.arg for item in kernel.tree.args.args if item.arg not in given][-2:] == ["start", "stop"]
        ranged = ranged and not takes_table(parameters)
        if ranged:
            text += split_text(name, parameters[:-2])
        also = (name + SPLIT,) if ranged else ()
        code = HOST.compile(
            name,
            text,
            explicit=kernel.explicit,
            plain=kernel.plain,
            strength_reduced=kernel.strength_reduced,
            brief=kernel.brief,
            also=also,
        )
        prototype = ctypes.CFUNCTYPE(None if result is None else result.ctype, *map(c_type, parameters))
        found = CompiledFunction(kernel, code, prototype(code.address), parameters)
        found.quick = becoming_quick(found, result, IN_OBJECTS and result in RETURNED)
        KERNELS.add(found)
        return found


RUN_ROWS = 18
"""The position, in words, of the address of `run_rows` (of `workers`) in the shared memory of the threads."""

SPLIT = "_split"
"""The suffix for the name of the function that calls a kernel for pieces of a range."""


def takes_table(types: tuple[Any, ...]) -> bool:
    """Return whether a kernel takes an address and a range, which are the arguments that `run_rows` of `workers` passes."""
    return len(types) == 3 and isinstance(types[0], PointerType) and types[1:] == (i64, i64)


def becoming_quick(function: CompiledFunction, result: Any, may_be_built_in: bool) -> Any:
    """Return a function that calls machine code through ctypes, and is replaced by a built-in function after many calls."""
    waiting = iter(range(CALLS)) if may_be_built_in else itertools.repeat(0)

    def quick(*arguments: Any) -> Any:
        if next(waiting, None) is None and not KERNELS.observers:
            code = quick_code(tuple(map(llvm_type, function.parameters)), None if result is None else llvm_type(result))
            function.quick = built_in(function.code.name, code.address, function.code.address)
        return function.call(*in_numbers(arguments))

    return quick


def in_numbers(arguments: tuple[Any, ...]) -> list[Any]:
    """Return the arguments, with addresses in place of arrays."""
    return [address(value) if isinstance(value, ndarray) else value for value in arguments]


@cache
def quick_code(types: tuple[str, ...], result: str | None) -> MachineCode:
    """Return a function of Python's C interface, which calls a function with parameters of these types at the address `own`.

    Pointers may be given as arrays. The function raises an error if another argument is not a number.
    """
    define_functions_of_python(*_DECLARED)
    name = "_".join(["quick", *types, result or "none"])
    lines = [f"define ptr @{name}(ptr %own, ptr %objects, i64 %given) {{", f"  %n = call i64 @{_INTEGER}(ptr %own)"]
    lines += ["  %function = inttoptr i64 %n to ptr"]
    values = []
    for i, text in enumerate(types):
        wide, convert = ("double", "PyFloat_AsDouble") if text in ("float", "double") else ("i64", _INTEGER)
        narrow = {"ptr": "inttoptr", "float": "fptrunc", "i64": "bitcast", "double": "bitcast"}.get(text, "trunc")
        lines += [f"  %p{i} = getelementptr ptr, ptr %objects, i64 {i}", f"  %o{i} = load ptr, ptr %p{i}"]
        if text == "ptr":
            lines += [
                f"  %c{i}p = getelementptr i8, ptr %o{i}, i64 {AFTER_HEAD - 8}", f"  %c{i} = load ptr, ptr %c{i}p",
                f"  %is{i} = icmp eq ptr %c{i}, inttoptr (i64 {id(int)} to ptr)",
                f"  br i1 %is{i}, label %number{i}, label %array{i}", f"number{i}:",
                f"  %a{i} = call i64 @{_INTEGER}(ptr %o{i})", f"  br label %known{i}", f"array{i}:",
                f"  %d{i}p = getelementptr i8, ptr %o{i}, i64 {AFTER_HEAD}", f"  %d{i} = load i64, ptr %d{i}p",
                f"  br label %known{i}", f"known{i}:", f"  %n{i} = phi i64 [%a{i}, %number{i}], [%d{i}, %array{i}]",
            ]  # fmt: skip
        else:
            lines.append(f"  %n{i} = call {wide} @{convert}(ptr %o{i})")
        lines.append(f"  %v{i} = {narrow} {wide} %n{i} to {text}")
        values.append(f"{text} %v{i}")
    lines += ["  %error = call ptr @PyErr_Occurred()", "  %fits = icmp eq ptr %error, null"]
    lines += ["  br i1 %fits, label %run, label %fail", "fail:", "  ret ptr null", "run:"]
    if result is None:
        lines += [f"  call void %function({', '.join(values)})"]
        lines += [f"  %made = call ptr @Py_NewRef(ptr inttoptr (i64 {id(None)} to ptr))"]
    else:
        lines += [f"  %value = call {result} %function({', '.join(values)})"]
        lines += [f"  %made = call ptr @{_NUMBER_OF[result]}({result} %value)"]
    return HOST.compile(name, "\n".join([*_DECLARED.values(), *lines, "  ret ptr %made", "}", ""]), plain=True)


RETURNED = (None, i64, f64)
"""The types that a function of Python's C interface can return."""

_INTEGER = "PyLong_AsUnsignedLongLongMask"
_NUMBER_OF = {"i64": "PyLong_FromLongLong", "double": "PyFloat_FromDouble"}
_DECLARED = {
    name: f"declare {result} @{name}({parameter})"
    for name, result, parameter in (
        (_INTEGER, "i64", "ptr"), ("PyFloat_AsDouble", "double", "ptr"), ("PyErr_Occurred", "ptr", ""),
        ("Py_NewRef", "ptr", "ptr"), *((name, "ptr", type_) for type_, name in _NUMBER_OF.items()),
    )
}  # fmt: skip


def split_text(name: str, types: tuple[Any, ...]) -> str:
    """Return the LLVM code of a function through which `run_rows` of `workers` calls a kernel.

    The range follows parameters of these types.

    The arguments of the function are the address of the shared memory of the threads (which contains the address of
    `run_rows`), the arguments of the kernel, the first row, the number of rows, the bytes per row, and the number of
    threads.
    """
    texts = [llvm_type(type_) for type_ in types]
    parameters = "".join(f"{text} %a{i}, " for i, text in enumerate(texts))
    held = f"{{ {', '.join(['i64', *texts])} }}"
    lines = [
        f"define void @{name}{SPLIT}(ptr %shared, {parameters}i64 %begin, i64 %rows, i64 %row_bytes, i64 %threads) #0 {{",
        f"  %place = getelementptr i64, ptr %shared, i64 {RUN_ROWS}",
        "  %run = load ptr, ptr %place",
    ]
    lines += [f"  %held = alloca {held}"]
    for i, text in enumerate(texts, 1):
        lines += [f"  %p{i} = getelementptr {held}, ptr %held, i32 0, i32 {i}", f"  store {text} %a{i - 1}, ptr %p{i}"]
    rest = "i64 %begin, i64 %rows, i64 %row_bytes, i64 %threads"
    lines += [f"  call void %run(ptr @{name}_range, ptr %shared, ptr %held, {rest})"]
    lines += ["  ret void", "}", f"define internal void @{name}_range(ptr %held, i64 %start, i64 %stop) #0 {{"]
    for i, text in enumerate(texts, 1):
        lines += [f"  %p{i} = getelementptr {held}, ptr %held, i32 0, i32 {i}", f"  %v{i} = load {text}, ptr %p{i}"]
    arguments = "".join(f"{text} %v{i}, " for i, text in enumerate(texts, 1))
    lines += [f"  call void @{name}({arguments}i64 %start, i64 %stop) noinline", "  ret void", "}", ""]
    return "\n".join(lines)


def _is_name(value: Any) -> bool:
    """Return whether a type or static value is short enough to be part of a name."""
    return isinstance(value, NumberType | VectorType | int | float | str | tuple)


def c_type(type_: Any) -> Any:
    """Return the type of a parameter for ctypes, which converts an int to a pointer faster than to a word of the same size."""
    return ctypes.c_void_p if isinstance(type_, PointerType) or type_ is i64 else type_.ctype


class Module:
    """Functions that are compiled together.

    This saves time because most of LLVM's compile time for a small function does not depend on the number of functions.
    """

    def __init__(self) -> None:
        self.functions: dict[str, str] = {}
        self._declarations: set[str] = set()
        self._metadata: list[str] = []

    def add(self, kernel: LoopKernel, name: str, given: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
        """Lower a kernel. Return the types of its result (None if it returns nothing) and of its parameters.

        Raises:
            CompilationError: if the kernel uses an unsupported feature, or a type or static value is missing.
        """
        lowering = Lowering(STATEMENTS, self._metadata)
        frame = Frame(kernel, dict(given))
        lowering.frames.append(frame)
        parameters: list[str] = []
        types: list[Any] = []
        for parameter in kernel.tree.args.args:
            if parameter.annotation is None:
                raise CompilationError(f"{kernel.name} needs a type for its parameter {parameter.arg!r}")
            type_ = lowering.expression(parameter.annotation)
            if type_ is Static:
                if parameter.arg not in given:
                    raise CompilationError(f"{kernel.name} needs a value of {parameter.arg} to be compiled")
                frame.names[parameter.arg] = given[parameter.arg]
                continue
            pointer = isinstance(type_, PointerType)
            noalias = " noalias" if pointer and kernel.noalias else ""
            parameters.append(f"{llvm_type(type_)}{noalias} %arg_{parameter.arg}")
            types.append(type_)
            lowering.assign_name(parameter.arg, Value(type_, f"%arg_{parameter.arg}"))
        lowering.body(kernel.tree.body)
        result = lowering.finish_frame(frame)
        lowering.frames.pop()
        returned = result.type if isinstance(result, Value) else None
        lowering.emit("ret void" if returned is None else f"ret {result}")
        head = f"define {'void' if returned is None else llvm_type(returned)} @{name}({', '.join(parameters)}) #0 {{"
        self.functions[name] = "\n".join([head, "entry:", *lowering.allocations, *lowering.lines, "}"])
        self._declarations |= lowering.declarations
        return returned, tuple(types)

    def text(self, names: Sequence[str] | None = None) -> str:
        """Return the LLVM code of the module, with the functions `names` or with all functions."""
        # Use the widest registers of the processor. By default, LLVM uses half of their width on some processors.
        attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{8 * HOST.vector_bytes}" }}'
        functions = [self.functions[name] for name in (self.functions if names is None else names)]
        return "\n".join([*sorted(self._declarations), *functions, attributes, *self._metadata, ""])
