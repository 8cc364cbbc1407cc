"""`pickle` with PyTorch's names.

It writes the output of PyTorch's `pickle.dumps`, and reads the input of its `pickle.loads`.

Plain pickles contain the name of this package, so they can be read wherever it is installed. If `torch` means this
package (`adjoint run`), they contain the name `torch`. This module writes and reads PyTorch's names in any case. It has
the functions of `pickle`, and libraries can use it in place of `pickle`. Like `pickle`, it runs code from the pickle.
Read only pickles that you trust.

>>> import adjoint as torch
>>> from adjoint.serialization import exchange
>>> b"torch" in exchange.dumps(torch.ones(2)), exchange.loads(exchange.dumps(torch.ones(2)))
(True, tensor([1., 1.]))
"""

from io import BytesIO
from pickle import DEFAULT_PROTOCOL, HIGHEST_PROTOCOL, PickleError, PicklingError, UnpicklingError
from typing import IO, Any

from .pickler import Pickler
from .unpickler import NamedUnpickler as Unpickler

__all__ = [
    "DEFAULT_PROTOCOL", "HIGHEST_PROTOCOL", "PickleError", "Pickler", "PicklingError", "Unpickler", "UnpicklingError", "dump",
    "dumps", "load", "loads",
]  # fmt: skip


def dump(obj: object, file: IO[bytes], protocol: int | None = None) -> None:
    """Write the pickle of an object to an open file."""
    Pickler(file, protocol).dump(obj)


def dumps(obj: object, protocol: int | None = None) -> bytes:
    """Return the pickle of an object."""
    file = BytesIO()
    dump(obj, file, protocol)
    return file.getvalue()


def load(file: IO[bytes], **options: Any) -> Any:
    """Return the object whose pickle starts at the position of an open file."""
    return Unpickler(file, **options).load()


def loads(data: bytes, **options: Any) -> Any:
    """Return the object of a pickle."""
    return load(BytesIO(data), **options)
