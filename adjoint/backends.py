"""`adjoint.backends`: the compiler of kernels, and the libraries that PyTorch may be told to use.

`backends.llvm` compiles kernels for large arrays where llvmlite is installed. The others are not used here: programs switch them
(`backends.cudnn.deterministic = True`) and ask for them; switches are kept and change nothing.
"""

from __future__ import annotations

from .codegen.acceleration import LOOPS


class _Backend:
    """A library that is not there, with its switches."""

    def __init__(self, **switches: bool) -> None:
        for name, value in switches.items():
            setattr(self, name, value)

    def is_available(self) -> bool:
        """Whether the library is used; never."""
        return False

    is_built = is_available


class _Cuda(_Backend):
    matmul = _Backend(allow_tf32=False, allow_fp16_reduced_precision_reduction=True)


class _Llvm:
    """Kernels compiled to machine code by llvmlite (`pip install 'adjoint[fast]'`), for arrays that are large enough."""

    def is_available(self) -> bool:
        """Whether llvmlite is installed."""
        return LOOPS.available

    @property
    def enabled(self) -> bool:
        """Whether compiled kernels run. Set it to turn them off and on; `ADJOINT_LLVM=0` in the environment begins with off."""
        return LOOPS.enabled

    @enabled.setter
    def enabled(self, value: bool) -> None:
        LOOPS.enabled = value

    @property
    def instruction_set(self) -> str:
        """The vector instructions that kernels are compiled to: "AVX-512", "AVX2", "SSE" or "NEON".

        Raises:
            CompilationError: if llvmlite is not installed.
        """
        from .codegen.llvm.host import HOST

        return HOST.instruction_set

    @property
    def compiled(self) -> dict[str, float]:
        """The kernels that this process has compiled, by name, and how many milliseconds each took."""
        if not self.is_available():
            return {}
        from .codegen.llvm.report import compiled_functions

        return {function.code.name: function.code.milliseconds for function in compiled_functions()}

    @property
    def failures(self) -> dict[str, str]:
        """The kernels that could not be compiled, and why; NumPy computes in their place."""
        return dict(LOOPS.failures)

    def source(self, name: str) -> str:
        """What runs for a kernel: its source, LLVM's text and the processor's instructions.

        Raises:
            LookupError: if no kernel of this name has been compiled in this process.
        """
        from .codegen.llvm.report import source

        return source(name)

    def describe(self) -> str:
        """One line: whether compiled kernels run, on which instructions, how many there are and how long they took."""
        if not self.is_available():
            return "llvmlite is not installed (pip install 'adjoint[fast]')"
        if not self.enabled:
            return "turned off"
        times = self.compiled.values()
        failed = f", {len(LOOPS.failures)} given up ({', '.join(LOOPS.failures)})" if LOOPS.failures else ""
        return f"{self.instruction_set}, {len(times)} compiled in {sum(times):.0f} ms{failed}"


llvm = _Llvm()
cudnn = _Backend(enabled=True, benchmark=False, deterministic=False, allow_tf32=True)
cuda = _Cuda()
mps, mkl, mkldnn, openmp = _Backend(), _Backend(), _Backend(enabled=True), _Backend()
