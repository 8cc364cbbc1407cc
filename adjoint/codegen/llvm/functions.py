"""Functions in the kernel language, and their representations during lowering."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .element_types import INDICES, NUMBERS
from .host import Request
from .values import CompilationError

if TYPE_CHECKING:
    from .lowering import Lowering


class LoopKernel:
    """A function in the kernel language, with the options of `language.loops`. `options`: those of `host.Request`."""

    def __init__(
        self, function: Callable[..., Any], flags: str = "", noalias: bool = True, in_float64: bool = False, copied: str = "",
        T: Callable[[Any], Any] = NUMBERS, I: Callable[[Any], Any] = INDICES, **options: Any,
    ) -> None:  # fmt: skip
        self.function, self.options = function, options
        Request("", "", **options)  # another option is an error
        self.name: str = function.__name__
        self.flags = f"{flags} " if flags else ""
        self.noalias, self.in_float64 = noalias, in_float64
        self.copied = copied.split()
        self.types = {"T": T, "I": I}
        self.__doc__ = function.__doc__
        self._tree: ast.FunctionDef | None = None

    def __call__(self, *args: Any) -> Any:
        """Raise an error, because Python's interpreter cannot run kernels."""
        raise TypeError(f"{self.name} is a kernel: it runs when it has been compiled")

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    @property
    def text(self) -> str:
        """Return the source of the function in a tenth of the time of `inspect.getsource`, by its indentation."""
        code = self.function.__code__
        lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
        begun = next((number for number, line in enumerate(lines, 1) if line.lstrip().startswith("def ")), None)
        if begun is None:
            return textwrap.dedent(inspect.getsource(self.function))
        indentation = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
        within = (indentation + " ", indentation + ")")
        after = (number for number, line in enumerate(lines) if line.strip() and not line.startswith(within))
        stop = next((number for number in after if number >= begun), len(lines))
        return textwrap.dedent("".join(lines[:stop])).rstrip() + "\n"

    @property
    def tree(self) -> ast.FunctionDef:
        """Return the syntax tree of the function. The first line of the function has the number 1."""
        if self._tree is None:
            tree = ast.parse(self.text).body[0]
            assert isinstance(tree, ast.FunctionDef)
            self._tree = tree
        return self._tree

    def lookup(self, name: str) -> Any:
        """Return the meaning of a name in the module, in the enclosing function, or in Python."""
        closure = inspect.getclosurevars(self.function) if self.function.__closure__ else None
        if closure is not None and name in closure.nonlocals:
            return closure.nonlocals[name]
        namespace = self.function.__globals__
        if name in namespace:
            return namespace[name]
        builtins = namespace["__builtins__"]
        try:
            return builtins[name] if isinstance(builtins, dict) else getattr(builtins, name)
        except (KeyError, AttributeError):
            raise CompilationError(f"name {name!r} is not defined") from None


class Variable:
    """A location on the stack that LLVM replaces with a register."""

    __slots__ = ("address", "type")

    def __init__(self, type_: Any, address: str) -> None:
        self.type = type_
        self.address = address


class Frame:
    """One call of a kernel during the lowering of its body."""

    def __init__(self, kernel: LoopKernel, types: dict[str, Any]) -> None:
        self.kernel = kernel
        self.types = types
        self.names: dict[str, Any] = {}
        self.result: Any = None
        self.exit: str | None = None
        self.returned = False
        self.depth = 0
        self.loops: list[tuple[str, str]] = []


class LoopRange:
    """The numbers that a loop iterates over."""

    def __init__(self, bounds: tuple[Any, ...], vectorized: bool = False, rolled: bool = False) -> None:
        self.start = bounds[0] if len(bounds) > 1 else 0
        self.stop = bounds[min(len(bounds), 2) - 1]
        self.step = bounds[2] if len(bounds) > 2 else 1
        self.vectorized, self.rolled = vectorized, rolled


class Builtin:
    """A function of the kernel language that writes instructions."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name: str = function.__name__
        self.__doc__ = function.__doc__

    def lower(self, lowering: Lowering, *arguments: Any, **options: Any) -> Any:
        """Write the instructions of a call."""
        try:
            return self.function(lowering, *arguments, **options)
        except TypeError as error:
            raise CompilationError(f"{self.name}: {error}") from None

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Raise an error, because the function exists only in kernels."""
        raise TypeError(f"{self.name} is called from within kernels")

    def __repr__(self) -> str:
        return f"<built-in function {self.name} of kernels>"
