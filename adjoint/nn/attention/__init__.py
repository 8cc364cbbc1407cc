"""`torch.nn.attention`: the choice of the implementation that computes attention.

Only one implementation exists here. A program's choice is checked, but has no other effect.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from enum import Enum
from typing import Any

from ..._runtime.first_use import late_names

__all__ = ["WARN_FOR_UNFUSED_KERNELS", "SDPBackend", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False

__getattr__ = late_names(__name__, {"bias": "bias", "flex_attention": "flex_attention"})


class SDPBackend(Enum):
    """The implementations of scaled dot product attention that PyTorch names."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __repr__(self) -> str:
        return f"<SDPBackend.{self.name}: {self.value}>"


_PRIORITY = (
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
    SDPBackend.OVERRIDEABLE,
)
_chosen: ContextVar[tuple[SDPBackend, ...]] = ContextVar("chosen", default=_PRIORITY)


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """Return the implementations that may be used in this context."""
    return list(_chosen.get())


@contextlib.contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[dict[Any, Any]]:
    """A context in which attention may use only the given implementations.

    All implementations compute the same result.

    Args:
        backends: an `SDPBackend`, or a list of them.
        set_priority: whether the list is in order of preference.

    Raises:
        AssertionError: if `backends` has another type.

    >>> import adjoint as torch
    >>> from adjoint.nn.attention import SDPBackend, sdpa_kernel
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     torch.nn.functional.scaled_dot_product_attention(*torch.ones(3, 2, 4)).shape
    torch.Size([2, 4])
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    given: Iterable[Any] = [backends] if isinstance(backends, SDPBackend) else backends
    found = [each for each in given if isinstance(each, SDPBackend)]
    token = _chosen.set(tuple(found if set_priority else (each for each in _PRIORITY if each in found)))
    try:
        yield {}
    finally:
        _chosen.reset(token)
