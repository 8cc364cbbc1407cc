"""Where the candidate differs from PyTorch on purpose: operator, aspect and the reason.

An entry excuses one aspect of one operator, or the samples of it whose description contains `only`.
"""

from typing import NamedTuple


class Difference(NamedTuple):
    reason: str
    only: str = ""


DIFFERENCES: dict[tuple[str, str], Difference] = {}


def excused(operator: str, aspect: str, failure: str) -> bool:
    """Whether a failure is one of the known differences."""
    known = DIFFERENCES.get((operator, aspect))
    return known is not None and known.only in failure
