"""Finding what repeats: in a list of parts, one after the other of the same structure, such as the rounds of a loop."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

LONGEST = 4096
"""The longest period that is looked for."""

CANDIDATES = 4
LEAST_TIMES = 3
LARGE = 8
"""Parts of at least this many nodes are also folded where there are only two."""


class Repeat(NamedTuple):
    """From `start` on, `times` parts of `period` items each."""

    start: int
    period: int
    times: int


def repeats(signatures: Sequence[Hashable], sizes: Sequence[int], longest: int = LONGEST) -> list[Repeat]:
    """The repetitions in a list, by what its items look like, from left to right.

    Args:
        signatures: what the items look like.
        sizes: the number of nodes in each.
        longest: the longest period to look for.

    >>> repeats("abababc", [1] * 7)
    [Repeat(start=0, period=2, times=3)]
    """
    following = _next_of_the_same(signatures)
    count, start = len(signatures), 0
    found = []
    while start < count:
        best = None
        other = start
        for _ in range(CANDIDATES):
            other = following[other]
            period = other - start
            if other >= count or period > longest:
                break
            matching = other
            while matching < count and signatures[matching] == signatures[matching - period]:
                matching += 1
            times = (matching - start) // period
            if times >= LEAST_TIMES or (times == 2 and sum(sizes[start:other]) >= LARGE):
                best = Repeat(start, period, times)
                break
        if best is None:
            start += 1
        else:
            found.append(best)
            start += best.period * best.times
    return found


def _next_of_the_same(signatures: Sequence[Hashable]) -> list[int]:
    """For each item the place of the next equal one, or the length of the list."""
    last: dict[Hashable, int] = {}
    following = [len(signatures)] * len(signatures)
    for index in range(len(signatures) - 1, -1, -1):
        following[index] = last.get(signatures[index], len(signatures))
        last[signatures[index]] = index
    return following
