"""`torch.distributed.elastic`: names that programs for `torchrun` import.

If a process fails, all processes end, and none is restarted.

`torch.distributed.elastic.multiprocessing.errors` has `record`, which programs put on their main function.
"""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

from ..._runtime.first_use import further_names

_Function = TypeVar("_Function", bound=Callable[..., Any])


def record(fn: _Function, error_handler: Any = None) -> _Function:
    """The function itself: an error is shown with its rank, however it is raised."""
    return fn


multiprocessing = errors = sys.modules[__name__]
further_names(__name__, dict.fromkeys(("multiprocessing", "multiprocessing.errors"), errors))
