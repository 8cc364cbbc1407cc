"""A group of processes: its members and their shared objects. `groups` contains the creation and the end of groups."""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from typing import Any


class ProcessGroup:
    """Processes that participate in collectives together.

    `comm` is their MPI communicator, and `ranks` are their global ranks.

    `slots` is the shared memory of the group if all members run on one machine, and False otherwise. `board` shows the
    calls of the members. `queue` contains the running work. `saving` is a group of the same processes for threads that
    write checkpoints.
    """

    def __init__(self, comm: Any, ranks: list[int], name: str, timeout: timedelta, backend: str, desc: str) -> None:
        self.comm, self.ranks = comm, ranks
        self.group_name, self.group_desc = name, desc
        self.timeout, self.backend = timeout, backend
        self.calls = 0
        self.queue: deque[Any] = deque()
        self.board: Any = None
        self.slots: Any = None
        self.saving: ProcessGroup | None = None
        self.local_rank: int = comm.Get_rank()

    def rank(self) -> int:
        """Return the rank of this process in the group."""
        return self.local_rank

    def size(self) -> int:
        """Return the number of processes in the group."""
        return len(self.ranks)

    def name(self) -> str:
        """Return the name of the backend."""
        return self.backend

    def count_call(self) -> int:
        """Return the number of the collective or message that starts now."""
        self.calls += 1
        return self.calls

    def own(self, global_rank: int | None, group_rank: int | None) -> int:
        """Return the rank in this group, given a rank in the group or a global rank.

        Raises:
            ValueError: if neither or both are given, or if the rank is not in the group.
        """
        if global_rank is None and group_rank is None:
            raise ValueError("Must specify global_rank or group_rank")
        if global_rank is not None and group_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        if group_rank is not None:
            if not 0 <= group_rank < self.size():
                raise ValueError(f"Group rank {group_rank} is not part of group {self}")
            return group_rank
        if global_rank not in self.ranks:
            raise ValueError(f"Global rank {global_rank} is not part of group {self}")
        return self.ranks.index(global_rank)

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name!r} of ranks {self.ranks}>"
