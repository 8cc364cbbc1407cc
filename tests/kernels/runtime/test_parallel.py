import os
import signal
import threading
import warnings

import numpy
import pytest

from adjoint.kernels.runtime import parallel
from adjoint.kernels.runtime.parallel import get_num_threads, parallel_rows, set_num_threads


@pytest.fixture(params=[1, 2, 4])
def threads(request):
    before = get_num_threads()
    set_num_threads(request.param)
    yield request.param
    set_num_threads(before)


@pytest.mark.parametrize(("rows", "row_bytes"), [(1, 8), (7, 1 << 20), (1000, 1 << 14), (3, 1 << 24), (5000, 1)])
def test_every_row_is_done_once(threads, rows, row_bytes):
    done = numpy.zeros(rows, int)

    def work(start, stop):
        assert 0 <= start < stop <= rows
        done[start:stop] += 1

    parallel_rows(work, rows, row_bytes)
    assert (done == 1).all()


def test_no_rows_is_no_call(threads):
    parallel_rows(lambda start, stop: pytest.fail("called"), 0, 1 << 20)


def test_errors_reach_the_caller(threads):
    def work(start, stop):
        if start <= 500 < stop:
            raise KeyError("row")

    with pytest.raises(KeyError, match="row"):
        parallel_rows(work, 1000, 1 << 14)
    parallel_rows(lambda start, stop: None, 1000, 1 << 14)  # the workers continue to work


def test_nested_calls_and_many_callers(threads):
    totals = []

    def outer(start, stop):
        parts = []
        parallel_rows(lambda a, b: parts.append(b - a), 1000, 1 << 14)
        totals.append((stop - start, sum(parts)))

    callers = [threading.Thread(target=parallel_rows, args=(outer, 16, 1 << 17)) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert sum(rows for rows, _ in totals) == 64
    assert {inner for _, inner in totals} == {1000}


def test_workers_see_the_callers_error_state(threads):
    def divide(start, stop):
        numpy.ones(3) / numpy.zeros(3)

    with numpy.errstate(divide="ignore"):
        parallel_rows(divide, 64, 1 << 17)


def test_number_of_threads_is_checked():
    with pytest.raises(RuntimeError, match="set_num_threads expects a positive integer"):
        set_num_threads(0)
    with pytest.raises(RuntimeError, match="set_num_threads expects an int, but got float"):
        set_num_threads(1.5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.long_cases
def test_a_forked_child_starts_its_own_workers(threads):
    parallel_rows(lambda start, stop: None, 1000, 1 << 14)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of forks in processes with threads
        child = os.fork()
    if child == 0:
        signal.alarm(30)  # stop the child if it waits for the workers of its parent
        done = numpy.zeros(1000, int)

        def work(start, stop):
            done[start:stop] += 1

        parallel_rows(work, 1000, 1 << 14)
        started = threads == 1 or (parallel._workers and all(worker.is_alive() for worker in parallel._workers))
        os._exit(0 if started and (done == 1).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_scratch_begins_at_a_cache_line():
    for shape in [(3,), (1000, 7), (1 << 20,)]:
        for dtype in map(numpy.dtype, ("f4", "f8", "?")):
            memory = parallel.scratch(f"aligned {shape}", shape, dtype)
            assert memory.ctypes.data % parallel.LINE == 0
            assert memory.shape == shape
