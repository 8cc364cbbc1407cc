"""`torch.distributed.autograd`, which would record remote calls.

Remote calls do not exist here, but libraries check for this module.

"""

from __future__ import annotations

from .._runtime.absent import absent

__all__ = ["backward", "context", "get_gradients", "is_available"]

_WHY = "there are no remote calls; processes send tensors with `torch.distributed.nn`"

backward, context, get_gradients = (
    absent(f"torch.distributed.autograd.{name}", _WHY) for name in ("backward", "context", "get_gradients")
)


def is_available() -> bool:
    """Return False, because there are no remote calls."""
    return False
