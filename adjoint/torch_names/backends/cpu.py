"""`torch.backends.cpu`: the capabilities of the processor."""

from adjoint._runtime.first_use import import_late
from adjoint.codegen.acceleration import LOOPS


def get_cpu_capability() -> str:
    """Return the vector instructions of compiled kernels, under PyTorch's names: "AVX512", "AVX2" or "DEFAULT"."""
    if not LOOPS.available:
        return "DEFAULT"
    found = import_late("adjoint.codegen.llvm.host").HOST.instruction_set
    return {"AVX-512": "AVX512"}.get(found, found if found == "AVX2" else "DEFAULT")
