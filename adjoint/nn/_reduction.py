"""PyTorch's numbers for the reductions of losses, and the deprecated arguments that select a reduction.

Libraries with their own losses use these functions.
"""

from __future__ import annotations

from .functional.reduction import checked_reduction, legacy_reduction, selected_reduction

__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]

_NUMBERS = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """Return PyTorch's number for the reduction with this name.

    Raises:
        ValueError: if the reduction does not exist.
    """
    return _NUMBERS[checked_reduction(None, None, reduction)]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """Return the reduction that the deprecated arguments select."""
    if emit_warning:
        legacy_reduction(size_average is None or size_average, reduce is None or reduce, "mean")
    return selected_reduction(size_average, reduce)


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """Return the number of the reduction that the deprecated arguments select."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
