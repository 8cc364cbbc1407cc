"""Compare the output of two programs. The words must be equal, and numbers must agree in the printed digits."""

from __future__ import annotations

import re
from decimal import Decimal

NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")

RELATIVE = Decimal("0.001")
"""The relative tolerance of numbers with a fraction. A difference of one in the last printed digit is also accepted."""

NOTHING = Decimal("0.000001")
"""Smaller numbers with a fraction count as zero, because rounding errors have this size."""


def difference(expected: str, found: str) -> str | None:
    """Return the first line that differs, or None.

    >>> difference("loss 0.1234 of 3", "loss 0.1235 of 3")
    >>> difference("loss 0.1234 of 3", "loss 0.1244 of 3")
    "line 1: 'loss 0.1234 of 3' by PyTorch, 'loss 0.1244 of 3' by adjoint"
    >>> difference("3 steps", "4 steps")
    "line 1: '3 steps' by PyTorch, '4 steps' by adjoint"
    """
    theirs, ours = (text.strip().splitlines() for text in (expected, found))
    for number, (first, second) in enumerate(zip(theirs, ours, strict=False), 1):
        if not same_line(first, second):
            return f"line {number}: {first!r} by PyTorch, {second!r} by adjoint"
    if len(theirs) != len(ours):
        return f"{len(theirs)} lines by PyTorch, {len(ours)} by adjoint"
    return None


def same_line(first: str, second: str) -> bool:
    """Return whether two lines have the same words and, in the printed digits, the same numbers."""
    if first == second:
        return True
    words = [NUMBER.sub("#", line).split() for line in (first, second)]
    numbers = [NUMBER.findall(line) for line in (first, second)]
    return words[0] == words[1] and len(numbers[0]) == len(numbers[1]) and all(map(same_number, *numbers))


def same_number(first: str, second: str) -> bool:
    """Return whether two numbers agree in the printed digits; integers must be equal."""
    if first == second:
        return True
    a, b = Decimal(first), Decimal(second)
    if not any(mark in first + second for mark in ".e"):
        return False
    last = max(Decimal(1).scaleb(int(number.as_tuple().exponent)) for number in (a, b))
    return abs(a - b) <= max(last, NOTHING, RELATIVE * max(abs(a), abs(b)))
