"""The arena of a native run: intermediate values, which share memory if they are not used at the same time."""

from __future__ import annotations

from typing import Any, NamedTuple

from .forks import Step


class Span(NamedTuple):
    """The position of a value in the arena, in bytes, and the first and the last block that use it."""

    offset: int
    size: int
    first: int
    last: int

    def shares(self, other: Span) -> bool:
        """Return whether a block, or the code between two blocks, uses both spans."""
        return not (self.last < other.first or other.last < self.first)


def in_arena(sizes: dict[Any, int], uses: list[set[Any]]) -> tuple[dict[Any, Span], int]:
    """Return the positions of values in the arena, and the size of the arena.

    Two values share memory if their `uses` do not overlap.

    `sizes`: the sizes in bytes. `uses`: the values that each block uses, in order.
    """
    first: dict[Any, int] = {}
    last: dict[Any, int] = {}
    for position, numbers in enumerate(uses):
        for number in numbers & sizes.keys():
            first.setdefault(number, position)
            last[number] = position
    spans: dict[Any, Span] = {}
    for number in sorted(sizes, key=lambda each: first.get(each, 0)):
        span = Span(0, sizes[number], first.get(number, 0), last.get(number, len(uses)))
        for other in sorted(each for each in spans.values() if each.shares(span)):
            if span.offset + span.size <= other.offset:
                break
            span = span._replace(offset=max(span.offset, other.offset + other.size))
        spans[number] = span
    return spans, max((span.offset + span.size for span in spans.values()), default=0)


def in_arena_with_forks(sizes: dict[int, int], uses: list[set[int]], forks: list[Step]) -> tuple[dict[int, Span], int]:
    """Do the same as `in_arena` for blocks of which some run at the same time, in the branches of forks.

    The values of one branch have a part of the arena, which is in use during the whole fork, as other values of its branches are.
    """
    spans: dict[int, Span] = {}
    parts: dict[str, list[int]] = {}
    left, uses_of_forks = dict[Any, int](sizes), [*uses]
    for step in forks:
        blocks, used = [block for branch in step for block in branch], set[Any]()
        for branch in map(set, step):
            inside, elsewhere = set[int](), set[int]()
            for block, each in enumerate(uses):
                (inside if block in branch else elsewhere).update(each)
            own = {number: left.pop(number) for number in sizes if number in inside - elsewhere}
            found, size = in_arena(
                own, [each & own.keys() if block in branch else set() for block, each in enumerate(uses)]
            )
            part = f"part {len(parts)}"
            parts[part], left[part] = [*own], size
            spans |= found
            used |= (inside & elsewhere) | {part}
        for block in blocks:
            uses_of_forks[block] = used
    found, whole = in_arena(left, uses_of_forks)
    for part, numbers in parts.items():
        spans |= {
            number: spans[number]._replace(offset=spans[number].offset + found[part].offset) for number in numbers
        }
    return spans | {number: span for number, span in found.items() if number not in parts}, whole
