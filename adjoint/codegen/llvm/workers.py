"""Threads that run compiled kernels. They wait for work outside Python, so it is handed over in less than a microsecond.

The thread that submits work stores a function, its arguments and a range under a new ticket, and processes pieces of
the range itself. A worker that finds a new ticket processes pieces until none are left. The submitting thread waits
until all pieces that other threads have taken are done. It never waits for a worker that sleeps or has not started. On
a busy machine, it may do all the work alone.

Reading data that another processor has written takes 100 to 250 ns per cache line, which is more than all other steps
take. Therefore all data for a worker is on one cache line, and only the threads that take pieces write the counters of pieces.

A worker without work polls for about ten milliseconds. Then it sleeps until a thread that submits work wakes it. It
does not yield its processor while it polls, because the threads of OpenBLAS poll without yielding and would keep the
processor. It sleeps in compiled code, on one of Python's locks. If it slept in Python code, it would have to wait up to
5 milliseconds for the interpreter lock before it could work.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from functools import cache

import numpy

from ..._runtime.platform import ctypes
from ...kernels.runtime.addresses import address
from ...kernels.runtime.costs import PARALLEL_BYTES
from .atomics import atomic_add, atomic_exchange, atomic_load, atomic_replace, atomic_store, call_address, pause
from .element_types import PointerType
from .external import apart, c_function, external
from .language import Int, Pointer, as_pointer, i32, i64, local, loops, maximum, minimum, prefetch, rolled, unrolled
from .values import CompilationError

# The memory that threads share, in words. Each thread writes to separate cache lines.
TICKET, FUNCTION = range(2)
"""The number of the work (0 while it is being written), the machine code, its other arguments, the first row, and
the numbers of rows, of rows taken at a time, and of threads."""
SUBMITTED, LAST_TICKET = 16, 17
"""`SUBMITTED` is 1 while a thread has submitted work, because only one piece of work fits. `LAST_TICKET` is its number."""
DONE = 32
"""The number of pieces that workers have completed since the process began."""
AWAKE = 48
"""The number of workers that are looking for work."""
STOP = 64
"""The value is 1 if workers must leave."""
TAKEN, ASLEEP, LOCK, THREAD, MOVED, PROCESSORS, LINE = 80, 88, 89, 90, 91, 96, 32
"""The data of each thread: the ticket of the part from which pieces were last taken, together with the next piece;
whether the thread sleeps; the lock for which it waits while it sleeps; its number in the operating system; whether it
may use all of its processors again; and these processors."""
MOST_THREADS = 64
WORDS = TAKEN + LINE * MOST_THREADS

MOST_PIECES, OWNER, TICKET_SHIFT = (1 << 16) - 1, 1 << 16, 17
"""The lowest bits of `TAKEN` contain the number of a piece, then whether the thread itself has taken a piece, then the ticket."""

PIECES = 4
"""The number of pieces per thread. It is large enough that a thread that started late or sleeps does not delay the others."""

LOOK_SECONDS = 1e-2
"""The time for which a worker without work polls before it sleeps. Waking it takes about 50 µs."""

_CALIBRATED = 1 << 10
"""The number of polls that are timed."""

_acquire = external("adjoint_acquire_lock", lambda: _of_python("PyThread_acquire_lock"), i32, i64, i32)
_release = external("adjoint_release_lock", lambda: _of_python("PyThread_release_lock"), None, i64)


def _of_python(name: str) -> int:
    """Return the address of an interpreter function that may be called without the interpreter lock."""
    try:
        found = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    except AttributeError as error:
        raise CompilationError(f"this Python does not show its function {name}") from error
    assert found is not None
    return found


CAN_MOVE = hasattr(os, "sched_setaffinity")
"""Whether the operating system allows a program to choose the processors of a thread."""

PROCESSOR_WORDS = 16
"""The number of words in a set of processors."""

_this_processor = c_function("sched_getcpu", i32)
_get_processors = c_function("sched_getaffinity", i32, i32, i64, PointerType(i64))
_set_processors = c_function("sched_setaffinity", i32, i32, i64, PointerType(i64))

yield_processor = c_function("sched_yield", i32) if hasattr(os, "sched_yield") else pause


@loops(plain=True, brief=True)
def wait(looks: Int) -> None:
    """Wait briefly for another thread, and occasionally yield this processor."""
    pause()
    if looks % 256 == 255:
        yield_processor()


@loops(noalias=False, plain=True, brief=True)
def take_piece(taken: Pointer[i64], ticket: Int, first: Int, last: Int, is_own: Int) -> Int:
    """Return a piece that no other thread processes, or `last`. The owner gets the last piece, for its cache."""
    piece = last
    looking = True
    while looking:
        found = atomic_load(taken)
        found_ticket = found >> TICKET_SHIFT
        is_begun = found_ticket == ticket
        following = found & MOST_PIECES if is_begun else first
        owner = found & OWNER if is_begun else i64(0)
        stop = last - 1 if owner != 0 and is_own == 0 else last
        if following >= stop or found_ticket > ticket:  # the ticket of later work means that this work is done
            looking = False
        else:
            owner = i64(OWNER) if is_own != 0 else owner
            if atomic_replace(taken, found, ticket << TICKET_SHIFT | owner | (following + 1)) == found:
                piece = following
                looking = False
    return piece


@loops(noalias=False, plain=True, brief=True)
def take_pieces(
    shared: Pointer[i64], own: Int, ticket: Int, function: Int, arguments: Int, begin: Int, rows: Int,
    piece: Int, threads: Int,
) -> Int:  # fmt: skip
    """Run pieces of the thread's own part, and then of others. The submitting thread need not request the first."""
    pieces = (rows + piece - 1) // piece
    end = begin + rows
    done = i64(0)
    if own == 0:
        call_address(function, arguments, begin, minimum(begin + piece, end))
        done += 1
    for i in range(threads):
        part = (own + i) % threads
        first = i64(1) if part == 0 else part * pieces // threads
        last = (part + 1) * pieces // threads
        is_own = i64(1) if i == 0 else i64(0)
        number = take_piece(shared + (TAKEN + part * LINE), ticket, first, last, is_own)
        while number < last:
            start = begin + number * piece
            call_address(function, arguments, start, minimum(start + piece, end))
            done += 1
            number = take_piece(shared + (TAKEN + part * LINE), ticket, first, last, is_own)
    return done


_take_pieces_apart = apart(take_pieces)


@loops(noalias=False, plain=True, brief=True)
def send_away(shared: Pointer[i64], own: Int) -> None:
    """Move a sleeping worker to another processor, because virtual machines often choose the processor of this thread."""
    processors = shared + (PROCESSORS + own * LINE)
    others = local(i64, PROCESSOR_WORDS)
    here = i64(_this_processor())
    thread = i32(shared[THREAD + own * LINE])
    known = here >= 0 and here < 64 * PROCESSOR_WORDS and thread > 0
    if known and _get_processors(thread, i64(8 * PROCESSOR_WORDS), processors) == i32(0):
        left = i64(0)
        for k in rolled(PROCESSOR_WORDS):
            word = processors[k] & ~(i64(1) << (here % 64)) if k == here // 64 else processors[k]
            others[k] = word
            left = left | word
        if left != 0 and _set_processors(thread, i64(8 * PROCESSOR_WORDS), others) == i32(0):
            shared[MOVED + own * LINE] = 1


@loops(noalias=False, plain=True, brief=True)
def wake(shared: Pointer[i64], threads: Int) -> None:
    """Wake the sleeping workers whose numbers are below this number."""
    for own in range(1, threads):
        if atomic_load(shared + (ASLEEP + own * LINE)) != 0:
            atomic_store(shared + (ASLEEP + own * LINE), 0)
            atomic_add(shared + AWAKE, 1)
            if CAN_MOVE:
                send_away(shared, own)
            _release(shared[LOCK + own * LINE])


_wake_apart = apart(wake)


@loops(noalias=False, plain=True, brief=True)
def sleep(shared: Pointer[i64], own: Int) -> None:
    """Wait until `wake` is called."""
    atomic_store(shared + (ASLEEP + own * LINE), 1)
    atomic_add(shared + AWAKE, -1)
    _acquire(shared[LOCK + own * LINE], i32(1))
    if CAN_MOVE and shared[MOVED + own * LINE] != 0:
        shared[MOVED + own * LINE] = 0
        _set_processors(i32(0), i64(8 * PROCESSOR_WORDS), shared + (PROCESSORS + own * LINE))


@loops(noalias=False, plain=True, brief=True)
def run_ranges(
    shared: Pointer[i64], function: Int, arguments: Int, begin: Int, rows: Int, piece: Int, threads: Int
) -> None:
    """Call `function(arguments, start, stop)` for ranges that together cover this many rows, on this many threads."""
    if atomic_exchange(shared + SUBMITTED, 1) != 0:  # the workers process another thread's work
        call_address(function, arguments, begin, begin + rows)
    else:
        piece = maximum(piece, (rows + MOST_PIECES - 1) // MOST_PIECES)
        pieces = (rows + piece - 1) // piece
        threads = minimum(minimum(threads, MOST_THREADS), pieces)
        ticket = shared[LAST_TICKET] + 1
        shared[LAST_TICKET] = ticket
        before = atomic_load(shared + DONE)
        atomic_store(shared + TICKET, 0)
        work = [function, arguments, begin, rows, piece, threads]
        for K in unrolled(len(work)):
            atomic_store(shared + (FUNCTION + K), work[K])
        atomic_store(shared + TICKET, ticket)
        if atomic_load(shared + AWAKE) < threads - 1:
            _wake_apart(shared, threads)
        by_workers = pieces - _take_pieces_apart(shared, 0, ticket, function, arguments, begin, rows, piece, threads)
        looks = 0
        while atomic_load(shared + DONE) - before != by_workers:
            wait(looks)
            looks += 1
        atomic_store(shared + SUBMITTED, 0)


run_ranges_apart = apart(run_ranges)
"""`run_ranges`, compiled once for all callers."""


@loops(noalias=False, plain=True, brief=True)
def run_rows(
    function: Int, shared: Pointer[i64], arguments: Int, begin: Int, rows: Int, row_bytes: Int, threads: Int
) -> None:
    """Do the same as `run_ranges`, for rows that each touch this many bytes."""
    pieces = maximum(minimum(rows * row_bytes // (PARALLEL_BYTES // 4), PIECES * threads), i64(1))
    run_ranges_apart(shared, function, arguments, begin, rows, (rows + pieces - 1) // pieces, threads)


@loops(noalias=False, plain=True, brief=True)
def look(shared: Pointer[i64], seen: Int, looks: Int) -> Int:
    """Return the ticket of new work, or 0 if this many polls found only the last ticket."""
    found = i64(0)
    left = looks
    while left > 0:
        left -= 1
        ticket = atomic_load(shared + TICKET)
        if ticket != seen and ticket != 0:
            found = ticket
            left = i64(0)
        else:
            pause()
            if left % 1024 == 0 and atomic_load(shared + STOP) != 0:
                left = i64(0)
    return found


_look_apart = apart(look)


@loops(noalias=False, plain=True, brief=True)
def serve(shared: Pointer[i64], own: Int, looks: Int) -> None:
    """Process work whenever it is available, and sleep after this many polls without work. Return when workers must leave."""
    atomic_add(shared + AWAKE, 1)
    seen = i64(0)
    while atomic_load(shared + STOP) == 0:
        ticket = _look_apart(shared, seen, looks)
        words = [atomic_load(shared + (FUNCTION + K)) for K in unrolled(6)]
        function, arguments, begin, rows, piece, threads = words
        if ticket == 0:
            if atomic_load(shared + STOP) == 0:
                sleep(shared, own)
        elif atomic_load(shared + TICKET) == ticket:  # otherwise the words may belong to two different tickets
            seen = ticket
            if own < threads:
                prefetch(as_pointer(arguments, i64))
                done = _take_pieces_apart(shared, own, ticket, function, arguments, begin, rows, piece, threads)
                if done > 0:
                    atomic_add(shared + DONE, done)
    atomic_add(shared + AWAKE, -1)


@cache
def _looks() -> int:
    """Return the number of polls that take `LOOK_SECONDS`."""
    nobody = (ctypes.c_int64 * WORDS)()
    # Keep the interpreter lock, because waiting for it would be timed too.
    prototype = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    function = prototype(look.compiled().code.address)
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        function(ctypes.addressof(nobody), 0, _CALIBRATED)
        times.append(time.perf_counter() - begin)
    return int(_CALIBRATED * LOOK_SECONDS / min(times))


def _held_lock() -> int:
    """Return a new Python lock that is already held, so that a thread that acquires it waits."""
    allocate = ctypes.pythonapi.PyThread_allocate_lock
    allocate.restype = ctypes.c_void_p
    lock: int | None = allocate()
    if lock is None:
        raise MemoryError
    ctypes.pythonapi.PyThread_acquire_lock(ctypes.c_void_p(lock), 1)
    return lock


class Workers:
    """The threads of this process that run compiled kernels."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Drop all threads and use new memory, because a forked child process has none of its parent's threads."""
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self.threads = 1
        """The requested number of threads, including the calling thread."""
        memory = numpy.zeros(WORDS + 8, numpy.int64)
        first = -address(memory) % 64 // 8  # at the start of a cache line
        self._words = memory[first : first + WORDS]
        self.address = address(self._words)

    @property
    def awake(self) -> int:
        """The number of workers that are looking for work."""
        return int(self._words[AWAKE])

    def ready(self, threads: int) -> int:
        """Start this many threads, including the calling thread, and return the address of the shared memory."""
        if self.threads < threads:
            self._start(min(threads, MOST_THREADS) - 1)
            self.threads = threads
        return self.address

    def _start(self, count: int) -> None:
        function = serve.compiled()
        looks = _looks()
        with self._lock:
            while len(self._threads) < count:
                own = len(self._threads) + 1
                self._words[LOCK + own * LINE] = _held_lock()
                thread = threading.Thread(
                    target=function,
                    args=(self.address, own, looks),
                    name=f"adjoint-kernels-{len(self._threads)}",
                    daemon=True,
                )
                try:
                    thread.start()
                except RuntimeError:  # the system allows no more, or the interpreter exits: the caller works alone
                    return
                self._words[THREAD + own * LINE] = thread.native_id or 0
                self._threads.append(thread)

    def leave(self) -> None:
        """Make the workers leave compiled code before the interpreter frees it."""
        self._words[STOP] = 1
        end = time.monotonic() + 1
        while self._words[AWAKE] > 0 and time.monotonic() < end:
            time.sleep(0)


WORKERS = Workers()
"""The threads of this process."""

atexit.register(WORKERS.leave)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WORKERS.forget)
