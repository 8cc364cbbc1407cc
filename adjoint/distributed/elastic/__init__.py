"""`torch.distributed.elastic`: names that programs for `torchrun` import.

If a process fails, all processes end, and none is restarted.

`torch.distributed.elastic.multiprocessing.errors` contains `record`, a decorator for the main function of a program.
"""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

from ..._runtime.first_use import further_names

_Function = TypeVar("_Function", bound=Callable[..., Any])


def record(fn: _Function, error_handler: Any = None) -> _Function:
    """Return the function unchanged. Errors are shown with their rank in any case."""
    return fn


multiprocessing = errors = sys.modules[__name__]
further_names(__name__, dict.fromkeys(("multiprocessing", "multiprocessing.errors"), errors))
