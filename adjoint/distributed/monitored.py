"""`monitored_barrier` is a barrier in which rank 0 reports missing ranks."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from .._runtime.tracebacks import end_at_caller
from . import mpi
from .groups import for_members
from .state import STATE

ARRIVED, LET_GO = 32750, 32751
"""The tags of the messages of this barrier."""


@for_members
def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """Wait until all ranks have arrived. After the time limit, rank 0 names one missing rank, or all missing ranks.

    Args:
        group: the participating processes; all if None.
        timeout: the time limit; by default the limit of the group.
        wait_all_ranks: whether to name all missing ranks instead of the first.

    Raises:
        RuntimeError: on all ranks that have arrived, if a rank is missing.
    """
    limit = group.timeout if timeout is None else timeout
    milliseconds = int(limit.total_seconds() * 1000)
    deadline = time.monotonic() + limit.total_seconds()
    MPI, comm, byte = mpi.load(), group.comm, bytearray(1)
    group.count_call()
    if group.rank():
        comm.Isend([b"!", MPI.BYTE], 0, ARRIVED)
        deadline += 1  # so that rank 0, which reports the missing ranks, raises its error first
        while not comm.Iprobe(0, LET_GO):
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"Rank {STATE.rank} successfully reached monitoredBarrier, but received errors while waiting for send/recv "
                    "from rank 0. Please check rank 0 logs for faulty rank."
                )
            time.sleep(1e-4)
        comm.Recv([byte, MPI.BYTE], 0, LET_GO)
        return
    missing = set(range(1, group.size()))
    status = MPI.Status()
    while missing:
        if comm.Iprobe(MPI.ANY_SOURCE, ARRIVED, status):
            comm.Recv([byte, MPI.BYTE], status.Get_source(), ARRIVED)
            missing.discard(status.Get_source())
        elif time.monotonic() > deadline:
            ranks = [group.ranks[rank] for rank in sorted(missing)]
            named = f"Ranks {', '.join(map(str, ranks))}" if wait_all_ranks and len(ranks) > 1 else f"Rank {ranks[0]}"
            raise RuntimeError(f"[Rank {STATE.rank}]: {named} failed to pass monitoredBarrier in {milliseconds} ms")
        else:
            time.sleep(1e-4)
    for rank in range(1, group.size()):
        comm.Isend([b"!", MPI.BYTE], rank, LET_GO).Wait()


end_at_caller(globals(), "monitored_barrier")
