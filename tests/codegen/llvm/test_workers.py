"""Worker threads process each row of a compiled kernel once: with many callers, after a fork, at exit, and after interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint as torch
from adjoint.codegen.llvm import launch as launching
from adjoint.codegen.llvm.atomics import atomic_add, atomic_exchange, atomic_load, atomic_replace, atomic_store
from adjoint.codegen.llvm.language import Int, Pointer, T, address, f32, f64, i64, loops
from adjoint.codegen.llvm.launch import launch
from adjoint.codegen.llvm.workers import WORKERS, run_ranges
from adjoint.kernels.runtime.costs import PARALLEL_BYTES


@loops
def count_rows(seen: Pointer[i64], by: Int, start: Int, stop: Int) -> None:
    for i in range(start, stop):
        seen[i] += by


@loops
def count_rows_once(seen: Pointer[i64], start: Int, stop: Int) -> None:
    for i in range(start, stop):
        seen[i] += 1


@loops
def scale(out: Pointer[T], x: Pointer[T], factor: T, start: Int, stop: Int) -> None:
    for i in range(start, stop):
        out[i] = x[i] * factor


@loops
def numbered(out: Pointer[i64]) -> None:
    out[1] = atomic_add(out, 5)
    out[2] = atomic_exchange(out, 9)
    out[3] = atomic_load(out)
    atomic_store(out, 11)
    out[4] = atomic_replace(out, 12, 13)
    out[5] = atomic_replace(out, 11, 14)


MUCH = PARALLEL_BYTES
"""A number of bytes per row that makes each row a separate piece."""


def _set_threads(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    return before


@pytest.fixture(params=[1, 2, 3, 7])
def threads(request):
    before = _set_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_atomic_operations_return_the_old_value():
    found = numpy.array([3, 0, 0, 0, 0, 0], numpy.int64)
    numbered.compiled()(address(found))
    assert found.tolist() == [14, 3, 8, 9, 11, 11]


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 7, 8, 9, 64, 1000, 1001])
def test_every_row_is_computed_once(threads, rows):
    seen = numpy.zeros(rows, numpy.int64)
    for _ in range(50):
        launch(count_rows.compiled(), rows, MUCH, address(seen), 1)
    assert (seen == 50).all()


@pytest.mark.thorough
def test_more_threads_than_there_is_place_for_are_not_used():
    before = _set_threads(100)
    try:
        seen = numpy.zeros(1000, numpy.int64)
        launch(count_rows.compiled(), seen.size, MUCH, address(seen), 1)
        assert (seen == 1).all()
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(("kind", "dtype"), [(f32, "float32"), (f64, "float64")])
def test_numbers_reach_the_kernel_in_their_own_type(threads, kind, dtype):
    x = numpy.arange(999, dtype=dtype)
    out = numpy.empty_like(x)
    launch(scale.compiled(T=kind), x.size, MUCH, address(out), address(x), 1 / 3)
    numpy.testing.assert_array_equal(out, x * x.dtype.type(1 / 3))


def test_many_threads_submit_work_at_once(threads):
    wrong = []
    function = count_rows.compiled()

    def submit():
        seen = numpy.zeros(5000, numpy.int64)
        for turn in range(200):
            launch(function, seen.size, MUCH, address(seen), 1)
            if not (seen == turn + 1).all():
                wrong.append(turn)

    submitters = [threading.Thread(target=submit) for _ in range(4)]
    for thread in submitters:
        thread.start()
    for thread in submitters:
        thread.join()
    assert not wrong


def test_workers_sleep_when_there_is_no_work(threads):
    seen = numpy.zeros(1000, numpy.int64)
    launch(count_rows.compiled(), seen.size, MUCH, address(seen), 1)
    end = time.monotonic() + 20
    while WORKERS.awake and time.monotonic() < end:
        time.sleep(0.01)
    assert WORKERS.awake == 0
    launch(count_rows.compiled(), seen.size, MUCH, address(seen), 1)
    assert (seen == 2).all()


@pytest.mark.thorough
def test_many_small_works_in_a_row_are_each_whole():
    """If a worker still examines a piece of work when the next piece begins, the worker processes no row twice."""
    before = _set_threads(3)
    try:
        functions = count_rows.compiled()
        for rows in (2, 3, 5, 24):
            seen = numpy.zeros(rows, numpy.int64)
            for turn in range(20_000):
                launch(functions, rows, MUCH, address(seen), 1)
                if turn % 1000 == 999:
                    assert (seen == turn + 1).all()
    finally:
        torch.set_num_threads(before)


def test_more_rows_than_pieces_have_numbers_for(threads):
    seen = numpy.zeros(300_000, numpy.int64)
    function = count_rows_once.compiled().code.address
    run_ranges.compiled()(WORKERS.ready(threads), function, address(seen), 0, seen.size, 1, threads)
    assert (seen == 1).all()


@pytest.mark.parametrize("rows", [2, 3, 100, 1001])
@pytest.mark.parametrize("function", [count_rows, count_rows_once])
def test_long_work_is_done_in_parts_that_together_are_all_rows(threads, rows, function, monkeypatch):
    monkeypatch.setattr(launching, "WHOLE_BYTES", 0)
    monkeypatch.setattr(launching, "PART_SECONDS", 1e-5)
    seen = numpy.zeros(rows, numpy.int64)
    arguments = (1,) if function is count_rows else ()
    for _ in range(20):
        launch(function.compiled(), rows, MUCH, address(seen), *arguments)
    assert (seen == 20).all()


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")
def test_an_interrupt_ends_long_work_between_two_parts_and_a_half_changed_tensor_has_a_new_version():
    told = _run(
        _PROGRAM
        + textwrap.dedent(
            """
            import signal
            def strike(*_):
                raise KeyboardInterrupt
            signal.signal(signal.SIGALRM, strike)
            given = 5 * torch.rand(30_000_000)
            wanted = torch.lgamma(given)
            def struck(delay):
                changed = given.clone()
                try:
                    signal.setitimer(signal.ITIMER_REAL, delay)
                    changed.lgamma_()
                except KeyboardInterrupt:
                    pass
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                assert correct()
                count = int((changed == wanted).sum())
                assert torch.equal(changed[count:], given[count:])
                assert changed._version or not count  # an interrupt before the first part may count a change
                return 0 < count < len(given)
            print(any(struck(0.01 + 0.002 * turn) for turn in range(50)))
            """
        )
    )
    assert told == "True\n"


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system does not tell the processors of threads")
def test_workers_may_use_all_processors_after_they_were_woken(threads):
    seen = numpy.zeros(1000, numpy.int64)
    for turn in range(3):
        launch(count_rows.compiled(), seen.size, MUCH, address(seen), 1)
        assert (seen == turn + 1).all()
        end = time.monotonic() + 20
        while WORKERS.awake and time.monotonic() < end:
            time.sleep(0.01)
    allowed = os.sched_getaffinity(0)
    for thread in threading.enumerate():
        if thread.name.startswith("adjoint-kernels"):
            assert os.sched_getaffinity(thread.native_id) == allowed


def _run(program, *, status=0):
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=100, check=False
    )
    assert result.returncode == status, (result.returncode, result.stderr)
    return result.stdout


_PROGRAM = """
import os, sys, threading, time
import adjoint as torch
torch.set_num_threads(3)
x = torch.randn(1000, 1000)
expected = torch.relu(x).sum().item()
def correct():
    return torch.relu(x).sum().item() == expected
"""


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_starts_workers_of_its_own():
    told = _run(
        _PROGRAM
        + textwrap.dedent(
            """
            stop = False
            def busy():
                while not stop:
                    torch.relu(x)
            others = [threading.Thread(target=busy) for _ in range(2)]
            for thread in others: thread.start()
            statuses = []
            for _ in range(20):
                child = os.fork()
                if child == 0:
                    os._exit(0 if correct() and correct() else 7)
                statuses.append(os.waitpid(child, 0)[1])
            stop = True
            for thread in others: thread.join()
            print(statuses, correct())
            """
        )
    )
    assert told == f"{[0] * 20} True\n"


@pytest.mark.thorough
def test_the_interpreter_exits_while_workers_look_for_work():
    for _ in range(5):
        assert _run(_PROGRAM + "print(correct())") == "True\n"


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")
def test_work_is_whole_after_interrupts():
    told = _run(
        _PROGRAM
        + textwrap.dedent(
            """
            import signal
            hits = 0
            def strike(*_):
                raise KeyboardInterrupt
            signal.signal(signal.SIGALRM, strike)
            for turn in range(100):
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.002 + turn * 1e-5)
                    while True:
                        torch.relu(x)
                except KeyboardInterrupt:
                    hits += 1
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                assert correct()
            print(hits)
            """
        )
    )
    assert told == "100\n"


def test_the_time_of_a_look_does_not_contain_waiting_for_the_interpreter_lock():
    from adjoint.codegen.llvm import workers as module

    stop = threading.Event()

    def hold():
        while not stop.is_set():
            sum(range(1000))

    others = [threading.Thread(target=hold) for _ in range(4)]
    alone = module._looks.__wrapped__()
    for other in others:
        other.start()
    try:
        beside = module._looks.__wrapped__()
    finally:
        stop.set()
        for other in others:
            other.join()
    assert alone / 10 < beside < alone * 10
