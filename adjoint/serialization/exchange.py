"""`pickle` in PyTorch's names: what PyTorch's own `pickle.dumps` writes and its `pickle.loads` reads.

Plain pickles name this package, so that they are read wherever it is installed; where `torch` means this package (`adjoint run`),
they name `torch`. This module writes and reads PyTorch's names in any case. It has the functions of `pickle`, and can be given to
libraries in its place. Like `pickle`, it runs what the pickle says: read only what you trust.

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
    """The pickle of an object."""
    file = BytesIO()
    dump(obj, file, protocol)
    return file.getvalue()


def load(file: IO[bytes], **options: Any) -> Any:
    """The object whose pickle is in an open file, from its position on."""
    return Unpickler(file, **options).load()


def loads(data: bytes, **options: Any) -> Any:
    """The object of a pickle."""
    return load(BytesIO(data), **options)
