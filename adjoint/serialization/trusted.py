"""An unpickler for files that the caller trusts, with `weights_only=False`: as Python's own it calls whatever a file names.

PyTorch's names mean this package, so that whole modules and optimizers that PyTorch has pickled become ours.
"""

import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from .allowed import weights_globals

__all__ = ["TrustedUnpickler"]

_ELSEWHERE = {"_C._nn": "nn.functional"}
"""Our modules for PyTorch's of other names, without the package."""


class TrustedUnpickler(pickle.Unpickler):
    """Python's unpickler with PyTorch's names and storages.

    Args:
        file: the open file.
        persistent_load: maps the identity of a storage to the storage.
        encoding: of byte strings that Python 2 wrote.
    """

    def __init__(self, file: IO[bytes], persistent_load: Callable[[Any], Any], encoding: str) -> None:
        super().__init__(file, encoding=encoding)
        self._load = persistent_load

    def persistent_load(self, pid: Any) -> Any:
        """The storage with a persistent id, or the class of a module, which old files name with its source."""
        return pid[1] if pid[0] == "module" else self._load(pid)

    def find_class(self, module: str, name: str, /) -> Any:
        """The class or function of a full name; one of PyTorch's is ours."""
        package, _, rest = module.partition(".")
        if package != "torch":
            return super().find_class(module, name)
        known = weights_globals().get(f"{module}.{name}")
        if known is not None:
            return known.value
        parts = ["adjoint", *_ELSEWHERE.get(rest, rest).split(".")] if rest else ["adjoint"]
        while parts:  # a class that we define elsewhere is in a package above
            with suppress(ImportError, AttributeError):
                return super().find_class(".".join(parts), name)
            parts = parts[:-1] if len(parts) > 2 else []
        raise AttributeError(f"the file names {module}.{name}, which adjoint does not have")
