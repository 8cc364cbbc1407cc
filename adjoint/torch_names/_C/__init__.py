"""`torch._C`: names that programs use to inspect the engine, overrides and transforms. This file contains names only."""

import re
from contextlib import nullcontext
from enum import Enum
from functools import partial
from typing import Any
from weakref import ref

from adjoint import dtypes as _dtypes
from adjoint._runtime.absent import absent
from adjoint._runtime.first_use import import_late
from adjoint._runtime.tracebacks import warn
from adjoint.device import device
from adjoint.kernels.runtime.lazy_conj import CONJ, NEG, lazy_bits_of, with_lazy_bits
from adjoint.tape.interpreters import tensors_in as _tensors_in
from adjoint.tape.modes import STATE as _STATE
from adjoint.tape.torch_function import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from adjoint.tape.torch_function import disabled_torch_function_impl as _disabled_torch_function_impl
from adjoint.torch_names._C._dispatch_keys import DispatchKey as DispatchKey
from adjoint.torch_names._C._dispatch_keys import DispatchKeySet as DispatchKeySet
from adjoint.torch_names._C._dispatch_keys import _dispatch_tls_local_exclude_set as _dispatch_tls_local_exclude_set
from adjoint.torch_names._C._dispatch_keys import _ExcludeDispatchKeyGuard as _ExcludeDispatchKeyGuard

__all__ = ["DisableTorchFunctionSubclass", "_disabled_torch_function_impl"]

_OF_TORCHSCRIPT = frozenset(
    """
    AnyType Argument Block BoolType ClassType CompilationUnit DeviceObjType DictType EnumType
    FloatType FunctionSchema Future Graph IntType InterfaceType JITException ListType Node NoneType NumberType OptionalType
    ScriptDict ScriptFunction ScriptList ScriptMethod ScriptModule ScriptObject StringType TensorType TupleType Type
    UnionType Use Value
    """.split()
)
"""Classes of TorchScript, which libraries name in annotations."""


class _DisableFuncTorch(nullcontext[None]):
    """A context without effect. Code inside, such as code that sets generator state, runs unchanged under transforms."""


class _TorchFunctionState(Enum):
    """The `__torch_function__` methods that are called: all, only the methods of modes, or none."""

    ENABLED = 0
    SUBCLASSES_DISABLED = 1
    ALL_DISABLED = 2


def _get_torch_function_state() -> _TorchFunctionState:
    """Return which `__torch_function__` methods are called in this thread."""
    if not _STATE.asks_modes:
        return _TorchFunctionState.ALL_DISABLED
    return _TorchFunctionState.ENABLED if _STATE.asks_classes else _TorchFunctionState.SUBCLASSES_DISABLED


def _set_bit(bit: int, tensor: Any, value: bool) -> None:
    """Set whether `tensor` shows the elements of its memory conjugated, or negated."""
    if value is not bool(lazy_bits_of(tensor._array) & bit):
        tensor._array = with_lazy_bits(tensor._array, bit)


_set_conj, _set_neg = partial(_set_bit, CONJ), partial(_set_bit, NEG)


def _get_all_dtypes() -> list[_dtypes.dtype]:
    """Return all dtypes, including dtypes that no tensor has."""
    return list(dict.fromkeys(value for value in vars(_dtypes).values() if type(value) is _dtypes.dtype))


def _get_privateuse1_backend_name() -> str:
    """Return the name of devices that a library may add to PyTorch. Libraries cannot add devices here."""
    return "privateuseone"


def _warn() -> None:
    """Give a warning of category UserWarning."""
    warn("Test message for TORCH_WARN")


def _warn_deprecation() -> None:
    """Give a warning of category DeprecationWarning."""
    warn("Test message for TORCH_WARN_DEPRECATION", DeprecationWarning)


def _log_api_usage_once(event: str) -> None:
    """Do nothing, because usage is not counted."""


def _get_accelerator() -> device:
    """Return the device that computes, which is the CPU."""
    return device("cpu")


def _exit_dual_level(level: int) -> None:
    """Leave the level `level`, which must be the innermost level."""
    found = import_late("adjoint.transforms.forward_mode").current_level()
    if found is None or level != 0:
        raise RuntimeError(
            "Exiting a forward AD level that is not the last that was created is not support. Ensure they are released in the "
            "reverse order they were created."
        )
    found.leave()


def _is_torch_function_enabled() -> bool:
    """Return whether `__torch_function__` of classes is called in this thread."""
    return bool(_STATE.asks_classes)


def _len_torch_function_stack() -> int:
    """Return the number of modes with `__torch_function__` that this thread has entered."""
    return len(_STATE.function_modes)


def _are_functorch_transforms_active() -> bool:
    """Return whether a function transform is running in this thread."""
    return bool(_STATE.transforms)


class _WeakTensorRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor: Any) -> None:
        self._reference = ref(tensor)

    def expired(self) -> bool:
        """Return whether the tensor has been freed."""
        return self._reference() is None


_cached: dict[int, _WeakTensorRef] = {}
"""References to the tensors that are marked as cached, by the `id` of the tensor."""


def _set_cached_tensors_enabled(enabled: bool) -> None:
    """Do nothing. PyTorch counts the references to cached tensors of CUDA graphs, which do not exist here."""
    _cached.clear()


def _add_cached_tensor(tensor: Any) -> None:
    """Mark `tensor` as cached."""
    _cached[id(tensor)] = _WeakTensorRef(tensor)


def _remove_cached_tensor(tensor: Any) -> None:
    """Remove the mark."""
    _cached.pop(id(tensor), None)


def _is_cached_tensor(tensor: Any) -> bool:
    """Return whether `tensor` is marked as cached."""
    return id(tensor) in _cached and not _cached[id(tensor)].expired()


def _any_requires_grad(*args: Any, **keywords: Any) -> bool:
    """Return whether a tensor among the arguments, or in lists among them, requires a gradient."""
    return any(tensor.requires_grad for tensor in _tensors_in((*args, *keywords.values())))


def _any_output_is_alias_to_input_or_output(args: Any, kwargs: Any, outputs: Any) -> bool:
    """Return whether an output shares memory with an input, or with another output."""
    seen = [tensor.untyped_storage().data_ptr() for tensor in _tensors_in((*args, *kwargs.values()))]
    for tensor in _tensors_in(outputs if isinstance(outputs, (list, tuple)) else (outputs,)):
        if tensor.numel() and tensor.untyped_storage().data_ptr() in seen:
            return True
        seen.append(tensor.untyped_storage().data_ptr())
    return False


def _is_alias_of(first: Any, second: Any) -> bool:
    """Return whether both tensors share memory."""
    return bool(first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr())


def _is_cow_tensor(tensor: Any) -> bool:
    """Return whether `_lazy_clone` has returned or received `tensor`, and it has not been changed since."""
    return bool(tensor.__dict__.get("_cow_version") == tensor._version)


def _get_tracing_state() -> None:
    """Return None, because nothing is traced."""


def __getattr__(name: str) -> Any:
    """Import rarely used names on first use."""
    if name in _OF_TORCHSCRIPT:
        value = globals()[name] = absent(f"torch._C.{name}", "there is no TorchScript, and no dispatcher in C++")
        return value
    if name == "_TensorMeta":
        return type
    if name in ("_VariableFunctions", "_VariableFunctionsClass"):  # pickles look up functions of `torch` in it
        return import_late("adjoint")
    if option := re.fullmatch("_(get|set)_(cudnn|mkldnn)_(enabled|benchmark|deterministic|allow_tf32)", name):
        kind, library, switch = option.groups()
        switches = vars(import_late(f"adjoint.backends.{library}"))
        if switch in switches:
            return partial(switches.__getitem__ if kind == "get" else switches.__setitem__, switch)
    if name == "_functions":
        return import_late(f"{__name__}.{name}")
    if name == "_EnteredMode":  # the base class of modes in `torch.utils._python_dispatch`
        return import_late("adjoint.aten.torch_dispatch").Entered
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
