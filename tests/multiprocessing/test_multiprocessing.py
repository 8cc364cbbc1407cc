"""Tensors that processes share: in queues and pipes, as parameters, and the effects of processes that die."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy
import pytest

import adjoint as torch
import adjoint.multiprocessing as mp
from adjoint.multiprocessing.arenas import Arena, Reader
from adjoint.multiprocessing.channels import pair

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and descriptors that are sent"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),  # from Python 3.12 on
]

METHODS = ["fork", "spawn", "forkserver"]
DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64,
]  # fmt: skip


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def gone(pids, seconds=120):
    end = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(map(alive, pids))


# ---------------------------------------------------------------------------------------------------------------------
# Shared memory


@pytest.mark.thorough
def test_views_and_aliases_move_with_their_memory():
    x = torch.arange(6.0).view(2, 3)
    row, turned, alias = x[1], x.t(), x.detach()
    assert not x.is_shared()
    assert x.share_memory_() is x
    assert all(each.is_shared() for each in (x, row, turned, alias, x.untyped_storage(), x[0, 1:]))
    x[1, 0] = 7
    assert row[0] == 7 and turned[0, 1] == 7 and alias[1, 0] == 7
    assert row.storage_offset() == 3 and turned.stride() == (1, 3) and row._base is x._base
    address = x.data_ptr()
    assert x.share_memory_().data_ptr() == address


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (5,), (100, 300)])
def test_any_tensor_can_be_shared(dtype, shape):
    x = torch.ones(shape).to(dtype)
    before = x.clone()
    assert x.share_memory_().is_shared() and torch.equal(x, before) and x.dtype is dtype
    assert not x.clone().is_shared()


def test_gradients_flow_through_shared_parameters():
    w = torch.ones(3, requires_grad=True).share_memory_()
    (w * w).sum().backward()
    assert w.is_leaf and w.grad.tolist() == [2.0, 2.0, 2.0] and not w.grad.is_shared()
    y = (w * 2).share_memory_()
    y.sum().backward()
    assert y.is_shared() and w.grad.tolist() == [4.0, 4.0, 4.0]


def test_shared_storages_cannot_be_resized():
    x = torch.ones(3).share_memory_()
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        x.resize_(1000)
    assert x.tolist() == [1, 1, 1]


def test_there_is_no_memory_to_share_on_meta():
    with pytest.raises(RuntimeError, match="_share_fd_: only available on CPU"):
        torch.ones(3, device="meta").share_memory_()


def test_modules_share_their_parameters_and_buffers():
    module = torch.nn.BatchNorm1d(3)
    assert module.share_memory() is module
    assert all(tensor.is_shared() for tensor in module.state_dict().values())
    assert isinstance(module.weight, torch.nn.Parameter)


def test_sharing_strategies():
    assert mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}
    assert mp.get_sharing_strategy() == "file_descriptor"
    with pytest.raises(AssertionError, match="invalid sharing strategy 'x'"):
        mp.set_sharing_strategy("x")


def test_shared_memory_is_given_back():
    count = len(list(Path("/proc/self/fd").iterdir()))
    for size in (10, 100_000):
        for _ in range(50):
            torch.ones(size).share_memory_()
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) <= count + 2


# ---------------------------------------------------------------------------------------------------------------------
# Queues and pipes


def echo(inbox, outbox):
    for tensor in iter(inbox.get, None):
        tensor.add_(1)
        outbox.put(tensor)


@pytest.mark.thorough
@pytest.mark.parametrize("method", METHODS)
def test_queues_share_what_goes_through(method):
    context = mp.get_context(method)
    inbox, outbox = context.SimpleQueue(), context.SimpleQueue()
    process = context.Process(target=echo, args=(inbox, outbox), daemon=True)
    process.start()
    for x in (torch.zeros(3), torch.zeros(100_000), torch.zeros(2, dtype=torch.bfloat16), torch.zeros(0, 3)):
        inbox.put(x)
        y = outbox.get()
        assert torch.equal(x, torch.ones_like(x)) and torch.equal(x, y)
        assert x.is_shared() and y.is_shared()
        y.zero_()
        assert torch.equal(x, torch.zeros_like(x))
    inbox.put(None)
    process.join(30)
    assert process.exitcode == 0


def sent(value):
    queue = mp.SimpleQueue()
    queue.put(value)
    return queue.get()


@pytest.mark.thorough
def test_views_of_one_memory_stay_views_of_one_memory():
    x = torch.arange(6.0).view(2, 3)
    whole, row, turned = sent((x, x[1], x.t()))
    whole[1] = 7
    assert row.tolist() == [7, 7, 7] and turned[0, 1] == 7 and x[1, 2] == 7
    assert row.storage_offset() == 3 and turned.stride() == (1, 3)


@pytest.mark.thorough
def test_memory_that_returns_to_its_process_is_the_same_storage():
    x = torch.arange(6.0).view(2, 3)
    assert all(each.untyped_storage()._cdata == x.untyped_storage()._cdata for each in sent((x, x[1], x.t())))
    assert sent(x.untyped_storage())._cdata == x.untyped_storage()._cdata


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has names of threads")
def test_threads_have_names():
    before = mp._get_thread_name()
    mp._set_thread_name("loader 3")
    assert mp._get_thread_name() == "loader 3"
    mp._set_thread_name(before)


@pytest.mark.thorough
def test_what_goes_with_a_tensor():
    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.grad = torch.ones(2)
    found = sent(parameter)
    assert type(found) is torch.nn.Parameter and found.requires_grad and found.grad is None
    assert sent(torch.ones(2, dtype=torch.complex64).conj()).tolist() == [1, 1]
    assert sent(torch.ones(3, device="meta")).is_meta
    storage = sent(torch.ones(3).untyped_storage())
    assert isinstance(storage, torch.UntypedStorage) and storage.is_shared() and storage.nbytes() == 12


def test_history_stays_in_its_process():
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        sent(torch.ones(2, requires_grad=True) * 2)
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda grad: grad)
    with pytest.warns(UserWarning, match="will not be serialized"):
        sent(x)


def test_pickles_are_copies():
    x = torch.ones(3).share_memory_()
    y = pickle.loads(pickle.dumps(x))
    y[0] = 2
    assert x[0] == 1 and not y.is_shared()


# ---------------------------------------------------------------------------------------------------------------------
# Processes


def write(number, shared):
    shared[number] = number + 1


def fail(number, kind):
    if number != 1:
        time.sleep(3600)
    elif kind == "raise":
        raise ValueError("no good")
    elif kind == "exit":
        sys.exit(3)
    else:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.thorough
def test_spawned_processes_see_shared_memory():
    shared = torch.zeros(2).share_memory_()
    assert mp.spawn(write, (shared,), nprocs=2) is None
    assert shared.tolist() == [1, 2]
    context = mp.spawn(write, (shared.zero_(),), nprocs=2, join=False)
    assert len(context.pids()) == 2
    while not context.join():
        pass
    assert shared.tolist() == [1, 2]


def failed(kind, error):
    with pytest.raises(error) as caught:
        mp.start_processes(fail, (kind,), nprocs=3, start_method="fork")
    assert caught.value.error_index == 1
    assert multiprocessing.active_children() == []
    return caught.value


@pytest.mark.thorough
def test_errors_of_processes_are_raised_and_end_the_others():
    error = failed("raise", mp.ProcessRaisedException)
    assert str(error).startswith("\n\n-- Process 1 terminated with the following error:\nTraceback (most recent")
    assert str(error).endswith("ValueError: no good\n")
    error = failed("exit", mp.ProcessExitedException)
    assert str(error) == "process 1 terminated with exit code 3" and error.exit_code == 3
    error = failed("kill", mp.ProcessExitedException)
    assert str(error) == "process 1 terminated with signal SIGKILL" and error.signal_name == "SIGKILL"
    assert type(pickle.loads(pickle.dumps(error))) is mp.ProcessExitedException


@pytest.mark.thorough
def test_a_process_that_has_failed_before_anybody_waits_is_noticed():
    context = mp.start_processes(fail, ("raise",), nprocs=2, start_method="fork", join=False)
    context.processes[1].join()
    with pytest.raises(mp.ProcessRaisedException, match="no good"):
        context.join()
    assert multiprocessing.active_children() == []


def test_other_start_methods_have_their_function():
    with pytest.warns(FutureWarning, match="This method only supports start_method=spawn"):
        mp.spawn(write, (torch.zeros(1).share_memory_(),), nprocs=1, start_method="fork")


@pytest.mark.thorough
def test_spawned_processes_end_with_a_killed_parent(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent("""
        import sys, time
        import adjoint.multiprocessing as mp

        def sleep(number):
            time.sleep(600)

        if __name__ == "__main__":
            context = mp.start_processes(sleep, nprocs=2, join=False, start_method=sys.argv[1])
            print(*context.pids(), flush=True)
            time.sleep(600)
        """)
    )
    for method in METHODS:
        parent = subprocess.Popen([sys.executable, script, method], stdout=subprocess.PIPE, text=True)
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        time.sleep(0.3)
        parent.kill()
        parent.wait()
        assert gone(pids), method
        parent.stdout.close()


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 16), torch.nn.Linear(16, 1)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def train(number, model, steps):
    torch.manual_seed(number)
    torch.set_num_threads(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        x = torch.randn(32, 4)
        optimizer.zero_grad()
        ((model(x) - x.sum(1, keepdim=True)) ** 2).mean().backward()
        optimizer.step()


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.thorough)])
def test_hogwild(method):
    torch.manual_seed(0)
    model = Small().share_memory()
    x = torch.randn(256, 4)

    def loss():
        with torch.no_grad():
            return float(((model(x) - x.sum(1, keepdim=True)) ** 2).mean())

    before = loss()
    mp.start_processes(train, (model, 200), nprocs=2, start_method=method)
    assert loss() < before / 20


# ---------------------------------------------------------------------------------------------------------------------
# Arenas and channels


def arena():
    reader = Reader()
    return reader, Arena(os.dup(reader.fileno()), reader.number)


def test_places_of_an_arena_are_used_again():
    reader, own = arena()
    lengths = set()
    for number in range(100):
        batch = {"x": torch.full((50, 100), float(number)), "y": torch.arange(number, number + 8)}
        found = pickle.loads(own.message(batch))
        assert torch.equal(found["x"], batch["x"]) and torch.equal(found["y"], batch["y"])
        del found
        for place, times in reader.free():
            own.give_back(place, times)
        lengths.add(os.fstat(reader.fileno()).st_size)
    assert len(lengths) == 1


@pytest.mark.thorough
def test_tensors_in_an_arena_keep_their_place():
    reader, own = arena()
    kept = []
    for number in range(60):
        kept.append(pickle.loads(own.message((torch.full((20, 1000), float(number)), numpy.full(2000, number)))))
        for place, times in reader.free():
            own.give_back(place, times)
        del kept[: -1 - number % 7]
        for tensor, array in kept:
            assert len(set(tensor.flatten().tolist())) == 1 and int(tensor[0, 0]) == array[0] == array[-1]
            assert tensor.is_shared()


def test_memory_in_an_arena_is_sent_once():
    reader, own = arena()
    x = torch.from_numpy(own.empty((3, 4), numpy.dtype("float32")))
    x = pickle.loads(own.message([torch.zeros(2, 3)]))  # the new tensor lies behind the old one
    whole = torch.zeros(40, 50)
    a, b, c = pickle.loads(own.message((whole, whole[3], whole[3])))
    a[3, 0] = 5
    assert b[0] == 5 and c[0] == 5 and x[0].shape == (2, 3)
    del a
    assert reader.free() == []
    del b, c, x
    assert len(reader.free()) == 2


def test_expanded_and_lazy_tensors_in_an_arena():
    _, own = arena()
    expanded, conjugate, part = pickle.loads(
        own.message(
            (torch.ones(1, 3).expand(5, 3), torch.ones(2, dtype=torch.complex64).conj(), torch.arange(1000)[::10])
        )
    )
    assert expanded.shape == (5, 3) and expanded.sum() == 15
    assert conjugate.tolist() == [1, 1] and part.tolist() == list(range(0, 1000, 10))


def test_a_message_that_cannot_be_pickled_takes_no_place():
    _, own = arena()
    with pytest.raises((AttributeError, pickle.PicklingError)):
        own.message((torch.zeros(100), lambda: 0))
    assert own._uses == {} or gc.collect() >= 0
    assert own._uses == {}


def test_an_abandoned_arena_keeps_used_memory():
    reader, own = arena()
    kept, freed = pickle.loads(own.message((torch.ones(10_000), torch.ones(10_000))))
    del own, freed
    reader.leave()
    assert kept.sum() == 10_000


def test_channels_never_wait_to_send():
    channel, end = pair()
    messages = [bytes([number]) * 300_000 for number in range(5)]
    for message in messages:
        channel.post(message)
    assert channel.is_sending
    found = []
    reader = threading.Thread(target=lambda: found.extend(end.receive() for _ in messages))
    reader.start()
    while reader.is_alive():
        channel.flush()
    assert found == messages and not channel.is_sending
    end.send(b"")
    end.send(b"last")
    end.close()
    assert channel.receive() == [b"", b"last"]
    with pytest.raises(EOFError):
        channel.receive()
    channel.post(b"nobody is there")
    channel.close()
