"""What this process knows of the others while it works with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from subprocess import Popen

    from .groups import ProcessGroup


class _State:
    """`world`: the group of all; `control`: a communicator on which ranks ask where others are; `live`: the groups by name.

    `numbered`: how many groups have been numbered; `broken`: whether a wait has timed out, so that MPI cannot be left in
    order; `manager`: in rank 0, the process that answers those that no launcher of MPI has started; `prepared`: whether this
    is such a process; `said`: whether it has been said what backends mean.
    """

    def __init__(self) -> None:
        self.world: ProcessGroup | None = None
        self.control: Any = None
        self.rank = 0
        self.live: dict[str, ProcessGroup] = {}
        self.numbered = 0
        self.broken = False
        self.manager: Popen[bytes] | None = None
        self.prepared = False
        self.said = False


STATE = _State()
