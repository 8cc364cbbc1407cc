"""Storages in plain pickles. As in PyTorch's pickles, their bytes are in the file format before zip archives."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

from ..kernels.memory.storages import UntypedStorage
from .checkpoint import load
from .legacy import write_legacy

__all__ = ["load_from_bytes", "reduce_storage"]


def reduce_storage(storage: UntypedStorage) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the function and the arguments that represent a storage in a pickle."""
    return load_from_bytes, (b"".join(write_legacy(storage, 2)),)


def load_from_bytes(b: bytes) -> Any:
    """Read a storage that `reduce_storage` has written, or an object of PyTorch. Its name is `torch.storage._load_from_bytes`."""
    return load(BytesIO(b), weights_only=False)


UntypedStorage._reduced = reduce_storage
