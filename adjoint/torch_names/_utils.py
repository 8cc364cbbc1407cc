"""`torch._utils`: private functions that programs outside PyTorch use.

They flatten tensors into one buffer and unflatten them, rebuild tensors from pickles, and pass exceptions from one
thread or process to another.
"""

from __future__ import annotations

import importlib
import itertools
import os
import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

from adjoint import dtypes
from adjoint._runtime.first_use import import_late
from adjoint.device import device as device_class
from adjoint.dispatch.decorators import tensors as operators
from adjoint.tape.torch_function import has_torch_function
from adjoint.tensor import Tensor

from .overrides import handle_torch_function

# --- flat buffers -----------------------------------------------------------------------------------------------


def _flatten_dense_tensors(tensors: Any) -> Tensor:
    """Return the concatenated elements of all `tensors`.

    A single contiguous tensor shares its memory with the result.

    >>> import adjoint as torch
    >>> from adjoint._utils import _flatten_dense_tensors, _unflatten_dense_tensors
    >>> parts = [torch.ones(2), torch.zeros(1, 2)]
    >>> flat = _flatten_dense_tensors(parts)
    >>> flat, [part.shape for part in _unflatten_dense_tensors(flat, parts)]
    (tensor([1., 1., 0., 0.]), [torch.Size([2]), torch.Size([1, 2])])
    """
    if isinstance(tensors, Tensor):
        raise TypeError("flatten_dense_tensors(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    flat = [tensor.contiguous().view(-1) for tensor in tensors]
    return flat[0] if len(flat) == 1 else operators.cat(flat)


def _unflatten_dense_tensors(flat: Tensor, tensors: Any) -> tuple[Tensor, ...]:
    """Return views of consecutive parts of `flat` with the shapes of `tensors`. An empty tensor has separate memory."""
    parts, offset = [], 0
    for tensor in tensors:
        count = tensor.numel()
        if count == 0:
            parts.append(flat.new_empty(tensor.shape))
        else:
            parts.append(flat.narrow(0, offset, count).view(tensor.shape))
        offset += count
    return tuple(parts)


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Yield lists of tensors of one dtype, in order, with at most `size_limit` bytes each, except for larger single tensors."""
    held: defaultdict[str, list[Tensor]] = defaultdict(list)
    sizes: defaultdict[str, int] = defaultdict(int)
    for tensor in tensors:
        kind, size = tensor.type(), tensor.numel() * tensor.element_size()
        if held[kind] and sizes[kind] + size > size_limit:
            yield held[kind]
            held[kind], sizes[kind] = [], 0
        held[kind].append(tensor)
        sizes[kind] += size
    yield from (each for each in held.values() if each)


def _reorder_tensors_as(tensors: Iterable[Tensor], ordered_tensors: Iterable[Tensor]) -> tuple[Any, ...]:
    """Return `tensors` in the order of `ordered_tensors`. The tensors of each type must already be in order."""
    by_type: defaultdict[str, list[Tensor]] = defaultdict(list)
    for tensor in tensors:
        by_type[tensor.type()].append(tensor)
    following = {kind: iter(each) for kind, each in by_type.items()}
    return tuple([next(following[tensor.type()]) for tensor in ordered_tensors])


def _handle_complex(tensor: Any) -> Tensor:
    """Return a complex tensor as pairs of real and imaginary parts, and any other tensor unchanged."""
    return operators.view_as_real(tensor) if tensor.is_complex() else tensor


def _element_size(dtype: dtypes.dtype) -> int:
    """Return the number of bytes of one element."""
    return dtype.itemsize


# --- objects --------------------------------------------------------------------------------------------------


def _get_obj_state(obj: Any) -> Any:
    """Return the state that pickle would store for `obj`: the contents of its dict, and of its slots if there are any."""
    get_state = type(obj).__dict__.get("__getstate__")
    if get_state is not None:
        return get_state(obj)
    slots = [name for cls in type(obj).__mro__ for name in _slots_of(cls)]
    found = {name: getattr(obj, name) for name in slots if hasattr(obj, name)}
    return (obj.__dict__, found) if found else obj.__dict__


def _slots_of(cls: type) -> list[str]:
    slots = cls.__dict__.get("__slots__", ())
    names = [slots] if isinstance(slots, str) else list(slots)
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def _set_obj_state(obj: Any, state: Any) -> Any:
    """Set the state that `_get_obj_state` returned: a dict, or a pair (dict, contents of slots)."""
    dict_state, slots_state = state, None
    if isinstance(state, tuple):
        if len(state) != 2:
            raise RuntimeError(f"Invalid serialized state: {state}")
        dict_state, slots_state = state
    for name, value in itertools.chain((dict_state or {}).items(), (slots_state or {}).items()):
        setattr(obj, name, value)
    return obj


class classproperty:
    """A property that is read on the class."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self.func = func

    def __get__(self, instance: Any, owner: type) -> Any:
        return self.func(owner)


def _is_privateuse1_backend_available() -> bool:
    """Return whether a library has added its own devices, which is impossible here."""
    return False


def _import_dotted_name(name: str) -> Any:
    """Return the object with the dotted name `name`, following attributes of imported modules."""
    first, *others = name.split(".")
    found: Any = importlib.import_module(first)
    for other in others:
        found = getattr(found, other)
    return found


def try_import(module_name: str) -> ModuleType | None:
    """Return the module `module_name`, or None if it is not installed."""
    try:
        return importlib.import_module(module_name)
    except ImportError:
        return None


def render_call(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the call of `fn` as text. Tensors are shown without elements."""
    name = _qualified_name(fn)
    given = [_short_text(arg) for arg in args] + [f"{key}={_short_text(value)}" for key, value in kwargs.items()]
    return f"{name}({', '.join(given)})"


def _qualified_name(function: Any) -> str:
    public = sys.modules[__package__]
    named = getattr(public, getattr(function, "__name__", ""), None) is function
    return f"torch.{function.__name__}" if named else str(function)


def _short_text(value: Any) -> str:
    if isinstance(value, Tensor):
        usual = (dtypes.get_default_dtype(), dtypes.complex64, dtypes.int64, dtypes.bool)
        start = "..., device='meta'" if value.is_meta else "[...]"
        kind = "" if value.dtype in usual else f", dtype={value.dtype}"
        return (
            f"tensor({start}, size={tuple(value.shape)}{kind}{', requires_grad=True' if value.requires_grad else ''})"
        )
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_short_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(_short_text, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
    return repr(value)


# --- exceptions of other threads and processes ------------------------------------------------------------------


class KeyErrorMessage(str):
    """The message of a KeyError. Its `repr` keeps line breaks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """A container of the current exception, or of `exc_info`, that can raise it elsewhere.

    The traceback is stored as text.

    >>> from adjoint._utils import ExceptionWrapper
    >>> try:
    ...     raise ValueError("too large")
    ... except ValueError:
    ...     wrapped = ExceptionWrapper(where="in worker 3")
    >>> wrapped.exc_type.__name__, wrapped.where
    ('ValueError', 'in worker 3')
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        exc_info = sys.exc_info() if exc_info is None else exc_info
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self) -> None:
        """Raise an exception of the same type with the traceback in its message, or else a RuntimeError."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=message)
        try:
            exception = self.exc_type(message)
        except Exception:  # noqa: BLE001  (the class is the user's)
            raise RuntimeError(message) from None
        raise exception


# --- devices and modes ----------------------------------------------------------------------------------------


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int | None:
    """Return the index of a device: -1 for a CPU if `allow_cpu`, and None for other objects if `optional`."""
    if isinstance(device, str):
        device = device_class(device)
    index = None
    if isinstance(device, device_class):
        if not allow_cpu and device.type == "cpu":
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        index = -1 if device.type == "cpu" else device.index
    if isinstance(device, int):
        index = device
    if index is None and not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return index


def _get_async_or_non_blocking(function_name: str, non_blocking: bool, kwargs: dict[str, Any]) -> bool:
    """Return `non_blocking`, or the value of the keyword `async` of older programs. Raise TypeError for other keywords."""
    if not kwargs:
        return non_blocking
    if len(kwargs) != 1 or "async" not in kwargs:
        raise TypeError(f"{function_name}() got an unexpected keyword argument '{list(kwargs)[-1]}'")
    return bool(kwargs["async"])


def is_compiling() -> bool:
    """Return whether a function is being compiled. The answer is always False."""
    return False


def cpu_count() -> int | None:
    """Return the number of CPUs that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError if the condition is false. `torch.fx` records the call."""
    if type(condition) is not Tensor and has_torch_function((condition,)):
        return handle_torch_function(_assert, (condition,), condition, message)
    if not condition:
        raise AssertionError(message)
    return None


# --- devices ----------------------------------------------------------------------------------------------------


def _get_available_device_type() -> str | None:
    """Return None, because there is no accelerator."""
    return None


def _get_device_module(device_type: str) -> ModuleType:
    """Return the module of a device kind, such as `torch.cpu`, or raise an error if it does not exist."""
    try:
        return import_late(f"adjoint.{device_type}")
    except ModuleNotFoundError:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'."
        ) from None
