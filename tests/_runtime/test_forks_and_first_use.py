"""Late imports, attributes that are computed once, locks across forks, and functions that interrupts cannot split."""

import os
import signal
import sys
import threading
import time
import weakref

import pytest

from adjoint._runtime import forks, uninterrupted
from adjoint._runtime.first_use import computed_once, import_late
from adjoint.dispatch import registry
from adjoint.kernels.runtime import parallel


@pytest.mark.thorough
def test_an_attribute_is_computed_once_and_shared():
    class Thing:
        @computed_once
        def value(self):
            """Its docstring."""
            return []

    thing = Thing()
    assert thing.value is thing.value
    assert Thing.value.__doc__ == "Its docstring."


def test_a_late_import_returns_the_module():
    assert import_late("adjoint.special") is sys.modules["adjoint.special"]
    with pytest.raises(ModuleNotFoundError):
        import_late("adjoint.nowhere")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_waits_for_locks_and_gives_them_back():
    lock = forks.lock_across_forks()
    held, whole = threading.Event(), []

    def work():
        with lock:
            held.set()
            time.sleep(0.1)
            whole.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if lock.acquire(blocking=False) and whole else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert lock.acquire(blocking=False)
    lock.release()
    thread.join()


def test_a_lock_is_forgotten_with_its_owner():
    count = len(forks._locks)
    lock = forks.lock_across_forks()
    gone = weakref.ref(lock)
    assert len(forks._locks) == count + 1
    del lock
    assert gone() is None
    assert len(forks._locks) == count


def test_functions_stay_as_they_are_on_an_interpreter_whose_instructions_are_unknown(monkeypatch):
    monkeypatch.setattr(uninterrupted, "KNOWN", ())

    def function():
        return 1

    code = function.__code__
    assert uninterrupted.uninterrupted(function) is function
    assert function.__code__ is code


def test_instructions_that_do_not_begin_as_functions_do_stay_as_they_are():
    assert uninterrupted.unchecked(b"") is None
    assert uninterrupted.unchecked(bytes(8)) is None or "RESUME" not in uninterrupted.opmap


def test_a_value_put_for_a_block_is_put_back():
    values = [0]

    def put(value):
        before, values[0] = values[0], value
        return before

    with uninterrupted.PutDuring(put, 1), uninterrupted.PutDuring(put, 2):
        assert values == [2]
    assert values == [0]

    @uninterrupted.PutDuring(put, 3)
    def recursive(depth):
        assert values == [3]
        if depth:
            recursive(depth - 1)

    recursive(3)
    assert values == [0]
    with pytest.raises(KeyError), uninterrupted.PutDuring(put, 1):
        raise KeyError
    assert values == [0]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_an_interrupt_cancels_the_tiles_left_and_waits_for_those_begun():
    before = parallel.get_num_threads()
    parallel.set_num_threads(4)
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    inside, done, wrong = [0], [0], []
    lock = threading.Lock()

    def tile(start, stop):
        with lock:
            inside[0] += 1
        time.sleep(0.002)
        with lock:
            inside[0] -= 1
            done[0] += 1

    try:
        for number in range(60):
            inside[0] = done[0] = 0
            interrupted = False
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0002 + number * 0.0003)
                parallel.parallel_rows(tile, 64, parallel.TILE_BYTES)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted = True
                if lock.locked():
                    lock = threading.Lock()  # the interrupt arrived in the tile of the calling thread
                held = inside[0]
                time.sleep(0.004)
                if inside[0] != held:
                    wrong.append("a worker was inside after the interrupt")
            if not interrupted and done[0] != 64:
                wrong.append("rows are missing")
            if number % 10 == 0:
                parallel.set_num_threads(2 + number % 3)
        total = []
        parallel.parallel_rows(lambda start, stop: total.append(stop - start), 64, parallel.TILE_BYTES)
        assert sum(total) == 64
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        parallel.set_num_threads(before)
    assert not wrong


def test_a_job_that_is_over_keeps_nothing_alive():
    class Held:
        pass

    held = Held()
    gone = weakref.ref(held)
    parallel.parallel_rows(lambda start, stop, held=held: None, 64, parallel.TILE_BYTES)
    del held
    for _ in range(100):  # wait for a worker that still has to leave its frame
        if gone() is None:
            break
        time.sleep(0.01)
    assert gone() is None


def test_an_interrupt_of_the_first_comparison_is_not_taken_for_a_missing_method(monkeypatch):
    """If the lookup of a comparison method raises an error, Python treats the class as a class without this method."""

    def interrupted(module):
        raise KeyboardInterrupt

    class Compared:
        __gt__ = registry.Awaited(registry.Tensor, "adjoint.operators.math.comparison", "__gt__")

    monkeypatch.setattr(registry, "import_late", interrupted)
    with pytest.raises(KeyboardInterrupt):
        assert Compared() > 0
    with pytest.raises(KeyboardInterrupt):
        Compared.__gt__
