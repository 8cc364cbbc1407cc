"""Where the candidate differs from PyTorch on purpose: the case and the reason.

A case is named as its test names it: `linalg.det graph` for an aspect of an operator, `saved tensors of torch.det(m)` for what an
expression saves, `graph of c.conj()`, or the name of a program. An entry excuses the differences that contain `only` (all, if it
is empty), and must excuse one: what agrees does not belong here.
"""

from typing import NamedTuple

import torch

from .candidate import candidate


class Difference(NamedTuple):
    """Why a case differs, and which words its description contains."""

    reason: str
    only: str = ""


_CONJUGATE_IS_A_COPY = "a conjugate is computed at once: no bit of the tensor says that it is still to be taken"

KNOWN: dict[str, Difference] = {
    "graph of c.conj()": Difference(_CONJUGATE_IS_A_COPY, "line 16"),
    "graph of c.mH": Difference(_CONJUGATE_IS_A_COPY, "line 16"),
}


def unexcused(case: str, differences: list[str]) -> list[str]:
    """The differences of a case that no entry excuses."""
    known = KNOWN.get(case)
    if known is None or candidate is torch:
        return differences
    remaining = [difference for difference in differences if known.only not in difference]
    if len(remaining) == len(differences):
        remaining.append(
            f"listed as a known difference ({known.reason}), but there is none: take {case!r} off the list"
        )
    return remaining
