"""The information that this process has about the other processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import Future
    from subprocess import Popen

    from .companions import Companions
    from .process_group import ProcessGroup


class _State:
    """The shared state.

    `world`: the group of all processes. `control`: a communicator for questions. `live`: the groups by name.

    `joined`: the number of times that this process has begun to connect. `numbered`: the number of groups with a number
    as name. `broken`: whether a wait has timed out, so that MPI cannot end normally. `manager`: in rank 0, the process
    manager for processes without an MPI launcher. `companions`: in a process without a launcher, the connection through
    which it ends together with the others. `said`: whether the message about backends has been printed. `saving`: the
    checkpoint that is being written.
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
    """Wait until the current checkpoint has been written. If an error occurred, the future of the checkpoint contains it."""
    if STATE.saving is not None:
        STATE.saving.exception()
        STATE.saving = None
