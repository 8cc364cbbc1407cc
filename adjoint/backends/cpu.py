"""`torch.backends.cpu`: what the processor can do."""

from typing import Any


def get_cpu_capability() -> str:
    """The vector instructions of compiled kernels, in PyTorch's words: "AVX512", "AVX2" or "DEFAULT"."""
    from . import llvm

    if not llvm.is_available():
        return "DEFAULT"
    found: Any = {"AVX-512": "AVX512", "AVX2": "AVX2"}
    name: str = found.get(llvm.instruction_set, "DEFAULT")
    return name
