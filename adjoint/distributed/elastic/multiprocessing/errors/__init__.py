"""`torch.distributed.elastic.multiprocessing.errors`: `record`, which programs put on their main function."""

from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


def record(fn: _Function, error_handler: Any = None) -> _Function:
    """The function itself: an error is shown with its rank, however it is raised."""
    return fn
