"""Batches from worker processes: the same batches, seeds and errors.

No process, file or shared memory remains, however a process ends.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy
import pytest

import adjoint as torch
from adjoint.utils import data
from adjoint.utils.data import DataLoader, TensorDataset, get_worker_info

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),  # from Python 3.12 on
]


class Rows(data.Dataset):
    def __init__(self, count=20, shape=(3, 4)):
        self.x = torch.arange(count * 12.0).reshape(count, *shape)

    def __getitem__(self, index):
        return {"x": self.x[index] * 2, "y": (index, f"row {index}"), "z": numpy.full(3, index)}

    def __len__(self):
        return len(self.x)


class Inside(data.Dataset):
    """A dataset whose items are descriptions of the worker."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        info = get_worker_info()
        draws = random.random(), float(numpy.random.rand()), float(torch.rand(()))
        return index, info.id, info.num_workers, info.seed, torch.get_num_threads(), os.getpid(), *draws


class Stream(data.IterableDataset):
    def __init__(self, count, length=None):
        self.count, self.length = count, length

    def __iter__(self):
        number = get_worker_info().id
        return iter(range(100 * number, 100 * number + self.count - 3 * number))

    def __len__(self):
        return self.length


class Failing(data.Dataset):
    def __init__(self, how):
        self.how = how

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return self.how() if index == 3 else torch.tensor(index)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def held():
    """Return the numbers of descriptors, children and mappings of shared memory of this process."""
    gc.collect()
    shared = re.findall("/dev/shm/|/memfd:", Path("/proc/self/maps").read_text())
    return len(names("/proc/self/fd")), len(multiprocessing.active_children()), len(shared)


def holds_no_more_than(before):
    return all(now <= then for now, then in zip(held(), before, strict=True))


def names(folder):
    return {path.name for path in Path(folder).iterdir()}


def same(ours, theirs):
    if isinstance(ours, torch.Tensor):
        return ours.dtype is theirs.dtype and torch.equal(ours, theirs)
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, (list, tuple)):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return ours == theirs


# ---------------------------------------------------------------------------------------------------------------------
# Batches


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("options", "workers"),
    [({}, 2), ({"shuffle": True}, 1), ({"drop_last": True, "batch_size": 3}, 2), ({"batch_size": None}, 1)],
)
def test_workers_fetch_the_same_batches(options, workers):
    options = {"batch_size": 4, **options}
    for dataset in (Rows(), TensorDataset(torch.randn(20, 3), torch.arange(20)), data.Subset(Rows(), [3, 1, 4, 1, 5])):
        alone = DataLoader(dataset, generator=generator(), **options)
        shared = DataLoader(dataset, num_workers=workers, generator=generator(), **options)
        assert len(alone) == len(shared)
        for _ in range(2):
            assert same(list(alone), list(shared))


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.thorough
def test_workers_start_by_any_method(method):
    loader = DataLoader(Rows(), batch_size=4, num_workers=2, multiprocessing_context=method)
    assert same(list(loader), list(DataLoader(Rows(), batch_size=4)))


def test_batches_come_through_shared_memory_and_stay_as_they_are():
    loader = DataLoader(TensorDataset(torch.arange(400.0).view(100, 4), torch.arange(100)), batch_size=2, num_workers=2)
    batches = list(loader)
    assert all(x.is_shared() and y.is_shared() for x, y in batches)
    assert torch.equal(torch.cat([x for x, _ in batches]), torch.arange(400.0).view(100, 4))
    for x, _ in batches:
        x.zero_()
    assert batches[3][1].tolist() == [6, 7] and batches[3][0].sum() == 0


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.bool, torch.complex64, torch.float16])
def test_any_dtype(dtype):
    x = torch.randn(6, 3).to(dtype)
    assert same([batch for (batch,) in DataLoader(TensorDataset(x), 2, num_workers=1)], [x[0:2], x[2:4], x[4:6]])


@pytest.mark.thorough
def test_large_objects_that_are_no_tensors():
    class Texts(Failing):
        def __getitem__(self, index):
            return "x" * 300_000, numpy.full(50_000, index)

    found = list(DataLoader(Texts(None), batch_size=2, num_workers=2, collate_fn=list, prefetch_factor=4))
    assert [int(batch[1][1][7]) for batch in found] == [1, 3, 5, 7] and len(found[0][0][0]) == 300_000


@pytest.mark.thorough
def test_many_indices_for_a_batch():
    dataset = TensorDataset(torch.arange(200_000))
    found = list(DataLoader(dataset, batch_size=100_000, num_workers=2, prefetch_factor=1))
    assert [int(x[-1]) for (x,) in found] == [99_999, 199_999]


@pytest.mark.thorough
def test_seeds_are_those_of_pytorch():
    torch.manual_seed(5)
    found = list(DataLoader(Inside(), batch_size=None, num_workers=2, shuffle=True))
    # PyTorch 2.13 draws these numbers.
    seed = 4095051218741643470
    assert [row[:5] for row in found] == [
        [index, number % 2, 2, seed + number % 2, 1] for number, index in enumerate([4, 6, 1, 7, 5, 3, 2, 0])
    ]
    assert found[0][6:] == [0.9732059885921714, 0.48524966518109036, 0.7106006741523743]
    assert found[7][6:] == [0.2742089506095051, 0.8420305811491761, 0.2882639169692993]
    assert float(torch.rand(1)) == pytest.approx(0.9201, abs=1e-4)


@pytest.mark.thorough
def test_what_a_worker_knows():
    assert get_worker_info() is None
    told = list(DataLoader(Told(), batch_size=None, num_workers=1, worker_init_fn=Told.init))
    assert told[0].startswith("WorkerInfo(id=0, num_workers=1, seed=") and told[0].endswith(
        "worker_method='multiprocessing')"
    )
    assert told[1] == "cannot assign to field 'id'" and told[2] == "init 0" and told[3] == "True"


class Told(data.Dataset):
    said = ""

    @staticmethod
    def init(number):
        Told.said = f"init {number}"

    def __len__(self):
        return 4

    def __getitem__(self, index):
        info = get_worker_info()
        if index == 0:
            return repr(info)
        if index == 1:
            try:
                info.id = 3
            except AttributeError as error:
                return str(error)
        return Told.said if index == 2 else str(info.dataset is self and multiprocessing.current_process().daemon)


@pytest.mark.thorough
def test_persistent_workers_stay():
    loader = DataLoader(Inside(), batch_size=None, num_workers=2, persistent_workers=True)
    first = iter(loader)
    pids = {next(first)[5], next(first)[5]}
    again = iter(loader)  # in the middle of a pass
    assert again is first
    for _ in range(3):
        found = list(loader)
        assert [row[0] for row in found] == list(range(8)) and {row[5] for row in found} == pids
    other = list(DataLoader(Inside(), batch_size=None, num_workers=2))
    assert not pids & {row[5] for row in other}


@pytest.mark.thorough
def test_persistent_workers_begin_streams_again():
    loader = DataLoader(Stream(5), batch_size=2, num_workers=2, persistent_workers=True)
    for _ in range(3):
        assert [batch.tolist() for batch in loader] == [[0, 1], [100, 101], [2, 3], [4]]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"batch_size": 2}, [[0, 1], [100, 101], [2, 3], [102, 103], [4, 5], [104], [6, 7]]),
        ({"batch_size": 2, "drop_last": True}, [[0, 1], [100, 101], [2, 3], [102, 103], [4, 5], [6, 7]]),
        ({"batch_size": None}, [0, 100, 1, 101, 2, 102, 3, 103, 4, 104, 5, 6, 7]),
        ({"batch_size": 2, "prefetch_factor": 1}, [[0, 1], [100, 101], [2, 3], [102, 103], [4, 5], [104], [6, 7]]),
    ],
)
def test_streams_take_turns(options, expected):
    found = DataLoader(Stream(8), num_workers=2, **options)
    assert [batch.tolist() if options["batch_size"] else batch for batch in found] == expected


@pytest.mark.thorough
def test_batches_in_any_order():
    has_one = multiprocessing.get_context("fork").Event()

    def wait(index):
        assert index != 0 or has_one.wait(300)
        return index

    batches = iter(DataLoader(Mapped(wait), num_workers=2, in_order=False))
    first = int(next(batches))
    has_one.set()
    assert first != 0 and sorted([first, *map(int, batches)]) == list(range(8))
    found = [x.tolist() for x in DataLoader(Stream(8), batch_size=2, num_workers=2, in_order=False)]
    assert sorted(found) == [[0, 1], [2, 3], [4, 5], [6, 7], [100, 101], [102, 103], [104]]


class Mapped(data.Dataset):
    def __init__(self, function, count=8):
        self.function, self.count = function, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.function(index)


@pytest.mark.thorough
def test_streams_that_are_longer_than_they_say():
    loader = DataLoader(Stream(8, 3), batch_size=2, num_workers=2)
    assert len(loader) == 2
    with pytest.warns(
        UserWarning, match="this could be caused by not properly configuring the IterableDataset replica"
    ):
        list(loader)


@pytest.mark.thorough
def test_tensors_as_indices():
    class Order(data.Sampler):
        def __iter__(self):
            yield from (torch.tensor([2, 1]), torch.tensor([0]))

        def __len__(self):
            return 2

    x = torch.arange(6.0).view(3, 2)
    loader = DataLoader(TensorDataset(x), sampler=Order(), batch_size=None, num_workers=1)
    assert [batch.tolist() for (batch,) in loader] == [[[4, 5], [2, 3]], [[0, 1]]]


# ---------------------------------------------------------------------------------------------------------------------
# Errors


class Two(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


def raising(error):
    def fail():
        raise error

    return fail


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("error", "kind", "last"),
    [
        (ValueError("no good"), ValueError, "ValueError: no good\n"),
        (KeyError("a"), KeyError, "KeyError: 'a'\n"),
        (Two(1, 2), RuntimeError, "Two: (1, 2)\n"),
    ],
)
def test_errors_show_the_traceback_of_the_worker(error, kind, last):
    iterator = iter(DataLoader(Failing(raising(error)), num_workers=2))
    assert [int(next(iterator)) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(kind) as caught:
        next(iterator)
    text = str(caught.value)
    assert text.startswith(
        f"Caught {type(error).__name__} in DataLoader worker process 1.\nOriginal Traceback (most recent call last):\n"
    )
    assert text.endswith(last) and "raise error" in text
    assert "adjoint" not in text
    assert [int(x) for x in iterator] == [4, 5, 6, 7]


@pytest.mark.thorough
def test_errors_of_the_function_that_begins():
    with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker process 0") as caught:
        next(
            iter(
                DataLoader(Rows(), num_workers=2, worker_init_fn=lambda number: raising(ValueError(f"init {number}"))())
            )
        )
    assert "init 0" in str(caught.value)


@pytest.mark.thorough
def test_objects_that_cannot_be_sent():
    with pytest.raises((AttributeError, RuntimeError), match="in DataLoader worker process 1"):
        list(DataLoader(Failing(lambda: lambda: 0), batch_size=None, num_workers=2))
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        list(DataLoader(Failing(lambda: torch.ones(2, requires_grad=True) * 2), batch_size=None, num_workers=2))

    class Local(Exception):
        pass

    with pytest.raises(RuntimeError, match="Caught Local in DataLoader worker process 1"):
        list(DataLoader(Failing(raising(Local("here"))), num_workers=2))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("how", "cause"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "is killed by signal: Killed"),
        (lambda: os._exit(3), "exited unexpectedly with exit code 3"),
        (lambda: sys.exit(3), "exited unexpectedly with exit code 3"),
    ],
)
def test_a_worker_that_dies_is_noticed(how, cause):
    before = held()
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly") as caught:
        list(DataLoader(Failing(how), num_workers=2))
    assert cause in str(caught.value.__cause__)
    del caught
    assert holds_no_more_than(before)


@pytest.mark.thorough
def test_a_timeout():
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="DataLoader timed out after 1 seconds"):
        list(DataLoader(Failing(lambda: time.sleep(3600)), num_workers=1, timeout=1))
    assert time.monotonic() - start < 5  # a worker that exceeds the time limit gets no extra time for its batch


@pytest.mark.thorough
def test_a_batch_may_be_waited_for_again_after_a_timeout():
    batches = iter(DataLoader(Failing(lambda: time.sleep(2.5) or torch.tensor(3)), num_workers=1, timeout=1))
    assert [next(batches).item() for _ in range(3)] == [0, 1, 2]
    for _ in range(2):
        with pytest.raises(RuntimeError, match="DataLoader timed out after 1 seconds"):
            next(batches)
    assert [batch.item() for batch in batches] == [3, 4, 5, 6, 7]


@pytest.mark.thorough
def test_what_is_refused():
    with pytest.raises(AssertionError, match="prefetch_factor must be greater than 0"):
        iter(DataLoader(Rows(), num_workers=1, prefetch_factor=0))
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        iter(DataLoader(Rows(), num_workers=1)).__reduce_ex__(4)
    many = len(os.sched_getaffinity(0)) + 1
    with pytest.warns(UserWarning, match=f"This DataLoader will create {many} worker processes in total"):
        DataLoader(Rows(), num_workers=many)
    with pytest.warns(UserWarning, match="'pin_memory' argument is set as true but no accelerator is found"):
        list(DataLoader(Rows(), num_workers=1, pin_memory=True))


# ---------------------------------------------------------------------------------------------------------------------
# No remaining processes, files or memory


@pytest.mark.thorough
def test_a_hundred_epochs_leave_nothing_behind():
    loader = DataLoader(TensorDataset(torch.randn(16, 30, 30), torch.arange(16)), batch_size=4, num_workers=2)
    list(loader)
    before = held()
    for _ in range(100):
        assert sum(len(y) for _, y in loader) == 16
    assert holds_no_more_than(before)


@pytest.mark.thorough
def test_an_abandoned_pass_leaves_nothing_behind():
    before = held()
    for keep in (0, 1, 3):
        iterator = iter(DataLoader(Rows(), num_workers=2))
        for _ in range(keep):
            next(iterator)
        pids = [process.pid for process in iterator._workers]
        del iterator
        assert not any(map(alive, pids))
    loader = DataLoader(Rows(), num_workers=2, persistent_workers=True)
    list(loader)
    pids = [process.pid for process in loader._iterator._workers]
    gc.disable()
    try:
        del loader
        assert not any(map(alive, pids))
    finally:
        gc.enable()
    assert holds_no_more_than(before)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


PARENT = """
import os, signal, sys, time
import adjoint as torch
from adjoint.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        time.sleep(float(sys.argv[2]))
        return torch.zeros(1000)

def main():
    iterator = iter(DataLoader(Slow(), num_workers=2, batch_size=1, multiprocessing_context=sys.argv[1]))
    if float(sys.argv[2]) < 1:
        next(iterator)
    print(*iterator._worker_pids_set, flush=True)
    {then}

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background processes ignore it
    main()
"""


def started(tmp_path, then, *arguments):
    """Start a process that loads data, and return it and the process ids of its workers."""
    script = tmp_path / "parent.py"
    script.write_text(textwrap.dedent(PARENT).replace("{then}", then))
    process = subprocess.Popen(
        [sys.executable, script, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert len(pids) == 2, process.stderr.read()
    return process, pids


def ended(process, pids):
    out, error = process.communicate(timeout=300)
    end = time.monotonic() + 120
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(map(alive, pids))
    return out, error


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("seconds", ["0.01", "3600"])
@pytest.mark.thorough
def test_workers_end_with_a_killed_parent(tmp_path, method, seconds):
    shared = names("/dev/shm")
    process, pids = started(tmp_path, "time.sleep(3600)", method, seconds)
    process.kill()
    ended(process, pids)
    assert not [name for name in names("/dev/shm") - shared if "adjoint" in name]


@pytest.mark.thorough
def test_an_interrupt_ends_all(tmp_path):
    process, pids = started(tmp_path, "[None for _ in iterator]", "fork", "0.01")
    for pid in (process.pid, *pids):  # a terminal also signals the whole group
        os.kill(pid, signal.SIGINT)
    _, error = ended(process, pids)
    assert process.returncode == -signal.SIGINT and error.count("Traceback") == 1


@pytest.mark.parametrize("then", ["pass", "sys.exit(3)", "raise ValueError", "os._exit(3)", "os.abort()"])
@pytest.mark.thorough
def test_workers_end_with_their_parent(tmp_path, then):
    process, pids = started(tmp_path, then, "fork", "0.01")
    ended(process, pids)


@pytest.mark.thorough
def test_a_forked_process_leaves_the_workers_alone():
    iterator = iter(DataLoader(Rows(), batch_size=2, num_workers=2))
    next(iterator)
    child = os.fork()
    if child == 0:
        del iterator
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert sum(1 for _ in iterator) == 9


class Large(data.Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        return torch.full((5000,), index)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_keeps_the_batch_that_it_has():
    iterator = iter(DataLoader(Large(), batch_size=2, num_workers=1))
    next(iterator)
    batch = next(iterator)
    expected = batch.clone()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(read, 1)
        os._exit(0 if torch.equal(batch, expected) and batch.add_(1).sum() == expected.sum() + batch.numel() else 1)
    assert torch.equal(batch, expected)
    del batch
    rest = sum(1 for _ in iterator)  # the worker writes to the memory again
    os.write(write, b"!")
    assert os.waitpid(child, 0)[1] == 0
    assert rest == 18
    os.close(read)
    os.close(write)


@pytest.mark.thorough
@pytest.mark.skipif(not torch.backends.llvm.enabled, reason="needs compiled kernels")
def test_later_workers_have_what_earlier_ones_have_compiled():
    from adjoint.codegen.llvm.host import HOST

    def compiled(index):
        (torch.ones(200_000) * 1.7 - 0.3).sinh()
        return dict(torch.backends.llvm.compiled)

    here = dict(torch.backends.llvm.compiled)
    first = next(iter(DataLoader(Mapped(compiled, 1), batch_size=None, num_workers=1)))
    again = next(iter(DataLoader(Mapped(compiled, 1), batch_size=None, num_workers=1)))
    new = first.keys() - here.keys()
    ours = {request.name: code.milliseconds for request, code in HOST.compiled.items()}
    assert new and all(again[name] == ours[name] != first[name] for name in new)


FIRST_USE = """
import adjoint as torch

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return index, torch.kron(torch.ones(2), torch.ones(2)).cumsum(0)

loader = torch.utils.data.DataLoader(Data(), num_workers=1, batch_size=None)
FILE = "<adjoint cumsum>"
from adjoint._runtime.forks import CODE
for number in range(2):
    print(number, [each.tolist() for _, each in loader], any(FILE == name for _, name in CODE))
print(torch.ones(3).cumsum(0).tolist(), any(FILE == name for _, name in CODE))
"""


@pytest.mark.thorough
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
def test_workers_begin_with_code_that_earlier_workers_generated():
    finished = subprocess.run([sys.executable, "-c", FIRST_USE], capture_output=True, text=True, timeout=60)
    sums = "[[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]]"
    assert finished.stdout.splitlines() == [f"0 {sums} False", f"1 {sums} True", "[1.0, 2.0, 3.0] False"], (
        finished.stderr
    )
