"""`torch.storage`: the memory behind tensors; names, no logic."""

from .kernels.memory.storage import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
