"""`torch._custom_ops`: old names of `torch.library`."""

from typing import Any

from .library import custom_op, impl, register_fake

__all__ = ["custom_op", "impl", "impl_abstract"]


def impl_abstract(qualname: str, func: Any = None) -> Any:
    """Give the function that makes results of the right shapes; see `torch.library.register_fake`."""
    return register_fake(qualname, func)
