"""The language of kernels. `from adjoint.codegen.llvm.kernels import *` brings it to a module of kernels.

    @loops
    def scale(out: Pointer[T], x: Pointer[T], factor: T, start: Int, stop: Int) -> None:
        for i in vectorized(start, stop):
            out[i] = x[i] * factor

    scale.compiled(T=f32)(out.ctypes.data, x.ctypes.data, 2.0, 0, 1000)

`lowering` defines the language. The address of an array is `array.ctypes.data`, but `address` is faster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from ...kernels.runtime.addresses import address as address
from .builtin_functions import *
from .compilation import CompiledFunction, compile_kernel
from .element_types import *
from .functions import LoopKernel
from .host import HOST
from .structs import Struct as Struct
from .values import CompilationError as CompilationError


class Loops(LoopKernel):
    """A kernel that is compiled for requested types and static parameters."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__(function, **options)
        self._compiled: dict[Any, CompiledFunction] = {}

    def compiled(self, **given: Any) -> CompiledFunction:
        """The machine code for these types (`T=f32`) and values of `Static` parameters (`K=3`).

        Raises:
            CompilationError: if there is no compiler.
        """
        key = tuple(given.items())
        found = self._compiled.get(key)
        if found is None:
            with HOST.lock:
                found = self._compiled.get(key) or self._compiled.setdefault(key, compile_kernel(self, given))
        return found


class WrittenLoops(Loops):
    """A kernel whose source a program has written. `namespace` contains its names."""

    def __init__(self, name: str, source: str, namespace: dict[str, Any], **options: Any) -> None:
        namespace = dict(namespace)
        exec(compile(source, f"<{name}>", "exec", flags=annotations.compiler_flag), namespace)
        super().__init__(namespace[name], **options)
        self._source = source

    @property
    def text(self) -> str:
        """The source of the function."""
        return self._source


@overload
def loops(function: Callable[..., Any], /) -> Any: ...
@overload
def loops(**options: Any) -> Callable[[Callable[..., Any]], Any]: ...
def loops(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Turn a Python function into a kernel.

    It is lowered when it is compiled. The options:

    `flags`: LLVM's permissions for the kernel's floating-point arithmetic, such as "contract" (`a * b + c` may be
    rounded once) or "reassoc" (sums may be reordered). `noalias`: no two of its pointers lead to the same memory.
    `explicit`: all of its vectors are written in the source. LLVM neither vectorizes nor unrolls, which halves the
    compile time. `plain`: only the most necessary passes run, in a tenth of the time. `strength_reduced`: LLVM
    nevertheless searches for better loop indices, which takes half as long again. In loops with many pointers, more of
    them then stay in registers. `in_float64`: if it is called with float32 numbers, they are computed in float64, and
    the result is rounded.
    """
    if function is None:
        return lambda function: Loops(function, **options)
    return Loops(function, **options)
