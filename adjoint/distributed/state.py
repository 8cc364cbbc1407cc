"""What this process knows of the others while it works with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import Future
    from subprocess import Popen

    from .companions import Companions
    from .process_group import ProcessGroup


class _State:
    """`world`: the group of all; `control`: a communicator on which ranks ask where others are; `live`: the groups by name.

    `joined`: how often this process has begun to join; `numbered`: how many groups have been numbered; `broken`: whether a wait
    has timed out, so that MPI cannot be left in order; `manager`: in rank 0, the process that answers those that no launcher of
    MPI has started; `companions`: in such a process, how it ends with the others; `said`: whether it has been said what backends
    mean; `saving`: the checkpoint that is being written.
    """

    def __init__(self) -> None:
        self.world: ProcessGroup | None = None
        self.control: Any = None
        self.rank = 0
        self.live: dict[str, ProcessGroup] = {}
        self.joined = self.numbered = 0
        self.broken = False
        self.manager: Popen[bytes] | None = None
        self.companions: Companions | None = None
        self.said = False
        self.saving: Future[Any] | None = None


STATE = _State()


def wait_for_saving() -> None:
    """Wait until the checkpoint that is being written has been; its future has the error, if there was one."""
    if STATE.saving is not None:
        STATE.saving.exception()
        STATE.saving = None
