"""Threads that run compiled kernels: they wait for work outside of Python, so that it is handed over in less than a microsecond.

The thread that submits work writes down a function, its arguments and a range, opens a gate, and takes pieces of the range
itself. A worker that finds the gate open enters, and takes pieces until none is left. The submitting thread closes the gate
and waits for those inside. So it never waits for a worker that sleeps or has not started: on a busy machine it does the
work alone.

A worker without work looks for some again and again for about ten milliseconds; then it sleeps in Python until it is woken. It
does not offer its processor to other threads meanwhile: OpenBLAS's, which look for work without ever doing so, would keep it.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from queue import SimpleQueue
from typing import Any

from .atomics import atomic_add, atomic_exchange, atomic_load, atomic_store, call_address, pause
from .compilation import CompiledFunction, c_type
from .external import c_function
from .language import Int, Pointer, i32, i64, loops, minimum

# The memory that threads share, in words. What different threads write lies on cache lines of its own.
GATE = 0
"""How many workers are inside; `CLOSED` is added while nobody may enter."""
SUBMITTED = 16
"""1 while a thread has submitted work: there is place for one."""
FUNCTION, ARGUMENTS, ROWS, PIECE, THREADS = range(32, 37)
"""The work: machine code, what it gets beside its range, how many rows there are, how many are taken at a time, and by how many
threads."""
AWAKE = 48
"""How many workers look for work."""
STOP = 64
"""1 when workers are to leave."""
NEXT, LINE = 80, 16
"""For each thread, the first row of its part that nobody has taken; and how far these words are apart."""
MOST_THREADS = 64
WORDS = NEXT + LINE * MOST_THREADS

CLOSED = 1 << 32

LOOK_SECONDS = 1e-2
"""How long a worker without work looks for some before it sleeps. To wake it takes the interpreter lock and some 50 µs: with a
millisecond here, steps of small models took a third longer."""

yield_processor = c_function("sched_yield", i32) if hasattr(os, "sched_yield") else pause


@loops(plain=True)
def wait(looks: Int) -> None:
    """Wait a moment for another thread; now and then let it use this processor."""
    pause()
    if looks % 256 == 255:
        yield_processor()


@loops(noalias=False, plain=True)
def take_pieces(shared: Pointer[i64], own: Int) -> None:
    """Run the function for pieces of one's own part of the range, which is likely to be in one's cache, then of the others'."""
    rows = shared[ROWS]
    piece = shared[PIECE]
    threads = shared[THREADS]
    for i in range(threads):
        part = (own + i) % threads
        end = (part + 1) * rows // threads
        start = atomic_add(shared + (NEXT + part * LINE), piece)
        while start < end:
            stop = minimum(start + piece, end)
            call_address(shared[FUNCTION], shared[ARGUMENTS], start, stop)
            start = atomic_add(shared + (NEXT + part * LINE), piece)


@loops(noalias=False, plain=True)
def run_ranges(shared: Pointer[i64], function: Int, arguments: Int, rows: Int, piece: Int, threads: Int) -> None:
    """Call `function(arguments, start, stop)` for ranges that together cover `range(rows)`, on so many threads."""
    if atomic_exchange(shared + SUBMITTED, 1) != 0:  # another thread's work is being done
        call_address(function, arguments, i64(0), rows)
    else:
        threads = minimum(threads, MOST_THREADS)
        shared[FUNCTION] = function
        shared[ARGUMENTS] = arguments
        shared[ROWS] = rows
        shared[PIECE] = piece
        shared[THREADS] = threads
        for part in range(threads):
            atomic_store(shared + (NEXT + part * LINE), part * rows // threads)
        atomic_add(shared + GATE, -CLOSED)
        take_pieces(shared, 0)
        atomic_add(shared + GATE, CLOSED)
        looks = 0
        while atomic_load(shared + GATE) != CLOSED:
            wait(looks)
            looks += 1
        atomic_store(shared + SUBMITTED, 0)


@loops(noalias=False, plain=True)
def serve(shared: Pointer[i64], own: Int, looks: Int) -> None:
    """Work whenever there is work; return when there was none for so many looks."""
    atomic_add(shared + AWAKE, 1)
    idle = 0
    while idle < looks:
        idle += 1
        if atomic_load(shared + GATE) < CLOSED:
            inside = atomic_add(shared + GATE, 1)
            if inside < CLOSED and inside + 1 < shared[THREADS]:
                take_pieces(shared, own)
                idle = 0
            atomic_add(shared + GATE, -1)
            waited = 0
            while atomic_load(shared + GATE) < CLOSED:  # the others still work on what they took
                wait(waited)
                waited += 1
        pause()
        if idle % 1024 == 0 and atomic_load(shared + STOP) != 0:
            idle = looks
    atomic_add(shared + AWAKE, -1)


def splitter(function: CompiledFunction) -> Any:
    """What calls a kernel for pieces of a range; see `split_text` of `compilation`."""
    assert function.code.also, f"{function} has no range: its last parameters are not start and stop"
    word, place = ctypes.c_int64, ctypes.c_void_p
    types = map(c_type, function.parameters[:-2])
    return ctypes.CFUNCTYPE(None, place, *types, word, word, word, place)(function.code.also)


_TRIED = 1 << 10
"""How many looks are timed."""


def _looks(serving: CompiledFunction) -> int:
    """How many times a worker looks for work before it sleeps.

    The time of a look is the least of several, taken with the interpreter lock held, so that waiting for the lock or for a
    processor is not part of it: workers that look for too short a time sleep within every step of a small model.
    """
    memory = (ctypes.c_int64 * WORDS)()
    memory[GATE] = CLOSED
    look = ctypes.PYFUNCTYPE(None, *map(c_type, serving.parameters))(serving.code.address)
    times = []
    for _ in range(4):
        begin = time.perf_counter()
        look(ctypes.addressof(memory), 1, _TRIED)
        times.append(time.perf_counter() - begin)
    return max(_TRIED, int(_TRIED * LOOK_SECONDS / min(times)))


class Workers:
    """The threads of this process that run compiled kernels."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._calls: SimpleQueue[None] = SimpleQueue()
        self._memory = (ctypes.c_int64 * (WORDS + 8))()
        first = -(-ctypes.addressof(self._memory) // 64) * 64  # the start of a cache line
        self.address = first
        self._words = (ctypes.c_int64 * WORDS).from_address(first)
        self._words[GATE] = CLOSED

    @property
    def awake(self) -> int:
        """How many workers look for work."""
        return int(self._words[AWAKE])

    def run(self, function: CompiledFunction, arguments: tuple[Any, ...], rows: int, piece: int, threads: int) -> None:
        """Call `function(*arguments, start, stop)` for ranges that together cover `range(rows)`, on so many threads."""
        split = function.split
        if split is None:
            split = function.split = splitter(function)
        split(run_ranges.compiled().code.address, *arguments, rows, piece, threads, self.ready(threads))

    def ready(self, threads: int) -> int:
        """Let so many threads look for work, the calling one included; the address of the shared memory."""
        if self._words[AWAKE] < threads - 1:
            self._wake(threads - 1)
        return self.address

    def _wake(self, count: int) -> None:
        """Let `count` threads look for work."""
        if len(self._threads) < count:
            self._start(count)
        for _ in range(count - self._words[AWAKE] - self._calls.qsize()):
            self._calls.put(None)

    def _start(self, count: int) -> None:
        function = serve.compiled()
        with self._lock:
            looks = _looks(function)
            while len(self._threads) < count:
                thread = threading.Thread(
                    target=self._serve,
                    args=(function, len(self._threads) + 1, looks),
                    name=f"adjoint-kernels-{len(self._threads)}",
                    daemon=True,
                )
                try:
                    thread.start()
                except RuntimeError:  # the system allows no more, or the interpreter exits: the caller works alone
                    return
                self._threads.append(thread)

    def _serve(self, function: CompiledFunction, own: int, looks: int) -> None:
        function(self.address, own, looks)
        while not self._words[STOP]:
            self._calls.get()
            function(self.address, own, looks)

    def leave(self) -> None:
        """Let the workers leave compiled code, before the interpreter takes it away."""
        self._words[STOP] = 1
        end = time.monotonic() + 1
        while self._words[AWAKE] > 0 and time.monotonic() < end:
            time.sleep(0)


_workers = Workers()


def workers() -> Workers:
    """The threads of this process."""
    return _workers


def _renew() -> None:
    """A forked child has none of its parent's threads."""
    global _workers
    _workers = Workers()


atexit.register(lambda: _workers.leave())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
