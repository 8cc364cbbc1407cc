"""`adjoint.backends`: the kernel compiler, and modules for libraries that PyTorch can use.

`backends.llvm` compiles kernels for large arrays if llvmlite is installed. The other libraries are not used. Programs
may read and set their switches (`backends.cudnn.deterministic = True`). The values are stored, but have no effect.
"""

from __future__ import annotations

from adjoint._runtime.installed import install
from adjoint.codegen.acceleration import LOOPS

from . import cpu, cuda, cudnn, mkl, mkldnn, mps
from .switches import cusparselt, mha, miopen, nnpack, openmp, opt_einsum, quantized, xnnpack


class _Llvm:
    """Kernels compiled to machine code by llvmlite (`pip install 'adjoint-autograd[fast]'`), for arrays that are large enough."""

    def is_available(self) -> bool:
        """Return whether llvmlite is installed and can be imported."""
        return LOOPS.available

    @property
    def enabled(self) -> bool:
        """Whether compiled kernels run. The initial value is False if the environment contains `ADJOINT_LLVM=0`."""
        return LOOPS.enabled

    @enabled.setter
    def enabled(self, value: bool) -> None:
        LOOPS.enabled = value

    @property
    def instruction_set(self) -> str:
        """Return the vector instructions for which kernels are compiled: "AVX-512", "AVX2", "SSE" or "NEON".

        Raises:
            CompilationError: if llvmlite is not installed.
        """
        from adjoint.codegen.llvm.host import HOST

        return HOST.instruction_set

    @property
    def compiled(self) -> dict[str, float]:
        """Return the kernels that this process has compiled, by name, with the compile time of each in milliseconds."""
        if not self.is_available():
            return {}
        from adjoint.codegen.observed_kernels import KERNELS

        return {function.code.name: function.code.milliseconds for function in KERNELS.functions}

    @property
    def failures(self) -> dict[str, str]:
        """Return the kernels that failed to compile, with the reason. NumPy computes these operators."""
        return dict(LOOPS.failures)

    def source(self, name: str) -> str:
        """Return the code of a kernel: its source, the LLVM assembly and the machine instructions.

        `name` is the name of a kernel, such as "gelu_float32", or its beginning. "gelu" shows all kernels of this
        operator that the process has compiled.

        Raises:
            LookupError: if no kernel of this name has been compiled in this process.
        """
        from adjoint.codegen.llvm.report import source

        return source(name)

    def describe(self) -> str:
        """Return one line: whether compiled kernels run, their instruction set, their number and their compile time."""
        if not self.is_available():
            broken = self.failures.get("llvmlite")
            reason = f"cannot be imported ({broken})" if broken else f"is not installed ({install('fast')})"
            return f"llvmlite {reason}"
        if not self.enabled:
            return "turned off"
        times = self.compiled.values()
        failed = f", {len(LOOPS.failures)} given up ({', '.join(LOOPS.failures)})" if LOOPS.failures else ""
        from adjoint.codegen.llvm.amx import TILES

        tiles = " and AMX" if TILES.usable else ""
        return f"{self.instruction_set}{tiles}, {len(times)} compiled in {sum(times):.0f} ms{failed}"


llvm = _Llvm()
