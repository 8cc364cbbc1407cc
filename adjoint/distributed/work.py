"""Collectives under way: handles, waiting with a time limit, and who is missing when it has passed.

A collective is a generator: it starts requests of MPI and yields them, one step after the other, and copies its results at the
end. So a large array moves in parts that fit into the cache, and the same text serves blocking and asynchronous calls. Nobody
waits inside MPI: a wait asks again and again whether the step is complete, so that a time limit and Ctrl-C end it.

A rank whose time is over asks the others where they are. Those that wait in a call answer with its name; one that computes,
has ended, or hangs elsewhere does not: it is missing.
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
"""The tags of the messages by which ranks learn where the others are."""

SPIN = 2e-3
"""For how long a wait asks MPI without pause, in seconds, since it last moved data."""

MOVED = 1e-5
"""If asking takes longer than this, in seconds, MPI has moved data."""

LONGEST_NAP = 1e-3

_yield: Callable[[], Any] = getattr(os, "sched_yield", None) or (lambda: time.sleep(0))
_clock = time.perf_counter
WAITING: list[Work] = []
"""The works that this process waits for; the innermost is last."""


class Several:
    """Requests that are complete together."""

    def __init__(self, requests: list[Any]) -> None:
        self.requests = requests

    def Test(self) -> bool:
        """Whether all are complete."""
        return bool(mpi.load().Request.Testall(self.requests))


class Receipt:
    """A request to receive, with what is known of the message once it has come."""

    def __init__(self, request: Any) -> None:
        self.request = request
        self.status = mpi.load().Status()

    def Test(self) -> bool:
        """Whether the message has come."""
        return bool(self.request.Test(self.status))


class Work:
    """A collective, or a message, that has been started: what calls with `async_op=True` return.

    MPI pairs the collectives of a communicator by their order. So those of a group run one after the other (`in_order`): each
    starts its first request when the one before is complete. Messages are paired by senders and tags, and do not wait.
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
        """Let MPI make progress, also with what has been started before; whether this is complete."""
        if not self.done:
            advance_all()
        return self.done

    def take_steps(self) -> bool:
        """Start the next step if the one before is complete; whether all are. An error is kept for who waits."""
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
        """Wait until the results are there.

        Args:
            timeout: a `datetime.timedelta`; by default the group's.

        Raises:
            DistBackendError: if the time is over; the error names the call, and the ranks that are missing.
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
        """Raise DistBackendError if another rank, on the same machine, is in another collective or has other elements."""
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
        """Whether the results are there."""
        return self.advance()

    def is_success(self) -> bool:
        """Whether it is complete, without an error."""
        return self.done and self._error is None

    def exception(self) -> BaseException | None:
        """The error that ended it, or None."""
        return self._error

    def result(self) -> list[Any]:
        """The tensors that hold the results."""
        self.wait()
        return self.result_ if isinstance(self.result_, list) else [self.result_]

    def source_rank(self) -> int:
        """Of a message: the rank that has sent it."""
        self.wait()
        return self.sender[0]

    def get_future(self) -> Any:
        """A `torch.futures.Future` of the tensors; waiting for it waits for this."""
        return WorkFuture(self)

    def add_future(self, future: Any) -> None:
        """Complete `future` with the results, now or when they are there."""
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
        """What the others are told of this wait."""
        return {"call": self.name, "group": self.group.group_name, "number": self.number}


PROGRESS = threading.RLock()
"""Held by the thread that lets MPI make progress: callbacks may start further collectives."""

UNDER_WAY: dict[ProcessGroup, None] = {}
"""The groups whose collectives are not complete; each has them in its queue."""

MESSAGES: list[Work] = []
"""The messages that are not complete."""


def advance_all() -> None:
    """Let everything that is under way make progress, unless another thread does so."""
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
    """A future that others bring forward: waiting for it lets MPI make progress."""

    def __init__(self, drive: Callable[[], Any]) -> None:
        super().__init__()
        self._drive = drive

    def wait(self) -> Any:
        """Wait for the result, and return it, or raise the exception."""
        if not super().done():
            self._drive()
        return super().wait()

    def then(self, callback: Callable[[torch.futures.Future[Any]], Any]) -> torch.futures.Future[Any]:
        """The future of `callback(self)`, which runs when the result is there."""
        later = DrivenFuture(self.wait)

        def run(done: torch.futures.Future[Any]) -> None:
            try:
                later.set_result(callback(done))
            except Exception as error:  # noqa: BLE001  (raised by who waits)
                later.set_exception(error)

        self.add_done_callback(run)
        return later


class WorkFuture(DrivenFuture):
    """The tensors that a collective will have filled."""

    def __init__(self, work: Work) -> None:
        super().__init__(work.wait)
        self._work = work
        work.add_future(self)

    def done(self) -> bool:
        """Whether the result is there."""
        self._work.advance()
        return super().done()


def answer() -> None:
    """Tell the ranks that ask where this one is."""
    control = STATE.control
    MPI = mpi.load()
    status = MPI.Status()
    while control is not None and control.Iprobe(MPI.ANY_SOURCE, ASK, status):
        control.Recv([bytearray(1), MPI.BYTE], status.Get_source(), ASK)
        told = json.dumps(WAITING[-1].where() if WAITING else {}).encode()
        control.Isend([told, MPI.BYTE], status.Get_source(), ANSWER)


def locate(ranks: list[int], seconds: float) -> dict[int, dict[str, Any]]:
    """Ask the ranks where they are; what those told that have answered within a time."""
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
    """The error of a wait whose time is over: the call, and where the other ranks are."""
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
