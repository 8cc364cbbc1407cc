"""Private PyTorch modules that PyTorch's tests import, and that have no counterpart here.

They exist only for files that import `torch.testing._internal`, and after its import. Otherwise their absence shows programs
that such parts are missing. A name without a meaning here is a stand-in that raises an error when it is called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pkgutil import resolve_name
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import TestCase
from warnings import warn

import adjoint
from adjoint import Tensor
from adjoint._runtime.absent import absent

from ..torch_version import TorchVersion
from .modules import MODULES, NAMES

_ABSENT = absent("torch.cuda.jiterator.kernel", "there is only the CPU")


def _unchanged(value: Any, *rest: Any) -> Any:
    return value


def _undecorated(*args: Any, **names: Any) -> Callable[[Any], Any]:
    """Return a decorator that changes nothing."""
    return _unchanged


def _nothing(*args: Any, **names: Any) -> None:
    """Return None for all arguments."""


def _seeded(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call the function with the generator state of `manual_seed(42)`, and restore the state afterwards."""
    with _frozen():
        adjoint.manual_seed(42)
        return op(*args, **kwargs)


def _checked(condition: Tensor) -> Tensor:
    """Return `condition` if all its elements are true, in all examples of a `vmap`."""
    if not adjoint._is_all_true(condition):
        raise RuntimeError("Test message for TORCH_CHECK_TENSOR_ALL")
    return condition


class _Warning(adjoint.autograd.Function):
    """A copy whose backward gives a warning."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return tensor.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        warn("Warn from backward", stacklevel=2)
        return grad


def _compared(one: Tensor, other: Tensor, *options: Any, check_conj: bool = True, **more: Any) -> None:
    """Raise an error if two tensors differ in shape, dtype, device or lazy bits."""
    for name in ("shape", "dtype", "device"):
        if getattr(one, name) != getattr(other, name):
            raise RuntimeError(f"{name.title()}s {getattr(one, name)} and {getattr(other, name)} are not equal!")
    if one.is_neg() != other.is_neg() or (check_conj and one.is_conj() != other.is_conj()):
        raise RuntimeError("Conj or neg mismatch!")


def _shares_memory(outputs: Any, inputs: Any) -> bool:
    """Return whether an output has the storage of an input."""
    leaves: Any = adjoint.utils._pytree.tree_leaves  # type: ignore[attr-defined]
    memories = {each.untyped_storage()._cdata for each in leaves(inputs) if isinstance(each, Tensor)}
    return any(each.untyped_storage()._cdata in memories for each in leaves(outputs) if isinstance(each, Tensor))


def _frozen() -> Any:
    """Return a context that restores the state of the generator at its end."""
    return adjoint.random.fork_rng(devices=())


_UNARY, _BINARY = NAMES["unary"].split(), NAMES["binary"].split()
_NOT_IN_PLACE = set("angle positive signbit isnan logaddexp logaddexp2 maximum minimum fmax fmin".split())
"""The elementwise functions of masked tensors, of which PyTorch's tests make one test each."""


def _packets(names: list[str], suffix: str = "") -> list[Any]:
    return [getattr(adjoint.ops.aten, name + suffix) for name in names if not suffix or name not in _NOT_IN_PLACE]


OF_VALUE: list[tuple[Any, str]] = [
    (_UNARY, "masked.maskedtensor.unary.UNARY_NAMES"),
    (_packets(_UNARY), "masked.maskedtensor.unary.NATIVE_UNARY_FNS"),
    (_packets(_UNARY, "_"), "masked.maskedtensor.unary.NATIVE_INPLACE_UNARY_FNS"),
    (_BINARY, "masked.maskedtensor.binary.BINARY_NAMES"),
    (_packets(_BINARY), "masked.maskedtensor.binary.NATIVE_BINARY_FNS"),
    (_packets(_BINARY, "_"), "masked.maskedtensor.binary.NATIVE_INPLACE_BINARY_FNS"),
    (
        "sum mean amin amax argmin argmax prod all norm var std".split(),
        "masked.maskedtensor.reductions.REDUCE_NAMES",
    ),
    (None, "_native.dsl_registry.dsl_registry"),
    (adjoint._is_all_true, "Tensor._is_all_true"),
    (adjoint._is_any_true, "Tensor._is_any_true"),
    (True, "_C.has_lapack _C.has_openmp _C.has_spectral"),
    (
        False,
        (
            "_C._has_cuda _C._has_mkldnn _C._has_mps _C.has_mkl _utils_internal.IS_FBSOURCE "
            "distributed.distributed_c10d._TORCHCOMM_AVAILABLE"
        ),
    ),
    ("fake", "distributed.Backend.FAKE"),
    (lambda: "cuda", "_inductor.utils.get_gpu_type"),
    (NotImplementedError, "_inductor.exc.CppCompileError _inductor.exc.InvalidCxxCompiler"),
    (_compared, "_prims.utils.compare_tensor_meta _prims_common.compare_tensor_meta"),
    (_shares_memory, "_subclasses.fake_utils.outputs_alias_inputs"),
    (lambda dtype: dtype.is_floating_point, "_prims.utils.is_float_dtype _prims_common.is_float_dtype"),
    (lambda dtype: dtype.is_complex, "_prims.utils.is_complex_dtype _prims_common.is_complex_dtype"),
    (lambda dtype: dtype is adjoint.bool, "_prims.utils.is_boolean_dtype _prims_common.is_boolean_dtype"),
    (
        lambda dtype: not (dtype.is_floating_point or dtype.is_complex),
        "_prims.utils.is_integer_dtype _prims_common.is_integer_dtype",
    ),
    (lambda strict=False: nullcontext(), "_prims.context.TorchRefsMode"),
    (["cuda", "mps", "xpu", "mtia"], "_inductor.utils.GPU_TYPES"),
    (SimpleNamespace(available_dsls=()), "backends.python_native"),
    ({}, "_dynamo.utils.counters _logging._internal.log_state"),
    (SimpleNamespace(get_log_qnames=tuple), "_logging._internal.log_registry"),
    (SimpleNamespace, NAMES["namespaces"]),
    (_nothing, NAMES["nothing"]),
    (
        _unchanged,
        (
            "_export.wrappers.mark_subclass_constructor_exportable_experimental _utils_internal.get_writable_path "
            "_higher_order_ops.invoke_subgraph.mark_compile_region"
        ),
    ),
    (
        lambda dtype: (
            bool
            if dtype is adjoint.bool
            else float
            if dtype.is_floating_point
            else complex
            if dtype.is_complex
            else int
        ),
        "_prims_common.dtype_to_type",
    ),
    (
        lambda *values, **names: (adjoint.result_type(*values[:1], *values[-1:]),) * 2,  # of one or two
        "_prims.utils.elementwise_dtypes",
    ),
    (lambda tracebacks: [[] for _ in tracebacks], "_C._profiler.symbolize_tracebacks"),
    (lambda *args, **names: _ABSENT, "cuda.jiterator._create_jit_fn cuda.jiterator._create_multi_output_jit_fn"),
    (import_module("adjoint.fx.experimental.proxy_tensor").make_fx, "_functorch.functorch.make_fx"),
    (nullcontext, "_dispatch.python.enable_python_dispatcher overrides.enable_reentrant_dispatch"),
    (_undecorated, "_inductor.config.patch"),
    (type("HigherOrderOperator", (), {"__init__": _nothing, "py_impl": _undecorated}), "_ops.HigherOrderOperator"),
    (type("TestCase", (TestCase,), {"_exit_stack": ExitStack()}), "_dynamo.test_case.TestCase"),
    (TorchVersion, "_vendor.packaging.version.parse"),
    (_checked, "_test_check_tensor"),
    (_Warning.apply, "_C._nn._test_warn_in_autograd"),
    (lambda tensor, *rest: tensor.clone(), "_test_autograd_multiple_dispatch"),
    (lambda tensor: tensor.view(-1), "_test_autograd_multiple_dispatch_view"),
    (lambda tensor: tensor.view(-1).clone(), "_test_autograd_multiple_dispatch_view_copy"),
    (_frozen, "testing._utils.freeze_rng_state"),
    (_seeded, "testing._utils.wrapper_set_seed"),
    (_ABSENT, NAMES["absent"]),
]
"""Names with a meaning here, and names that existing modules lack: values, and the full names of their sources."""


def extend() -> None:
    """Create the modules, and add the names to them and to existing modules."""
    for module in MODULES:
        import_module(f"adjoint.{module}")
    for part in ("_VariableFunctions", "_nn", "_linalg", "_special", "_fft"):
        setattr(adjoint._C, part, _Functions(part, getattr(adjoint._C, part)))
    sys.modules["functorch.compile"] = import_module("adjoint._functorch.compile")
    for value, names in OF_VALUE:
        for full in names.split():
            owner, _, name = f"adjoint.{full}".rpartition(".")
            setattr(resolve_name(owner), name, _absent(full) if value is _ABSENT else value)


def _absent(full: str) -> Any:
    return absent(f"torch.{full}", "it belongs to PyTorch's own machinery")


class _Functions(ModuleType):
    """A module of functions of PyTorch's C library. Names that the module lacks are stand-ins."""

    def __init__(self, name: str, functions: Any) -> None:
        super().__init__(f"torch._C.{name}")
        self._functions = functions

    def __getattr__(self, name: str) -> Any:
        found = None if name.startswith("__init") else getattr(self._functions, name, None)
        if found is None and name.startswith("__") and name.strip("_") not in ("and", "or", "xor", "lshift", "rshift"):
            raise AttributeError(name)
        vars(self)[name] = found = found or _absent(f"{self.__name__}.{name}".removeprefix("torch."))
        return found


class StandIn(Loader):
    """A finder and loader that creates the modules in `MODULES`."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Create the module. Its names are resolved on access."""
        module = ModuleType(f"torch.{spec.name.partition('.')[2]}")

        def found(name: str) -> Any:
            full = f"{spec.name.partition('.')[2]}.{name}"
            if name.startswith(("__", "pytest")):
                raise AttributeError(f"module {spec.name!r} has no attribute {name!r}")
            if full.startswith("_refs."):  # `torch._refs.linalg.norm` computes what `torch.linalg.norm` does
                there = import_module(f"adjoint{full[5:]}".rpartition(".")[0].replace("._conversions", ""))
                both = (getattr(owner, name, None) for owner in (there, Tensor))
                computed = next(filter(callable, both), None)
                if computed is None and hasattr(Tensor, f"{name}_"):  # such as `exponential`
                    return lambda input, *args, **names: getattr(input.clone(), f"{name}_")(*args, **names)
                return computed or _absent(full)
            return _absent(full)

        vars(module).update(__getattr__=found, __all__=())
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing, because the module is empty."""
