"""Running collectives: their handles, waits with a time limit, and the report of missing ranks after the limit.

A collective is a generator. It starts MPI requests and yields them, one step after another, and copies its results at
the end. A large array is moved in parts that fit into the cache. The same code serves blocking and asynchronous calls.
No thread waits inside MPI. A wait repeatedly tests whether the step is complete, so a time limit and Ctrl-C can end it.

After the time limit, a rank asks the other ranks for their positions. Ranks that wait in a call answer with the name of
this call. A rank that computes, has ended, or hangs elsewhere does not answer, and is missing.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import adjoint as torch

from .._runtime.tracebacks import end_at_caller
from . import mpi, records
from .errors import DistBackendError
from .node_memory import call_text
from .state import STATE

if TYPE_CHECKING:
    from .process_group import ProcessGroup

ASK, ANSWER = 1, 2
"""The tags of messages that ask ranks for their positions."""

SPIN = 2e-3
"""The number of seconds after the last progress in which a wait calls MPI without a pause."""

MOVED = 1e-5
"""If a test takes longer than this number of seconds, MPI has moved data."""

LONGEST_NAP = 1e-3

_yield: Callable[[], Any] = getattr(os, "sched_yield", None) or (lambda: time.sleep(0))
_clock = time.perf_counter
WAITING: list[Work] = []
"""The `Work` objects for which this process waits."""


class Several:
    """Several requests that are complete together."""

    def __init__(self, requests: list[Any]) -> None:
        self.requests = requests

    def Test(self) -> bool:
        """Return whether all requests are complete."""
        return bool(mpi.load().Request.Testall(self.requests))


class Receipt:
    """A request to receive a message, with the properties of the message after it has arrived."""

    def __init__(self, request: Any) -> None:
        self.request = request
        self.status = mpi.load().Status()

    def Test(self) -> bool:
        """Return whether the message has arrived."""
        return bool(self.request.Test(self.status))


class Work:
    """A started collective or message. Calls with `async_op=True` return it.

    MPI pairs the collectives of a communicator by their order. The `Work` objects of a group run one by one
    (`in_order`): each starts its first request when the previous object is complete. Messages are paired by senders and
    tags, and do not wait.
    """

    __slots__ = (
        "__weakref__",
        "_error",
        "_futures",
        "_request",
        "_steps",
        "call",
        "done",
        "group",
        "in_order",
        "name",
        "number",
        "posted",
        "result_",
        "sender",
    )

    def __init__(
        self,
        group: ProcessGroup,
        name: str,
        steps: Iterator[Any],
        result: Any = None,
        in_order: bool = True,
        given: Any = None,
        text: bytes | None = None,
    ) -> None:
        self.group, self.name, self.in_order = group, name, in_order
        self.number = group.count_call()
        self.result_ = result
        self.sender = [-1]
        self.done = False
        self._steps = steps
        self._request: Any = None
        self._error: BaseException | None = None
        self._futures: list[Any] | None = None
        board = group.board
        self.posted = board.post(text or call_text(name)) if board is not None and in_order else None
        self.call = records.begin(group, name, self.number, given, result)
        with PROGRESS:
            if in_order:
                group.queue.append(self)
                UNDER_WAY[group] = None
            else:
                MESSAGES.append(self)
        advance_all()

    def advance(self) -> bool:
        """Call MPI for this work and for earlier work. Return whether this work is complete."""
        if not self.done:
            advance_all()
        return self.done

    def take_steps(self) -> bool:
        """Start the next step if the previous step is complete.

        Return whether all steps are complete. An error is stored, and raised in the code that waits.
        """
        if self.done:
            return True
        try:
            request = self._request
            while request is None or request.Test():
                request = self._request = next(self._steps, None)
                if request is None:
                    self.done = True
                    break
        except mpi.load().Exception as error:
            is_truncated = error.Get_error_class() == mpi.load().ERR_TRUNCATE
            said = "a rank has sent more than the tensor that receives it can hold" if is_truncated else error
            self._error = DistBackendError(
                f"{self.name} (call {self.number} of group {self.group.group_name!r}): {said}"
            )
            self.done = True
        except BaseException as error:
            self._error = error
            self.done = True
            if not isinstance(error, Exception):
                raise
        if self.done and self.call is not None:
            self.call.finish()
        return self.done

    def wait(self, timeout: Any = None) -> bool:
        """Wait until the results are complete.

        Args:
            timeout: a `datetime.timedelta`; by default the limit of the group.

        Raises:
            DistBackendError: after the time limit. The error names the call and the missing ranks.
        """
        if not self.advance():
            limit = self.group.timeout if timeout is None or not timeout.total_seconds() else timeout
            if self.call is None:
                self._await(limit.total_seconds())
            else:
                with records.waiting(self.call):
                    self._await(limit.total_seconds())
        if self.posted is not None:
            self._compare()
            self.posted = None
        if self._error is not None:
            raise self._error
        return True

    def _await(self, seconds: float) -> None:
        start = before = moved = _clock()
        nap = 2e-5
        WAITING.append(self)
        try:
            while not self.advance():
                now = _clock()
                if now - before > MOVED:
                    moved, nap = now, 2e-5
                if now - moved < SPIN:
                    _yield()
                else:
                    answer()
                    if self.posted is not None:
                        self._compare()
                    time.sleep(nap)
                    nap = min(2 * nap, LONGEST_NAP)
                if now - start > seconds:
                    raise overdue(self, seconds)
                before = _clock()
        finally:
            WAITING.remove(self)

    def _compare(self) -> None:
        """Raise DistBackendError if a rank on this machine is in another collective, or has another number of elements."""
        assert self.group.board is not None
        assert self.posted is not None
        found = self.group.board.differing(*self.posted)
        if found is not None:
            STATE.broken = True
            own, other = (call.decode(errors="replace").rstrip() for call in (self.posted[1], found[1]))
            raise DistBackendError(
                f"Detected mismatch between collectives on ranks. Rank {STATE.rank} is running collective: {own}, but Rank "
                f"{self.group.ranks[found[0]]} is running collective: {other}."
            )

    def is_completed(self) -> bool:
        """Return whether the results are complete."""
        return self.advance()

    def is_success(self) -> bool:
        """Return whether the work is complete, without an error."""
        return self.done and self._error is None

    def exception(self) -> BaseException | None:
        """Return the error that ended the work, or None."""
        return self._error

    def result(self) -> list[Any]:
        """Return the tensors that contain the results."""
        self.wait()
        return self.result_ if isinstance(self.result_, list) else [self.result_]

    def source_rank(self) -> int:
        """Return the rank that has sent a message."""
        self.wait()
        return self.sender[0]

    def get_future(self) -> Any:
        """Return a `torch.futures.Future` of the tensors. Its `wait` waits for this work."""
        return WorkFuture(self)

    def add_future(self, future: Any) -> None:
        """Complete `future` with the results, now or when they are complete."""
        with PROGRESS:
            self._futures = [*(self._futures or ()), future]
            if self.done and self not in self.group.queue and self not in MESSAGES:
                self.tell()

    def tell(self) -> None:
        """Complete the futures."""
        futures, self._futures = self._futures or [], None
        for future in futures:
            if self._error is None:
                future.set_result(self.result_ if isinstance(self.result_, list) else [self.result_])
            else:
                future.set_exception(self._error)

    def where(self) -> dict[str, Any]:
        """Return the description of this wait for other ranks."""
        return {"call": self.name, "group": self.group.group_name, "number": self.number}


PROGRESS = threading.RLock()
"""The lock of the thread that calls MPI. Callbacks may start other collectives."""

UNDER_WAY: dict[ProcessGroup, None] = {}
"""The groups with incomplete collectives, which are in the queue of each group."""

MESSAGES: list[Work] = []
"""The messages that are not complete."""


def advance_all() -> None:
    """Call MPI for all running work, unless another thread is doing this."""
    if not PROGRESS.acquire(blocking=False):
        return
    try:
        for group in list(UNDER_WAY):
            while group.queue and group.queue[0].take_steps():
                group.queue.popleft().tell()
            if not group.queue:
                UNDER_WAY.pop(group, None)
        for work in list(MESSAGES):
            if work.take_steps() and work in MESSAGES:
                MESSAGES.remove(work)
                work.tell()
    finally:
        PROGRESS.release()


class DrivenFuture(torch.futures.Future[Any]):
    """A future that other code completes. Its `wait` calls MPI."""

    def __init__(self, drive: Callable[[], Any]) -> None:
        super().__init__()
        self._drive = drive

    def wait(self) -> Any:
        """Wait for the result. Return it, or raise the exception."""
        if not super().done():
            self._drive()
        return super().wait()

    def then(self, callback: Callable[[torch.futures.Future[Any]], Any]) -> torch.futures.Future[Any]:
        """Return the future of `callback(self)`, which runs when the result is complete."""
        later = DrivenFuture(self.wait)

        def run(done: torch.futures.Future[Any]) -> None:
            try:
                later.set_result(callback(done))
            except Exception as error:  # noqa: BLE001  (raised by who waits)
                later.set_exception(error)

        self.add_done_callback(run)
        return later


class WorkFuture(DrivenFuture):
    """A future of the tensors that a collective will fill."""

    def __init__(self, work: Work) -> None:
        super().__init__(work.wait)
        self._work = work
        work.add_future(self)

    def done(self) -> bool:
        """Return whether the result is complete."""
        self._work.advance()
        return super().done()


def answer() -> None:
    """Answer the ranks that ask for the position of this rank."""
    control = STATE.control
    MPI = mpi.load()
    status = MPI.Status()
    while control is not None and control.Iprobe(MPI.ANY_SOURCE, ASK, status):
        control.Recv([bytearray(1), MPI.BYTE], status.Get_source(), ASK)
        told = json.dumps(WAITING[-1].where() if WAITING else {}).encode()
        control.Isend([told, MPI.BYTE], status.Get_source(), ANSWER)


def locate(ranks: list[int], seconds: float) -> dict[int, dict[str, Any]]:
    """Ask the ranks for their positions. Return the answers that arrive within a time limit."""
    MPI = mpi.load()
    control = STATE.control
    for rank in ranks:
        control.Isend([b"?", MPI.BYTE], rank, ASK)
    found: dict[int, dict[str, Any]] = {}
    deadline = _clock() + seconds
    status = MPI.Status()
    while len(found) < len(ranks) and _clock() < deadline:
        answer()
        while control.Iprobe(MPI.ANY_SOURCE, ANSWER, status):
            told = bytearray(status.Get_count(MPI.BYTE))
            control.Recv([told, MPI.BYTE], status.Get_source(), ANSWER)
            found[status.Get_source()] = json.loads(bytes(told))
        time.sleep(1e-3)
    return found


def overdue(work: Work, seconds: float) -> DistBackendError:
    """Return the error for an exceeded time limit. It contains the call and the positions of the other ranks."""
    group = work.group
    STATE.broken = True
    others = [rank for rank in group.ranks if rank != STATE.rank]
    found = locate(others, 1.0)
    here = work.where()
    elsewhere = {rank: told for rank, told in found.items() if told and told != here}
    missing = [rank for rank in others if not found.get(rank)]
    said = [
        f"{work.name} (call {work.number} of group {group.group_name!r}) timed out after {seconds:g} s on rank {STATE.rank}"
    ]
    if missing:
        said.append(f"missing ranks, which wait in no call: {', '.join(map(str, missing))}")
    for rank, told in sorted(elsewhere.items()):
        said.append(f"rank {rank} waits in {told['call']} (call {told['number']} of group {told['group']!r})")
    if not missing and not elsewhere:
        said.append("all ranks have arrived in it, and MPI has not completed it")
    return DistBackendError("; ".join(said))


end_at_caller(Work, "wait", "result")
