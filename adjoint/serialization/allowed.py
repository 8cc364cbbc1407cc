"""The names that a file may contain: tensors, plain data, and the classes and functions that the user has added.

A global name in a file is looked up here and never imported. `Allowed` pairs each name with the object that replaces
it. The object is called only through its `construct`, and receives state only through its `set_state`.
"""

from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from functools import cache
from types import TracebackType
from typing import Any, NamedTuple

import numpy

from .. import dtypes
from .._runtime.places import OWN, THEIRS
from ..device import Size, device
from ..tensor import Tensor
from . import plain, tensors
from .storages import STORAGE_TYPES, UNTYPED

__all__ = [
    "Allowed", "add_safe_globals", "clear_safe_globals", "data_globals", "get_safe_globals", "global_name",
    "qualified", "safe_globals", "user_globals", "weights_globals",
]  # fmt: skip

SafeGlobal = Callable[..., Any] | tuple[Callable[..., Any], str]


class Allowed(NamedTuple):
    """An object that a file may name, with its permitted uses. None means that a use is not permitted."""

    value: Any
    construct: Callable[..., Any] | None = None
    set_state: Callable[[Any, Any], None] | None = None


# ---------------------------------------------------------------------------------------------------------------------
# Always allowed


@cache
def weights_globals() -> dict[str, Allowed]:
    """The names that PyTorch writes for tensors, state dicts and plain containers."""
    named = {
        "collections.OrderedDict": Allowed(OrderedDict, plain.make_ordered_dict, plain.set_attributes),
        "collections.Counter": Allowed(Counter, plain.make_counter),
        "builtins.set": Allowed(set, plain.make_set),
        "builtins.complex": Allowed(complex, plain.make_complex),
        "builtins.bytearray": Allowed(bytearray, plain.make_bytearray),
        "builtins.bytes": Allowed(bytes, plain.make_bytes),
        "_codecs.encode": Allowed(plain.make_bytes, plain.make_bytes),
        "torch.Size": Allowed(Size, Size),
        "torch.device": Allowed(device, device),
        "torch.Tensor": Allowed(Tensor),
        "torch.nn.parameter.Parameter": Allowed(tensors.parameter_class()),
        "torch.serialization._get_layout": Allowed(tensors.get_layout, tensors.get_layout),
        "torch.storage.UntypedStorage": Allowed(UNTYPED),
        "torch.UntypedStorage": Allowed(UNTYPED),
    }
    for name, function in _REBUILDERS.items():
        named[name] = Allowed(function, function)
    for kind in STORAGE_TYPES.values():
        named[kind.name] = Allowed(kind)
        named[kind.name.replace("torch.", "torch.cuda.")] = Allowed(kind)
    for value in vars(dtypes).values():
        if type(value) is dtypes.dtype:
            named[f"torch.{value.name}"] = Allowed(value)
    return named


_REBUILDERS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": tensors.rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": tensors.rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": tensors.rebuild_tensor_v3,
    "torch._utils._rebuild_meta_tensor_no_storage": tensors.rebuild_meta,
    "torch._utils._rebuild_sparse_tensor": tensors.rebuild_sparse,
    "torch._utils._rebuild_parameter": tensors.rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": tensors.rebuild_parameter_with_state,
    "torch._tensor._rebuild_from_type_v2": tensors.rebuild_from_type_v2,
}


@cache
def data_globals() -> dict[str, Allowed]:
    """Other plain data of Python and NumPy that is allowed with `weights_only=False`."""
    from argparse import Namespace

    named = {
        "builtins.frozenset": Allowed(frozenset, plain.make_frozenset),
        "builtins.slice": Allowed(slice, plain.make_slice),
        "builtins.range": Allowed(range, plain.make_range),
        "collections.deque": Allowed(deque, plain.make_deque),
        "collections.defaultdict": Allowed(defaultdict, plain.make_defaultdict),
        "argparse.Namespace": Allowed(Namespace, plain.make_namespace, plain.set_attributes),
        "numpy.ndarray": Allowed(numpy.ndarray, None, plain.set_array_state),
        "numpy.dtype": Allowed(numpy.dtype, plain.make_numpy_dtype, plain.set_dtype_state),
    }
    for kind in (list, dict, tuple, int, float, str, bool):
        named[f"builtins.{kind.__name__}"] = Allowed(kind)
    for core in ("numpy.core", "numpy._core"):
        named[f"{core}.multiarray._reconstruct"] = Allowed(plain.make_numpy_array, plain.make_numpy_array)
        named[f"{core}.multiarray.scalar"] = Allowed(plain.make_numpy_scalar, plain.make_numpy_scalar)
        of_buffer = plain.make_numpy_array_of_buffer
        named[f"{core}.numeric._frombuffer"] = Allowed(of_buffer, of_buffer)
    return named


# ---------------------------------------------------------------------------------------------------------------------
# Names


def qualified(module: str, name: str) -> str:
    """Return the full name of a global for the lookup. Names of Python 2 are translated as in `pickle`."""
    if (module, name) in NAME_MAPPING:
        module, name = NAME_MAPPING[module, name]
    else:
        module = IMPORT_MAPPING.get(module, module)
    return f"{module}.{name}"


@cache
def _names_of_ours() -> dict[int, str]:
    ours = {name: each for name, each in weights_globals().items() if name.startswith("torch.")}
    return {id(each.value): name for name, each in reversed(ours.items())}


def global_name(value: object) -> tuple[str, str] | None:
    """Return the module and name of `value` in files, if it is an object of this package. Otherwise return None."""
    known = _names_of_ours().get(id(value))
    if known is not None:
        module, _, name = known.rpartition(".")
        return module, name
    package, _, rest = str(getattr(value, "__module__", None)).partition(".")
    if package in (OWN, THEIRS) and hasattr(value, "__qualname__"):
        return f"{THEIRS}.{rest}".rstrip("."), value.__qualname__
    return None


# ---------------------------------------------------------------------------------------------------------------------
# Allowed by the user

_user_globals: list[SafeGlobal] = []


def add_safe_globals(safe_globals: list[SafeGlobal]) -> None:
    """Allow `load` to create instances of the given classes and to call the given functions.

    Add only objects that are safe with any arguments, because a file chooses the arguments.

    Args:
        safe_globals: classes and functions. A pair `(object, name)` allows the object under another full name.

    >>> import adjoint as torch
    >>> class Config: pass
    >>> torch.serialization.add_safe_globals([Config])
    >>> torch.serialization.get_safe_globals() == [Config]
    True
    >>> torch.serialization.clear_safe_globals()
    """
    _user_globals.extend(each for each in safe_globals if each not in _user_globals)


def get_safe_globals() -> list[SafeGlobal]:
    """Return the classes and functions that were added."""
    return list(_user_globals)


def clear_safe_globals() -> None:
    """Remove all classes and functions that were added."""
    _user_globals.clear()


class safe_globals:
    """A context in which `load` also allows the given classes and functions; see `add_safe_globals`."""

    def __init__(self, safe_globals: list[SafeGlobal]) -> None:
        self._added = list(safe_globals)
        self._before: list[SafeGlobal] = []

    def __enter__(self) -> None:
        self._before = get_safe_globals()
        add_safe_globals(self._added)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _user_globals[:] = self._before


def user_globals() -> dict[str, Allowed]:
    """Return the objects that the user has added, by every name that a file may use for them."""
    named = {}
    for entry in _user_globals:
        value, name = entry if isinstance(entry, tuple) else (entry, None)
        for each in (name,) if name is not None else _names_of(value):
            named[each] = Allowed(value, value, _set_any_state)
    return named


def _names_of(value: Callable[..., Any]) -> Iterator[str]:
    yield f"{value.__module__}.{value.__qualname__}"
    ours = global_name(value)
    if ours is not None:
        yield ".".join(ours)


def _set_any_state(target: Any, state: Any) -> None:
    """Set the state of an instance as `pickle` does."""
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if attributes:
        plain.set_attributes(target, attributes)
    for name, value in (slots or {}).items():
        setattr(target, name, value)
