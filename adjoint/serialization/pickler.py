"""Pickling of objects in PyTorch's form.

Tensors become calls of the functions that rebuild them, and storages become references. The functions have PyTorch's
names.
"""

import io
import pickle
from collections import OrderedDict
from types import FunctionType
from typing import IO, Any

from .._runtime.tracebacks import warn
from ..device import layout
from ..dtypes import dtype
from ..kernels.memory.storages import UntypedStorage
from . import tensors
from .allowed import data_globals, global_name, qualified, user_globals, weights_globals
from .storages import StorageTable, StorageType

__all__ = ["Pickler", "dumps"]


def dumps(obj: object, protocol: int, storages: StorageTable, *, legacy: bool = False) -> bytes:
    """Return the pickle of `obj`. It does not contain the storages. They are added to `storages`.

    Args:
        obj: the object.
        protocol: the protocol of the pickle, from 1 to 5.
        storages: the table that assigns names to the storages in the pickle.
        legacy: whether to refer to storages in the form of the legacy file format.

    Raises:
        pickle.PicklingError, TypeError, AttributeError: if `obj` contains an object that cannot be pickled.
    """
    file = io.BytesIO()
    pickler = _FilePickler(file, protocol, storages, legacy)
    pickler.dump(obj)
    _warn_about_refusals(pickler.named)
    return file.getvalue()


def _warn_about_refusals(named: dict[str, None]) -> None:
    """Warn about the global names that `load` refuses by default."""
    known = weights_globals().keys() | data_globals().keys() | user_globals().keys()
    refused = [name for name in named if name not in known]
    if refused:
        warn(
            f"the file names {', '.join(refused[:4])}{', ...' if len(refused) > 4 else ''}, which `load` refuses unless "
            "it is allowed by `torch.serialization.add_safe_globals`, or the whole file trusted with `weights_only=False`. "
            "Instead of a whole module or optimizer save its `state_dict()`",
        )


_PythonPickler: Any = pickle._Pickler
_whichmodule: Any = vars(pickle)["whichmodule"]


class Pickler(_PythonPickler):  # type: ignore[misc]
    """A pickler with PyTorch's names.

    It is based on Python's pickler in Python, because the pickler in C imports each name and would fail.
    """

    def __init__(self, file: IO[bytes], protocol: int | None = None) -> None:
        super().__init__(file, protocol)
        self._protocol = pickle.DEFAULT_PROTOCOL if protocol is None else protocol
        self.named: dict[str, None] = {}
        """The full names of the classes and functions in the pickle, in order."""

    def reducer_override(self, obj: Any) -> Any:
        """Return the representation of an object, or NotImplemented to use the representation that its class defines."""
        if isinstance(obj, layout):
            return tensors.get_layout, (str(obj),)
        if type(obj) is OrderedDict:  # its own reduction calls `copyreg`, which drops interrupts
            return OrderedDict, (), vars(obj) or None, None, iter(obj.items())
        known = _file_name(obj)
        if known is None or (self._protocol < 4 and "." in known[1]):  # such pickles look methods up in their class
            return NotImplemented
        return known[1]

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write the name of a class or a function."""
        known = _file_name(obj)
        if known is None or (self._protocol < 4 and "." in known[1]):
            super().save_global(obj, name)
            if known is None:
                found = name or getattr(obj, "__qualname__", obj.__name__)
                self.named[qualified(_whichmodule(obj, found), found)] = None
            return
        self.named[".".join(known)] = None
        if self._protocol >= 4:
            for part in known:
                self.save(part)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + "{}\n{}\n".format(*known).encode("utf-8"))
        self.memoize(obj)


class _FilePickler(Pickler):
    """A pickler for files. Storages are records, and the pickle refers to them."""

    def __init__(self, file: IO[bytes], protocol: int, storages: StorageTable, legacy: bool) -> None:
        super().__init__(file, protocol)
        self._storages = storages
        self._legacy = legacy

    def persistent_id(self, obj: Any) -> Any:
        if not isinstance(obj, UntypedStorage):
            return None
        identity = self._storages.persistent_id(obj)
        return (*identity, None) if self._legacy else identity


def _file_name(obj: object) -> tuple[str, str] | None:
    return global_name(obj) if isinstance(obj, (type, FunctionType, dtype, StorageType)) else None
