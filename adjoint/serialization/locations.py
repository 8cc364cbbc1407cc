"""The locations of storages in files: names of devices, and rules that libraries add."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from ..kernels.memory.storages import UntypedStorage

__all__ = ["default_restore_location", "location_tag", "register_package"]

Tagger = Callable[[Any], "str | None"]
Restorer = Callable[[Any, str], Any]


def _tag_of_processor(storage: UntypedStorage) -> str | None:
    return storage.device.type if storage.device.type in ("cpu", "meta") else None


def _on_processor(storage: UntypedStorage, location: str) -> UntypedStorage | None:
    if location == "cpu" or location.startswith("cpu:"):
        return storage
    return storage.without_elements() if location == "meta" else None


_package_registry: list[tuple[int, Tagger, Restorer]] = [(10, _tag_of_processor, _on_processor)]


def register_package(priority: int, tagger: Tagger, deserializer: Restorer) -> None:
    """Register a rule for locations: `save` names the location of a storage, and `load` restores the storage.

    Args:
        priority: a number. Functions with lower numbers are called first. The CPU has 10.
        tagger: a function of a storage. It returns the name of its location, or None if another function should decide.
        deserializer: a function of a storage and the name of its location. It returns the storage to use, or None.
    """
    _package_registry.append((priority, tagger, deserializer))
    _package_registry.sort(key=itemgetter(0))


def location_tag(storage: Any) -> str:
    """Return the name of a storage's location in files.

    Raises:
        RuntimeError: if no function knows the location.
    """
    for _, tagger, _ in _package_registry:
        place = tagger(storage)
        if place:
            return place
    raise RuntimeError("don't know how to determine data location of torch.storage.UntypedStorage")


def default_restore_location(storage: Any, location: str) -> Any:
    """Return the storage to use for a storage that was saved at `location`.

    Raises:
        RuntimeError: if no function knows the location, or if it is a GPU.
    """
    for _, _, restore in _package_registry:
        result = restore(storage, location)
        if result is not None:
            return result
    if location.startswith("cuda"):
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
            "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
            "storages to the CPU."
        )
    raise RuntimeError(
        f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {location})"
    )
