"""The global hooks, which apply to all modules.

PyTorch stores the tables of hooks under names such as `torch.nn.modules.module._global_forward_hooks`. Programs read,
change and replace these tables.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

from ..._runtime.sequence import TABLES_SHOWN, watchers

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
"""The tables by their names in PyTorch."""


class HasTables(ModuleType):
    """A Python module with the tables as attributes. After a program has requested a table, calls of modules read it."""


def _shown(name: str) -> property:
    def read(module: HasTables) -> Any:
        watchers[TABLES_SHOWN] = True
        return getattr(TABLES, name)

    def replace(module: HasTables, value: Any) -> None:
        watchers[TABLES_SHOWN] = True
        setattr(TABLES, name, value)

    return property(read, replace)


for _name in vars(TABLES):
    setattr(HasTables, _name, _shown(_name))


def show_tables(module: str) -> None:
    """Give a Python module the tables as attributes. They take precedence over entries of the module's dictionary."""
    sys.modules[module].__class__ = HasTables
    sys.modules[module].__dict__.update(vars(TABLES))
