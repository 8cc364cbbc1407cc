"""`torch.storage`: the memory behind tensors; names, no logic."""

from .kernels.memory.storages import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
