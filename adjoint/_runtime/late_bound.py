"""Functions of higher layers that lower layers call, as attributes of `LATE`.

Imports point downward. If a lower layer needs a function of a higher layer (for example, to record where a tensor was
created), it calls an attribute of `LATE`. The first use imports the module of the function.
"""

from __future__ import annotations

import sys
from typing import Any

from .first_use import import_late
from .tracebacks import PACKAGE

FUNCTIONS = {
    "argument_error": "dispatch.arguments.argument_error",
    "check_data_set": "tape.interpreters.check_data_set",
    "copy_elements": "kernels.memory.copying.copy_elements",
    "forward_tangent": "transforms.forward_mode.shown_tangent",
    "note_creation": "tape.interpreters.note_creation",
    "run_accumulate_grad": "autograd.hook_calls.run_alone",
    "taken_over": "aten.torch_dispatch.taken_over",
    "text_within_transforms": "transforms.reverse.text",
    "vmap": "transforms.vmap.vmap",
    "wrap_public_functions": "overrides.wrap_public_functions",
}
"""The functions with their modules."""

IDLE = frozenset(("forward_tangent", "text_within_transforms"))
"""The functions that return None, and import nothing, until other code has imported their module."""


class LateBound:
    """The functions by name. After the first use, reading a function costs one attribute access."""

    def __getattr__(self, name: str) -> Any:
        if name not in FUNCTIONS:
            raise AttributeError(f"no function {name!r} is late-bound")
        module, _, function = f"{PACKAGE}.{FUNCTIONS[name]}".rpartition(".")
        if name in IDLE and module not in sys.modules:
            return lambda *args: None
        return self.__dict__.setdefault(name, getattr(import_late(module), function))


LATE = LateBound()
