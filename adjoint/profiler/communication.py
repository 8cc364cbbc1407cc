"""The calls between processes in a profile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CommunicationInfo:
    """A collective or a message in a profile.

    Attributes:
        name, group, ranks: the call, the name of its group, and the ranks in it.
        number: the number of the call in its group.
        nbytes: the number of bytes that the call receives or sends in this rank, whichever is larger.
        label: the purpose of the call, such as "bucket 0", or an empty string.
        complete: whether the call was complete when the profile ended.
        waited: the microseconds of this call in which the program waited, for this call or for another call.
    """

    name: str
    group: str
    ranks: list[int]
    number: int
    nbytes: int
    label: str
    complete: bool
    waited: float

    def arguments(self) -> dict[str, Any]:
        """Return the description for traces."""
        return {
            "Collective name": self.name,
            "Process Group Name": self.group,
            "Process Group Ranks": str(self.ranks),
            "Group size": len(self.ranks),
            "Sequence in group": self.number,
            "Bytes": self.nbytes,
            "Waited (us)": self.waited,
            **({"Purpose": self.label} if self.label else {}),
        }


def length_within(spans: Iterable[tuple[float, float]], start: float, end: float) -> float:
    """Return how much of the time from `start` to `end` the spans cover."""
    covered, reached = 0.0, start
    for low, high in sorted(spans):
        low, high = max(low, reached), min(high, end)
        if high > low:
            covered += high - low
            reached = high
    return covered
