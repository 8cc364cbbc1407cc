"""Private modules of PyTorch's that its own tests import, and that have no counterpart here.

They exist while `torch.testing._internal` is imported, and not before: elsewhere, that they are missing tells programs
that there is no such part. What a module has no meaning for is a stand-in, which says so where it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pkgutil import resolve_name
from types import ModuleType, SimpleNamespace
from typing import Any

from .. import Tensor
from ..absent import absent
from ..torch_version import TorchVersion

MODULES = frozenset(
    """
    _C._autograd _C._distributed_c10d _C._profiler _dynamo.test_case _export _higher_order_ops _inductor
    _inductor.config _inductor.utils _logging _native _prims _prims_common _refs _refs._conversions _refs.fft
    _refs.linalg _refs.nn.functional _refs.special _subclasses.schema_check_mode _utils_internal _vendor
    _vendor.packaging.version ao.nn ao.nn.qat.modules ao.nn.quantizable.modules ao.nn.quantized.modules ao.ns ao.pruning
    ao.quantization.quantization_mappings ao.quantization.quantize_fx cuda.jiterator cuda.nccl
    distributed._functional_collectives distributed._local_tensor distributed.tensor.parallel jit._logging jit.frontend
    jit.mobile jit.quantized testing._utils utils._config_module utils._helion utils._pallas utils._triton
    utils.cpp_extension
    """.split()
)
"""The modules; all modules below them exist, too."""


def _as_it_is(value: Any, *rest: Any) -> Any:
    return value


def _nothing(*args: Any, **names: Any) -> None:
    """None."""


def _no(*args: Any, **names: Any) -> bool:
    """False."""
    return False


def _seeded(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call with the state of the generator after `manual_seed(42)`; its state is afterwards what it was."""
    import adjoint

    with _frozen():
        adjoint.manual_seed(42)
        return op(*args, **kwargs)


def _kernel(*args: Any, **names: Any) -> Any:
    """What a kernel for GPUs is compiled to."""
    return _absent("cuda.jiterator.kernel")


def _frozen() -> Any:
    """A context after which the state of the generator is what it was."""
    import adjoint

    return adjoint.random.fork_rng(devices=())


NAMES: dict[str, Any] = {
    "backends.disable_global_flags": _nothing,
    **{
        f"_C._distributed_c10d.{name}Options": SimpleNamespace
        for name in ("AllToAll", "Allgather", "Allreduce", "Barrier", "Broadcast", "ReduceScatter", "Scatter")
    },
    **{f"_C.{name}": True for name in ("has_lapack", "has_openmp", "has_spectral")},
    **{f"_C.{name}": False for name in ("_has_cuda", "_has_mkldnn", "_has_mps", "has_mkl")},
    **{f"_C.{name}_graph_executor_optimize": _nothing for name in ("_get", "_set")},
    **{f"_C._jit_set_{name}": _nothing for name in ("profiling_executor", "profiling_mode")},
    "_C._profiler.gather_traceback": _nothing,
    "_C._profiler.symbolize_tracebacks": lambda tracebacks: [[] for _ in tracebacks],
    "backends.python_native": SimpleNamespace(available_dsls=()),
    "cuda.jiterator._create_jit_fn": _kernel,
    "cuda.jiterator._create_multi_output_jit_fn": _kernel,
    "distributed.Backend.FAKE": "fake",
    "distributed.Backend.register_backend": _nothing,
    "distributed.distributed_c10d._TORCHCOMM_AVAILABLE": False,
    "overrides.enable_reentrant_dispatch": nullcontext,
    "_export.wrappers.mark_subclass_constructor_exportable_experimental": _as_it_is,
    "_higher_order_ops.InvokeQuant": SimpleNamespace,
    "_higher_order_ops.invoke_subgraph.mark_compile_region": _as_it_is,
    "_inductor.utils.GPU_TYPES": ["cuda", "mps", "xpu", "mtia"],
    "_inductor.utils.get_gpu_type": _nothing,
    "_logging.scribe.open_source_signpost": _nothing,
    "_native.dsl_registry.dsl_registry": None,
    "_vendor.packaging.version.parse": TorchVersion,
    "_utils_internal.IS_FBSOURCE": False,
    "_utils_internal.get_writable_path": _as_it_is,
    "testing._utils.freeze_rng_state": _frozen,
    "testing._utils.wrapper_set_seed": _seeded,
    "utils._helion.has_helion": _no,
    "utils._pallas.has_pallas_package": _no,
    "utils._pallas.has_tpu_pallas": _no,
    "utils._triton.has_triton": _no,
}
"""What has a meaning, by its full name; some are missing in modules that there are."""

MISSING = """
    _dynamo.utils.LazyString _dynamo.utils.clone_input _higher_order_ops.cond.cond_op
    _higher_order_ops.invoke_quant_packed _scaled_grouped_mm _scaled_mm _scaled_mm_v2 autograd.function._nested_map
    distributed.distributed_c10d._CollOp distributed.distributed_c10d._store_based_barrier
    distributed.rpc._rref_context_get_debug_info fx.experimental.proxy_tensor.make_fx
    nn.attention.flex_attention._create_empty_block_mask testing.FileCheck
    """.split()
"""What has none, and is missing in modules that there are."""


def extend() -> None:
    """Make the modules, and put names of `NAMES` and `MISSING` into them and into those that there are."""
    for module in MODULES:
        import_module(f"adjoint.{module}")
    for full in (*NAMES, *MISSING):
        owner, _, name = full.rpartition(".")
        setattr(resolve_name(f"adjoint.{owner}".rstrip(".")), name, NAMES[full] if full in NAMES else _absent(full))


def _absent(full: str) -> Any:
    return absent(f"torch.{full}", "it belongs to PyTorch's own machinery")


class StandIn(Loader):
    """Makes a module of `MODULES`."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make it: its names are looked for when they are asked for."""
        module = ModuleType(f"torch.{spec.name.partition('.')[2]}")

        def found(name: str) -> Any:
            full = f"{spec.name.partition('.')[2]}.{name}"
            if name.startswith(("__", "pytest")):
                raise AttributeError(f"module {spec.name!r} has no attribute {name!r}")
            if full.startswith("_refs."):  # `torch._refs.linalg.norm` computes what `torch.linalg.norm` does
                there = import_module(f"adjoint{full[5:]}".rpartition(".")[0].replace("._conversions", ""))
                both = (getattr(owner, name, None) for owner in (there, Tensor))
                return next(filter(callable, both), None) or _absent(full)
            return _absent(full)

        vars(module).update(__getattr__=found, __all__=())
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: it is empty."""


def stand_in(name: str) -> ModuleSpec | None:
    """The specification of the module `adjoint.x.y`, if it is one of them."""
    parts = name.split(".")[1:]
    known = any(".".join(parts[: count + 1]) in MODULES for count in range(len(parts)))
    return ModuleSpec(name, StandIn(), is_package=True) if known else None
