"""A text report of the compiled code for `adjoint info`, `backends.llvm`, and human readers."""

from __future__ import annotations

from ..observed_kernels import KERNELS
from .compilation import CompiledFunction
from .host import HOST


def source(name: str) -> str:
    """Return the source, the optimized LLVM code and the instructions of the kernels with this name.

    The name of an operator selects its kernels for all dtypes, including kernels of its backward pass.
    """
    functions = KERNELS.functions
    found = [function for function in functions if name in (function.kernel.name, function.code.name)]
    found = found or [function for function in functions if function.kernel.name.startswith(f"{name}_")]
    if not found:
        known = ", ".join(dict.fromkeys(function.kernel.name for function in KERNELS.functions)) or "none"
        raise LookupError(f"no kernel {name!r} has been compiled in this process (compiled: {known})")
    return "\n".join(_description(function) for function in found)


def _description(function: CompiledFunction) -> str:
    code = function.code
    parts = {
        "kernel": function.kernel.text,
        f"LLVM, optimized for {HOST.cpu} ({HOST.instruction_set})": HOST.optimized(code),
        "assembly": HOST.assembly(code),
    }
    head = f"===== {code.name}: compiled in {code.milliseconds:.1f} ms\n"
    return head + "".join(f"----- {title}\n{text.rstrip()}\n" for title, text in parts.items())
