"""One kernel for given types, lowered to LLVM code, compiled, and callable from Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy import ndarray

from ..._runtime.first_use import import_late, unwatched
from ..._runtime.platform import ctypes
from ...kernels.runtime.addresses import AFTER_HEAD, WORDS
from ...kernels.runtime.costs import KERNEL_CALLS
from ..observed_kernels import KERNELS
from .element_types import NumberType, PointerType, Static, VectorType, i64
from .functions import Frame, LoopKernel
from .host import HOST, MachineCode
from .lowering import Lowering
from .statements import STATEMENTS
from .values import CompilationError, Value


class CompiledFunction:
    """Machine code.

    The function is called with numbers and addresses, runs without the interpreter lock, and checks no arguments.

    `parameters`: the types of its parameters. `result`: the type of its result, or None. `call`: the function that runs it.
    `quick`: the function that runs it for little work, and keeps the interpreter lock. It also accepts arrays in place of
    addresses. `split`: the function that calls it for pieces of a range, once `launch` has needed such a function. It takes
    the arguments in a table that `pack` makes, unless they are a table. Code that runs kernels reads these attributes at each
    call. While a profiler observes kernels, the attributes hold other functions.
    """

    __slots__ = ("_calls", "call", "code", "kernel", "pack", "parameters", "quick", "result", "split")

    def __init__(self, kernel: LoopKernel, code: MachineCode, parameters: tuple[Any, ...], result: Any) -> None:
        self.kernel = kernel
        self.code = code
        self.parameters = parameters
        self.result = result
        returned = None if result is None else result.ctype
        self.call = ctypes.CFUNCTYPE(returned, *map(c_type, parameters))(code.address)
        self.quick: Callable[..., Any] = self._quick
        self._calls = 0
        self.split: Any = None
        self.pack: Any = None

    def _quick(self, *arguments: Any) -> Any:
        """Run the machine code. After `KERNEL_CALLS` calls, create a built-in function for the next calls."""
        self._calls += 1
        if self._calls > KERNEL_CALLS and self.code.also and not KERNELS.observers:
            self.quick = import_late("adjoint.codegen.llvm.calls").of_arguments(self)
        return self.call(*in_numbers(arguments))

    @property
    def of_table(self) -> int:
        """The address of the machine code that runs the kernel for a table of its arguments and a range."""
        if not self.code.also and not takes_table(self.parameters):
            raise AssertionError(f"{self} has no range: its last parameters are not start and stop")
        return self.code.also[0] if self.code.also else self.code.address

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code."""
        return self.call(*arguments)

    def __repr__(self) -> str:
        return f"<compiled kernel {self.code.name}>"


@unwatched
def compile_kernel(kernel: LoopKernel, given: dict[str, Any]) -> CompiledFunction:
    """Compile a kernel for these types and static values, or raise `CompilationError`."""
    with HOST.lock:
        short: Any = NumberType | VectorType | int | float | str | tuple
        name = "_".join([kernel.name, *(f"{key}{value}" for key, value in given.items() if isinstance(value, short))])
        name = "".join(letter if letter.isalnum() or letter == "_" else "_" for letter in name)
        module = Module()
        result, parameters = module.add(kernel, name, given)
        text = module.text()
        ranged = [each.arg for each in kernel.tree.args.args if each.arg not in given][-2:] == ["start", "stop"]
        if ranged and not takes_table(parameters):
            text += unpacking_text(name, parameters[:-2], result)
        also = (name + UNPACKING,) if UNPACKING in text else ()
        code = HOST.compile(name, text, **kernel.options, also=also)
        found = CompiledFunction(kernel, code, parameters, result)
        KERNELS.add(found)
        return found


def takes_table(types: tuple[Any, ...]) -> bool:
    """Return whether a kernel takes an address and a range."""
    return len(types) == 3 and isinstance(types[0], PointerType) and types[1:] == (i64, i64)


UNPACKING = "_unpacking"
"""The suffix for the name of the function that calls a kernel with the arguments in a table."""


def in_numbers(arguments: tuple[Any, ...]) -> list[Any]:
    """Return the arguments, with addresses in place of arrays."""
    # This is `address`, without a call for each array.
    return [WORDS[(id(value) + AFTER_HEAD) // 8] if isinstance(value, ndarray) else value for value in arguments]


def character(type_: Any) -> str:
    """Return the character by which `struct` packs an argument as a word."""
    return "P" if isinstance(type_, PointerType) else "d" if type_.kind == "f" else "Q" if type_.kind == "u" else "q"


def unpacking_text(name: str, types: tuple[Any, ...], result: Any) -> str:
    """Return the LLVM code of a function of a table of arguments and a range, whose first word receives the result."""
    values = ""
    lines = [f"define void @{name}{UNPACKING}(ptr %table, i64 %start, i64 %stop) #0 {{"]
    for i, text in enumerate([type_.text for type_ in types]):
        wide = "double" if text in ("float", "double") else "i64"
        narrow = {"ptr": "inttoptr", "float": "fptrunc", wide: "bitcast"}.get(text, "trunc")
        lines += [f"  %p{i} = getelementptr i64, ptr %table, i64 {i}", f"  %w{i} = load {wide}, ptr %p{i}"]
        lines.append(f"  %v{i} = {narrow} {wide} %w{i} to {text}")
        values += f"{text} %v{i}, "
    returned = "void" if result is None else result.text
    call = f"call {returned} @{name}({values}i64 %start, i64 %stop) noinline"
    lines += [f"  {call}"] if result is None else [f"  %value = {call}", f"  store {returned} %value, ptr %table"]
    return "\n".join([*lines, "  ret void", "}", ""])


def c_type(type_: Any) -> Any:
    """Return the type of a parameter for ctypes, which converts an int to a pointer faster than to a word of the same size."""
    return ctypes.c_void_p if isinstance(type_, PointerType) or type_ is i64 else type_.ctype


class Module:
    """Functions that are compiled together, because LLVM's time depends little on their number."""

    def __init__(self) -> None:
        self.functions: dict[str, str] = {}
        self._declarations: set[str] = set()
        self._metadata: list[str] = []

    def add(self, kernel: LoopKernel, name: str, given: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
        """Lower a kernel. Return the types of its result (None if it returns nothing) and of its parameters."""
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
            parameters.append(f"{type_.text}{noalias} %arg_{parameter.arg}")
            types.append(type_)
            lowering.assign_name(parameter.arg, Value(type_, f"%arg_{parameter.arg}"))
        lowering.body(kernel.tree.body)
        result = lowering.finish_frame(frame)
        lowering.frames.pop()
        returned = result.type if isinstance(result, Value) else None
        lowering.emit("ret void" if returned is None else f"ret {result}")
        head = f"define {'void' if returned is None else returned.text} @{name}({', '.join(parameters)}) #0 {{"
        self.functions[name] = "\n".join([head, "entry:", *lowering.allocations, *lowering.lines, "}"])
        self._declarations |= lowering.declarations
        return returned, tuple(types)

    def text(self, names: Sequence[str] | None = None) -> str:
        """Return the LLVM code of the module, with the functions `names` or with all functions."""
        # Use the widest registers of the processor. By default, LLVM uses half of their width on some processors.
        attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{8 * HOST.vector_bytes}" }}'
        functions = [self.functions[name] for name in (self.functions if names is None else names)]
        return "\n".join([*sorted(self._declarations), *functions, attributes, *self._metadata, ""])
