"""Where a storage goes that a file says was on some device: `map_location`."""

from collections.abc import Callable
from typing import Any

from ..device import device
from ..kernels.storage import UntypedStorage

__all__ = ["MapLocation", "restorer"]

MapLocation = Callable[[UntypedStorage, str], UntypedStorage | None] | device | str | dict[str, str] | None
Restore = Callable[[UntypedStorage, str], UntypedStorage]


def restorer(map_location: MapLocation) -> Restore:
    """A function of a storage and the device it was on, giving the storage to use.

    Raises (when called):
        RuntimeError: if it would go anywhere but the CPU.
    """
    if map_location is None:
        return _restore
    if isinstance(map_location, dict):
        mapping = map_location
        return lambda storage, location: _restore(storage, mapping.get(location, location))
    if isinstance(map_location, (str, device)):
        target = str(map_location)
        return lambda storage, location: _restore(storage, target)
    choose = map_location
    return lambda storage, location: _chosen(choose(storage, location), storage, location)


def _chosen(result: Any, storage: UntypedStorage, location: str) -> UntypedStorage:
    if result is None:
        return _restore(storage, location)
    if not isinstance(result, UntypedStorage):
        raise TypeError(f"map_location must return a storage or None, but returned {type(result).__name__}")
    return result


def _restore(storage: UntypedStorage, location: str) -> UntypedStorage:
    if location == "cpu" or location.startswith("cpu:"):
        return storage
    if location.startswith("cuda"):
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
            "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
            "storages to the CPU."
        )
    raise RuntimeError(
        f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {location})"
    )
