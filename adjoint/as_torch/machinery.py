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

from ..absent import absent
from ..torch_version import TorchVersion

MODULES = frozenset(
    """
    _export _inductor _inductor.config _inductor.utils _logging _native _prims _refs _vendor _vendor.packaging.version ao.nn ao.nn.qat.modules ao.nn.quantizable.modules ao.nn.quantized.modules
    ao.ns ao.pruning ao.quantization.quantization_mappings
    ao.quantization.quantize_fx cuda.jiterator cuda.nccl _C._autograd _C._distributed_c10d _C._profiler _dynamo.test_case
    _higher_order_ops.flex_attention     _subclasses.schema_check_mode _higher_order_ops.inline_asm_elementwise _higher_order_ops.invoke_subgraph _utils_internal distributed._functional_collectives distributed._local_tensor
    distributed.tensor.parallel jit._logging jit.frontend jit.mobile jit.quantized testing._utils utils._config_module
    utils._helion utils._pallas utils._triton utils.cpp_extension
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
    "backends.python_native": SimpleNamespace(available_dsls=()),
    "cuda.jiterator._create_jit_fn": _kernel,
    "cuda.jiterator._create_multi_output_jit_fn": _kernel,
    "distributed.Backend.register_backend": _nothing,
    "distributed.distributed_c10d._TORCHCOMM_AVAILABLE": False,
    "overrides.enable_reentrant_dispatch": nullcontext,
    "_export.wrappers.mark_subclass_constructor_exportable_experimental": _as_it_is,
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
    _scaled_mm _scaled_mm_v2 _scaled_grouped_mm _higher_order_ops.InvokeQuant _higher_order_ops.invoke_quant_packed _dynamo.utils.LazyString _dynamo.utils.clone_input autograd.function._nested_map distributed.distributed_c10d._CollOp
    distributed.distributed_c10d._store_based_barrier distributed.rpc._rref_context_get_debug_info
    fx.experimental.proxy_tensor.make_fx nn.attention.flex_attention._create_empty_block_mask testing.FileCheck
    """.split()
"""What has none, and is missing in modules that there are."""


def extend() -> None:
    """Make the modules, and put names of `NAMES` and `MISSING` into those that there are."""
    for module in MODULES:
        import_module(f"adjoint.{module}")
    for full in (*NAMES, *MISSING):
        owner, _, name = full.rpartition(".")
        if _own(full) is None:
            setattr(resolve_name(f"adjoint.{owner}".rstrip(".")), name, NAMES[full] if full in NAMES else _absent(full))


def _own(full: str) -> str | None:
    """The entry of `MODULES` that a full name belongs to."""
    parts = full.split(".")
    return next((known for n in range(len(parts)) if (known := ".".join(parts[: n + 1])) in MODULES), None)


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
            if full in NAMES:
                return NAMES[full]
            if full.startswith("_refs."):  # `torch._refs.linalg.norm` computes what `torch.linalg.norm` does
                there = import_module(f"adjoint{full[5:]}".rpartition(".")[0])
                return getattr(there, name, None) or _absent(full)
            return _absent(full)

        vars(module).update(__getattr__=found, __all__=())
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: it is empty."""


def stand_in(name: str) -> ModuleSpec | None:
    """The specification of the module `adjoint.x.y`, if it is one of them."""
    return ModuleSpec(name, StandIn(), is_package=True) if _own(name.partition(".")[2]) else None
