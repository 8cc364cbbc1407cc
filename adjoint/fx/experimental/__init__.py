"""Names of `torch.fx.experimental` that libraries look at: nothing is traced with symbols in place of sizes.

All sizes are numbers here, and conditions on them are known; there is no mode that records operators while functions run.
"""

from __future__ import annotations

import sys
from typing import Any

from ...first_use import further_names

__all__ = ["proxy_tensor", "symbolic_shapes"]


def get_proxy_mode() -> None:
    """None: no operators are recorded as a graph while a function runs."""


class GuardOnDataDependentSymNode(RuntimeError):
    """PyTorch's error for a condition on a symbol that depends on elements; it is never raised here."""


def guard_or_true(condition: Any) -> bool:
    """The condition, which is known."""
    return bool(condition)


def guard_or_false(condition: Any) -> bool:
    """The condition, which is known."""
    return bool(condition)


def guard_size_oblivious(condition: Any) -> bool:
    """The condition, which is known."""
    return bool(condition)


def statically_known_true(condition: Any) -> bool:
    """The condition, which is known."""
    return bool(condition)


def free_symbols(value: Any) -> set[Any]:
    """The symbols in the sizes of `value`: none."""
    return set()


def free_unbacked_symbols(value: Any) -> set[Any]:
    """The symbols in the sizes of `value` that depend on elements: none."""
    return set()


def has_free_symbols(value: Any) -> bool:
    """False: sizes are numbers."""
    return False


proxy_tensor = symbolic_shapes = sys.modules[__name__]
further_names(__name__, dict.fromkeys(__all__, proxy_tensor))
