"""`torch._custom_ops`: old names of `torch.library`."""

from typing import Any

from .library import custom_op, impl, register_fake

__all__ = ["custom_op", "impl", "impl_abstract"]


def impl_abstract(qualname: str, func: Any = None) -> Any:
    """Accept the function that says the shapes of results; it is not called: results are computed."""
    return register_fake(qualname, func)
