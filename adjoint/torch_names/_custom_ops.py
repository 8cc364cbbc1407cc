"""`torch._custom_ops`: old names of `torch.library`."""

from typing import Any

from .library import custom_op, impl, register_fake

__all__ = ["custom_op", "impl", "impl_abstract"]


def impl_abstract(qualname: str, func: Any = None) -> Any:
    """Register the function that computes the shapes of results; see `torch.library.register_fake`."""
    return register_fake(qualname, func)
