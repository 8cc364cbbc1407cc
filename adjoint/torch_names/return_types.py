"""`torch.return_types`: the classes of named tuples that functions with several results return.

>>> import adjoint as torch
>>> isinstance(torch.tensor([3.0, 1.0]).sort(), torch.return_types.sort)
True
"""

from __future__ import annotations

from adjoint._runtime.tracebacks import ending_at_caller
from adjoint.dispatch.registry import load_all
from adjoint.dispatch.return_types import BY_NAME


@ending_at_caller
def __getattr__(name: str) -> type:
    if not name.startswith("__") and name not in BY_NAME:
        load_all()  # declaring an operator creates its class
    if name not in BY_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return BY_NAME[name]


def __dir__() -> list[str]:
    load_all()
    return sorted(BY_NAME)
