"""The machine for which kernels are compiled, and llvmlite, which compiles them, without writing files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..._runtime.first_use import computed_once, import_late
from ..._runtime.forks import lock_across_forks
from ..._runtime.installed import install
from .values import CompilationError

NEWEST_LLVM = 22
"""The newest version of LLVM in which the option of `Host._code_generation` is known to exist."""


class Request(NamedTuple):
    """LLVM code to be compiled, with the options of `language.loops`. It has the same meaning in all processes.

    `name`: its public function. `also`: the names of other public functions.
    """

    name: str
    text: str
    explicit: bool = False
    plain: bool = False
    strength_reduced: bool = False
    brief: bool = False
    also: tuple[str, ...] = ()


@dataclass
class MachineCode:
    """One compiled function. `also`: the addresses of other functions that were compiled with it."""

    request: Request = field(repr=False)
    address: int
    milliseconds: float
    also: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.request.name

    @property
    def text(self) -> str:
        """The LLVM code from which the function was compiled."""
        return self.request.text


class Host:
    """The processor of this machine, as LLVM knows it. `lock` is held during every compilation."""

    def __init__(self) -> None:
        self.lock = lock_across_forks()
        self._engines: list[Any] = []
        self.compiled: dict[Request, MachineCode] = {}
        """The compiled functions, by request."""

    @computed_once
    def llvm(self) -> Any:
        """Return llvmlite's binding, or raise `CompilationError` if llvmlite is not installed or cannot be imported."""
        try:
            llvm = import_late("llvmlite.binding")
        except Exception as error:
            raise CompilationError(f"compiled kernels need llvmlite: {install('fast')}") from error
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        return llvm

    @computed_once
    def machine(self) -> Any:
        """LLVM's description of the processor, including all instructions of the processor."""
        return self._new_machine()

    @computed_once
    def cpu(self) -> str:
        """LLVM's name for the processor."""
        return str(self.llvm.get_host_cpu_name())

    @computed_once
    def features(self) -> str:
        """The instructions that the processor has, in LLVM's notation."""
        return str(self.llvm.get_host_cpu_features().flatten())

    @computed_once
    def vector_bytes(self) -> int:
        """Return the number of bytes in a vector register: 64 with AVX-512, 32 with AVX2, else 16."""
        features = self.features.split(",")
        if "+avx512f" in features and "+avx512vl" in features:
            return 64
        return 32 if "+avx2" in features else 16

    @computed_once
    def instruction_set(self) -> str:
        """The vector instructions that kernels use."""
        if "aarch64" in self.machine.triple or "arm64" in self.machine.triple:
            return "NEON"
        return {64: "AVX-512", 32: "AVX2", 16: "SSE"}[self.vector_bytes]

    def define(self, name: str, address: int) -> None:
        """Define a function with this name, at an address in this process, so that kernels can call it."""
        with self.lock:
            self.llvm.add_symbol(name, address)

    def compile(self, name: str, text: str, **options: Any) -> MachineCode:
        """Compile a `Request` with these fields to machine code. Raise `CompilationError` if LLVM rejects it."""
        with self.lock:
            request = Request(name, text, **options)
            known = self.compiled.get(request)
            if known is not None:
                return known
            before = time.perf_counter()
            engine = self._engine(request)
            with self._code_generation(request):
                engine.finalize_object()
            self._engines.append(engine)
            address = engine.get_function_address(name)
            others = tuple([engine.get_function_address(each) for each in request.also])
            code = MachineCode(request, address, 1000 * (time.perf_counter() - before), others)
            self.compiled[request] = code
            return code

    def _engine(self, request: Request) -> Any:
        """Create the engine for the machine code, which LLVM generates when the engine is finalized."""
        return self.llvm.create_mcjit_compiler(self._optimized(request), self._new_machine(0 if request.brief else 1))

    def _optimized(self, request: Request) -> Any:
        """Run LLVM's optimizations on the code."""
        llvm, machine = self.llvm, self.machine
        try:
            module = llvm.parse_assembly(request.text)
            module.triple = machine.triple
            module.data_layout = str(machine.target_data)
            module.verify()
        except RuntimeError as error:
            raise CompilationError(f"LLVM refuses the kernel {request.name}: {error}") from None
        options = llvm.create_pipeline_tuning_options(speed_level=1 if request.explicit else 3)
        options.loop_vectorization = not request.explicit
        options.slp_vectorization = not request.explicit
        options.loop_interleaving = not request.explicit
        options.loop_unrolling = not request.explicit
        builder = llvm.create_pass_builder(machine, options)
        passes = builder.getModulePassManager()
        if request.plain:
            passes = llvm.create_new_module_pass_manager()
            passes.add_sroa_pass()
            passes.add_simplify_cfg_pass()
        passes.run(module, builder)
        return module

    @contextmanager
    def _code_generation(self, request: Request) -> Iterator[None]:
        """Set the options for machine code that is generated from the result of `_optimized`.

        The loop indices of plain kernels are not changed. Loop strength reduction takes a third to two fifths of LLVM's
        time, and does not make most loops faster. LLVM's option affects the whole process. Code that another library
        compiles at the same time may be slightly slower. An unknown LLVM option would terminate the process.
        """
        if not request.plain or request.strength_reduced or self.llvm.llvm_version_info[0] > NEWEST_LLVM:
            yield
            return
        self.llvm.set_option("adjoint", "--disable-lsr=true")
        try:
            yield
        finally:
            self.llvm.set_option("adjoint", "--disable-lsr=false")

    def _new_machine(self, level: int = 1) -> Any:
        """Create another description of the processor, because each engine owns one. Level 3 is no faster than 1."""
        target = self.llvm.Target.from_default_triple()
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=level, reloc="pic", codemodel="jitdefault"
        )

    def assembly(self, code: MachineCode) -> str:
        """Return the processor's instructions."""
        with self.lock:
            module = self._optimized(code.request)
            with self._code_generation(code.request):
                return str(self.machine.emit_assembly(module))

    def optimized(self, code: MachineCode) -> str:
        """Return the optimized LLVM code of the kernel."""
        with self.lock:
            return str(self._optimized(code.request))


HOST = Host()
"""The machine on which this process runs."""
