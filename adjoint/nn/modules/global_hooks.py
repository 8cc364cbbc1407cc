"""The hooks of all modules.

PyTorch has their tables as `torch.nn.modules.module._global_forward_hooks` and the like, where programs read, change and replace
them.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

from ..._runtime.sequence import watchers

TABLES: Any = SimpleNamespace(
    _global_is_full_backward_hook=None,
    **{
        f"_global_{name}": OrderedDict[int, Callable[..., Any]]()
        for name in (
            "parameter_registration_hooks", "buffer_registration_hooks", "module_registration_hooks", "backward_pre_hooks",
            "backward_hooks", "forward_pre_hooks", "forward_hooks", "forward_hooks_with_kwargs", "forward_hooks_always_called",
        )
    },
)  # fmt: skip
"""The tables by PyTorch's names."""


class HasTables(ModuleType):
    """A Python module with the tables as attributes. Once one is asked for, every call looks at it."""


def _shown(name: str) -> property:
    def read(module: HasTables) -> Any:
        watchers[name] = True
        return getattr(TABLES, name)

    def replace(module: HasTables, value: Any) -> None:
        watchers[name] = True
        setattr(TABLES, name, value)

    return property(read, replace)


for _name in vars(TABLES):
    setattr(HasTables, _name, _shown(_name))


def show_tables(module: str) -> None:
    """Let a Python module have the tables as attributes, which precede what its dictionary has by these names."""
    sys.modules[module].__class__ = HasTables
    sys.modules[module].__dict__.update(vars(TABLES))
