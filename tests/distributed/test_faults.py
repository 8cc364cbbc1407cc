"""If a rank raises an error, exits, hangs, disagrees or is killed, all ranks end in time with a clear error.

Ways to start ranks.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest

from adjoint.distributed.launcher import find_mpiexec, is_open_mpi
from adjoint.distributed.node_memory import Board
from tests.distributed.starting import ROOT, environment, launched_text

pytestmark = pytest.mark.thorough

BEGIN = """
import datetime, os, signal, sys, time
import torch, torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=3))
rank, t = dist.get_rank(), torch.ones(2)
"""

LONG = BEGIN.replace("seconds=3", "seconds=300")

joins_by_itself = pytest.mark.skipif(
    is_open_mpi(find_mpiexec()), reason="Open MPI joins only processes that its launcher has started"
)


def ended(tmp_path, text, ranks=2, begin=BEGIN, **variables):
    """Run a program, and return its standard error, its exit status and its duration."""
    start = time.monotonic()
    finished = launched_text(tmp_path, ranks, begin + text, **variables)
    return finished.stderr, finished.returncode, time.monotonic() - start


def test_a_rank_that_raises_ends_all_with_its_traceback(tmp_path):
    errors, status, seconds = ended(tmp_path, "if rank == 1: raise ValueError('of rank 1')\ndist.all_reduce(t)\n")
    assert status == 1
    assert "[rank1]: ValueError: of rank 1" in errors
    lines = [line for line in errors.splitlines() if line.startswith("[rank")]
    assert lines[0] == "[rank1]: Traceback (most recent call last):"
    assert "program.py" in lines[1]  # the traceback omits the package's frames
    assert "[rank0]" not in errors
    assert seconds < 30


def test_a_rank_that_raises_before_it_has_joined_ends_all(tmp_path):
    text = "import os, time\nif os.environ['RANK'] == '1': raise ValueError('early')\ntime.sleep(100)\n"
    errors, status, seconds = ended(tmp_path, text, begin="")
    assert (status, "[rank1]: ValueError: early" in errors) == (1, True)
    assert seconds < 30


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sys.exit(3)", 3),
        ("os._exit(9)", 9),
        ("os.kill(os.getpid(), 9)", 128 + 9),
    ],
)
def test_a_rank_that_exits_or_is_killed_ends_all(tmp_path, text, expected):
    _, status, seconds = ended(tmp_path, f"if rank == 1: {text}\ndist.all_reduce(t)\n")
    assert status == expected
    assert seconds < 30


@pytest.mark.parametrize("text", ["time.sleep(100)", "sys.exit(0)"])
def test_a_rank_that_does_not_come_is_named(tmp_path, text):
    errors, status, seconds = ended(tmp_path, f"if rank == 1: {text}\ndist.all_reduce(t)\n")
    assert status == 1
    assert "all_reduce (call 1 of group '0') timed out after 3 s" in errors
    assert "missing ranks, which wait in no call: 1" in errors
    assert seconds < 30


@pytest.mark.parametrize("begun", [0, 1])
def test_a_rank_that_does_not_join_is_named(tmp_path, begun):
    again = "import torch, torch.distributed as dist, datetime, os, time\n" + (
        "dist.init_process_group('gloo')\ndist.destroy_process_group()\n" * begun
    )
    text = "if os.environ['RANK'] == '1': time.sleep(100)\ndist.init_process_group(timeout=datetime.timedelta(seconds=3))\n"
    errors, status, seconds = ended(tmp_path, text, begin=again)
    assert status == 1
    assert (
        "DistStoreError: Timed out after 3 seconds waiting for clients. 1/2 clients joined; missing ranks: 1" in errors
    )
    assert seconds < 30


def test_a_rank_that_does_not_make_a_group_is_named(tmp_path):
    errors, status, seconds = ended(tmp_path, "time.sleep(100) if rank == 1 else dist.new_group([0, 1])\n")
    assert status == 1
    assert "new_group of ranks [0, 1] (call 1 of group '0') timed out after 3 s" in errors
    assert "missing ranks, which wait in no call: 1" in errors
    assert seconds < 30


def test_a_monitored_barrier_names_all_missing_ranks(tmp_path):
    text = (
        "if rank: time.sleep(100)\ndist.monitored_barrier(timeout=datetime.timedelta(seconds=1), wait_all_ranks=True)\n"
    )
    errors, status, _ = ended(tmp_path, text, ranks=3)
    assert status == 1
    assert "[Rank 0]: Ranks 1, 2 failed to pass monitoredBarrier in 1000 ms" in errors


def test_ranks_in_different_collectives_are_told_apart(tmp_path):
    errors, status, _ = ended(tmp_path, "dist.barrier() if rank == 1 else dist.recv(t, 1)\n")
    assert status == 1
    assert "timed out after 3 s" in errors
    assert "rank 0 waits in recv" in errors or "rank 1 waits in barrier" in errors


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dist.all_reduce(torch.ones(2 + (rank == 1)))", "TensorShape=[3]"),
        ("dist.all_reduce(t) if rank == 1 else dist.broadcast(t, 0)", "OpType=ALL_REDUCE"),
        ("dist.all_reduce(t.double() if rank == 1 else t)", "TensorDtypes=Double"),
        ("dist.broadcast(t, rank)", "Root=1"),
    ],
)
def test_detail_finds_calls_that_differ(tmp_path, text, said):
    errors, status, seconds = ended(tmp_path, text + "\n", ranks=2, TORCH_DISTRIBUTED_DEBUG="DETAIL")
    assert status == 1
    assert "Detected mismatch between collectives on ranks. Rank 1 is running collective: " in errors
    assert said in errors
    assert seconds < 30


@pytest.mark.parametrize(
    ("text", "own", "other"),
    [
        ("dist.all_reduce(torch.ones(2 + rank))", "all_reduce of 3 elements of Float, SUM", "all_reduce of 2 elements"),
        ("dist.all_reduce(torch.ones(1 << (18 + 3 * rank)))", "all_reduce of 2097152 elements", "of 262144 elements"),
        ("dist.broadcast(torch.ones(1 << (21 - 3 * rank)), 0)", "broadcast of 262144 elements", "of 2097152 elements"),
        ("dist.all_reduce(t) if rank == 0 else dist.barrier()", "barrier", "all_reduce of 2 elements of Float, SUM"),
        (
            "dist.broadcast(t, rank)",
            "broadcast of 2 elements of Float, root 1",
            "broadcast of 2 elements of Float, root 0",
        ),
        ("dist.all_reduce(t.double() if rank else t, async_op=True).wait()", "elements of Double", "elements of Float"),
    ],
)
def test_calls_that_differ_are_found_on_one_machine(tmp_path, text, own, other):
    text = f"try:\n    {text}\nexcept Exception as error:\n    if rank == 0: time.sleep(2)\n    raise\n"
    errors, status, seconds = ended(tmp_path, text, begin=LONG, TORCH_DISTRIBUTED_DEBUG="OFF")
    assert status == 1
    assert "[rank1]: torch.distributed.DistBackendError: Detected mismatch between collectives on ranks. " in errors
    said = re.search(
        r"Rank 1 is running collective: SequenceNumber=1, (.*), but Rank 0 is running collective: (.*)\.", errors
    )
    assert said is not None
    assert own in said[1]
    assert other in said[2]
    assert seconds < 30


def test_a_message_that_is_too_long_is_reported(tmp_path):
    errors, status, _ = ended(tmp_path, "dist.recv(t, 0) if rank else dist.send(torch.ones(5), 1)\ndist.barrier()\n")
    assert status == 1
    assert "recv (call 1 of group '0'): a rank has sent more than the tensor that receives it can hold" in errors


def test_detail_lets_equal_calls_pass(tmp_path):
    text = "dist.all_reduce(t)\ndist.broadcast(t, 1)\ndist.barrier()\ndist.all_gather([torch.empty(2)] * 2, t)\n"
    assert ended(tmp_path, text, ranks=2, TORCH_DISTRIBUTED_DEBUG="DETAIL")[1] == 0


def test_a_checkpoint_stays_readable_when_a_rank_is_killed_while_it_writes(tmp_path):
    file = tmp_path / "model.pt"
    text = (
        f"torch.save(torch.zeros(3), {str(file)!r}) if rank == 0 else None\ndist.barrier()\n"
        "if rank == 1: time.sleep(0.5); os.kill(os.getpid(), 9)\n"
        f"while rank == 0: torch.save(torch.ones(300000), {str(file)!r})\ndist.barrier()\n"
    )
    assert ended(tmp_path, text, ranks=2)[1] != 0
    import adjoint as torch

    assert torch.load(file).sum() in (0, 300000)


def is_ours(path):
    return path.name.startswith(("mpich", "adjoint"))


def is_mapped(path):
    """Return whether a running process has mapped a file. Processes of other tests may have mapped files."""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            if str(path) in maps.read_text():
                return True
        except OSError:  # the process has ended, or belongs to another user
            continue
    return False


@pytest.mark.skipif(not Path("/dev/shm").exists(), reason="no /dev/shm")
def test_nothing_remains_of_ranks_that_are_killed(tmp_path):
    before = set(Path("/dev/shm").iterdir())
    text = "dist.all_reduce(torch.ones(1 << 20))\ndist.barrier()\n"
    ended(tmp_path, text + "os.kill(os.getpid(), 9)\n")
    deadline = time.monotonic() + 10  # other tests may have just created files, or may be about to remove them
    while left := {each for each in set(Path("/dev/shm").iterdir()) - before if is_ours(each) and not is_mapped(each)}:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def test_an_interrupt_ends_all_with_one_message(tmp_path):
    script = tmp_path / "program.py"
    text = "os.write(1, f'begun {os.getpid()}\\n'.encode())\n"  # one write for the whole line, because ranks share the pipe
    script.write_text(BEGIN.replace("seconds=3", "seconds=300") + text + "dist.recv(t, 1 - rank)\n", encoding="utf-8")
    command = [sys.executable, "-m", "adjoint", "launch", "-n", "2", str(script)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment(),
        start_new_session=True,
    )
    numbers = [int(process.stdout.readline().split()[1]) for _ in range(2)]
    os.killpg(process.pid, signal.SIGINT)  # a terminal also signals the whole group
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{number}").exists() for number in numbers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(Path(f"/proc/{number}").exists() for number in numbers)
    assert errors.count("KeyboardInterrupt") == 1
    assert errors.count('File "') == 1  # the traceback contains only the line of the program
    assert len(errors.splitlines()) < 15, errors


PLACE = (
    BEGIN
    + "dist.all_reduce(t)\nline = f\"{rank} {dist.get_world_size()} {os.environ['LOCAL_RANK']} {t.tolist()}\\n\"\n"
    "os.write(1, line.encode())\n"  # one write for the whole line, because ranks share the file
)


def started_by_hand(script, ranks, variables):
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "adjoint", "run", str(script)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment(**variables(rank)),
        )
        for rank in range(ranks)
    ]
    results = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0] * ranks, results
    return sorted(out for out, _ in results)


def free_port():
    with socket.socket() as free:
        free.bind(("", 0))
        return str(free.getsockname()[1])


@joins_by_itself
@pytest.mark.parametrize("how", ["torchrun", "slurm", "file", "store"])
def test_processes_that_no_mpi_has_started_join(tmp_path, how):
    script = tmp_path / "program.py"
    text = PLACE
    port = free_port()
    if how == "file":
        method = f"init_method='file://{tmp_path / 'meeting'}', world_size=2, rank=int(os.environ['WHICH'])"
        text = text.replace("timeout=", f"{method}, timeout=").replace("seconds=3", "seconds=30")
    if how == "store":
        store = f"store=dist.FileStore({str(tmp_path / 'store')!r}), world_size=2, rank=int(os.environ['WHICH'])"
        text = text.replace("timeout=", f"{store}, timeout=")
    script.write_text(text, encoding="utf-8")

    def variables(rank):
        if how == "torchrun":
            return {
                "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port
            }  # fmt: skip
        if how == "slurm":
            return {
                "SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": "2", "SLURM_LOCALID": str(rank),
                "SLURM_STEP_NODELIST": "localhost", "MASTER_PORT": port, "PMIX_NAMESPACE": "slurm.1.0", "PMIX_RANK": str(rank),
            }  # fmt: skip
        return {"WHICH": str(rank)}

    assert started_by_hand(script, 2, variables) == [f"{rank} 2 {rank} [2.0, 2.0]\n" for rank in range(2)]


def ends_of_ranks(tmp_path, text, ranks=3, begin=BEGIN, port=None, stderr=subprocess.PIPE):
    """Start ranks in a shell loop, and return their exit statuses, their standard errors, and the total duration."""
    script = tmp_path / "program.py"
    script.write_text(
        begin.replace("import torch, torch.", "import adjoint as torch, adjoint.") + text, encoding="utf-8"
    )
    port = port or free_port()
    start = time.monotonic()
    processes = [
        subprocess.Popen(
            [sys.executable, str(script)],
            stderr=stderr,
            text=True,
            cwd=ROOT,
            env=environment(
                RANK=str(rank),
                WORLD_SIZE=str(ranks),
                LOCAL_RANK=str(rank),
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=port,
            ),
        )
        for rank in range(ranks)
    ]
    errors = [process.communicate(timeout=60)[1] for process in processes]
    return [process.returncode for process in processes], errors, time.monotonic() - start


@joins_by_itself
@pytest.mark.parametrize("failing", [0, 1])
def test_ranks_of_no_launcher_end_when_one_raises(tmp_path, failing):
    text = f"if rank == {failing}: raise ValueError('its own')\ndist.all_reduce(t)\n"
    statuses, errors, seconds = ends_of_ranks(tmp_path, text, begin=LONG)
    assert statuses == [1, 1, 1]
    assert [f"[rank{failing}]: ValueError: its own" in text for text in errors] == [
        rank == failing for rank in range(3)
    ]
    assert seconds < 30


@joins_by_itself
@pytest.mark.parametrize("failing", [0, 1])
def test_ranks_of_no_launcher_end_when_one_is_killed(tmp_path, failing):
    text = f"if rank == {failing}: os.kill(os.getpid(), 9)\ntime.sleep(100)\n"
    statuses, errors, seconds = ends_of_ranks(tmp_path, text, begin=LONG)
    assert statuses == [-9 if rank == failing else 1 for rank in range(3)]
    assert [f"rank {failing} has died" in text for text in errors] == [rank != failing for rank in range(3)]
    assert seconds < 30


def seconds_until_free(port):
    start = time.monotonic()
    while True:
        try:
            socket.create_server(("", int(port))).close()
            return time.monotonic() - start
        except OSError:
            time.sleep(0.05)


@joins_by_itself
def test_ranks_that_have_failed_are_started_anew_at_the_same_port(tmp_path):
    port = free_port()
    same = {"begin": LONG, "port": port, "stderr": subprocess.DEVNULL}  # the manager process would keep a pipe open
    for how in ["raise ValueError", "os._exit(4)"]:
        text = f"if rank == 1: {how}\ndist.all_reduce(t)\n"
        assert ends_of_ranks(tmp_path, text, **same)[0] != [0, 0, 0]
        assert seconds_until_free(port) < 2
        assert ends_of_ranks(tmp_path, "dist.all_reduce(t)\n", **same)[0] == [0, 0, 0]


@joins_by_itself
@pytest.mark.parametrize("text", ["time.sleep(100)", "sys.exit(3)"])
def test_ranks_of_no_launcher_end_when_one_does_not_come(tmp_path, text):
    statuses, errors, seconds = ends_of_ranks(tmp_path, f"if rank == 1: {text}\ndist.all_reduce(t)\n")
    assert statuses == [1, 1, 1]
    assert any("missing ranks, which wait in no call: 1" in text for text in errors)
    assert seconds < 30


@joins_by_itself
def test_ranks_of_no_launcher_name_those_that_do_not_join(tmp_path):
    begin = "import os, sys\nif os.environ['RANK'] == '1': sys.exit(5)\n" + BEGIN
    statuses, errors, seconds = ends_of_ranks(tmp_path, "", begin=begin)
    assert statuses == [1, 5, 1]
    said = "DistStoreError: Timed out after 3 seconds waiting for clients. 2/3 clients joined; missing ranks: 1"
    assert [said in text for text in errors] == [True, False, True]
    assert seconds < 30


@joins_by_itself
def test_a_rank_that_has_left_may_end_in_any_way(tmp_path):
    text = "dist.all_reduce(t)\ndist.destroy_process_group()\nif rank == 1: sys.exit(7)\ntime.sleep(2)\n"
    assert ends_of_ranks(tmp_path, text)[0] == [0, 7, 0]


PROCESSES = """
import adjoint as torch, adjoint.distributed as dist, adjoint.multiprocessing as mp, sys, time

def run(rank, port):
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    dist.all_reduce(t := torch.ones(1))
    if sys.argv[2] == "raise" and rank:
        raise ValueError("of a process")
    time.sleep(2 * rank)  # one ends before the other
    assert t.item() == 2

if __name__ == "__main__":
    if sys.argv[3] == "spawn":
        mp.spawn(run, (int(sys.argv[1]),), nprocs=2)
    else:
        mp.start_processes(run, (int(sys.argv[1]),), nprocs=2, start_method="fork")
"""


@joins_by_itself
@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.parametrize("how", ["end", "raise"])
def test_processes_of_multiprocessing_are_ranks(tmp_path, method, how):
    script = tmp_path / "program.py"
    script.write_text(PROCESSES, encoding="utf-8")
    command = [sys.executable, str(script), free_port(), how, method]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, env=environment())
    assert finished.returncode == (how == "raise"), finished.stderr
    assert ("ProcessRaisedException" in finished.stderr and "of a process" in finished.stderr) == (how == "raise")


def test_a_batch_script_of_slurm_is_alone(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PLACE, encoding="utf-8")
    variables = {"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_NODELIST": "node[1-4]"}
    assert started_by_hand(script, 1, lambda rank: variables) == ["0 1 0 [1.0, 1.0]\n"]


def test_mpiexec_alone_starts_ranks(tmp_path):
    from adjoint.distributed.launcher import mpiexec_command

    script = tmp_path / "program.py"
    script.write_text(PLACE, encoding="utf-8")
    command = [*mpiexec_command(2, None), sys.executable, "-m", "adjoint", "run", str(script)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, env=environment())
    assert sorted(finished.stdout.splitlines()) == [f"{rank} 2 {rank} [2.0, 2.0]" for rank in range(2)]


def test_one_process_alone_is_a_group_of_one(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PLACE + "dist.destroy_process_group()\n", encoding="utf-8")
    assert started_by_hand(script, 1, lambda rank: {}) == ["0 1 0 [1.0, 1.0]\n"]


def test_the_launcher_says_what_is_wrong():
    run = lambda *arguments: subprocess.run(
        [sys.executable, "-m", "adjoint", "launch", *arguments], capture_output=True, text=True, timeout=60, cwd=ROOT
    )
    missing = run("-n", "1", "nothing.py")
    assert (missing.returncode, "nothing.py" in missing.stderr) == (2, True)
    assert "no such file" in run("--hosts", "nowhere", "x.py").stderr
    assert "-n must be at least 1" in run("-n", "0", "x.py").stderr
    assert "which program?" in run("-n", "1").stderr


def test_calls_that_are_being_noted_are_not_compared():
    memories = [numpy.zeros(16 * 128, numpy.uint8) for _ in range(2)]
    one, other = Board(memories, 0), Board(memories, 1)
    place, call = one.post(b"all_reduce of 5 elements of Double")
    assert one.differing(place, call) is None
    memories[1].data[place] = b"\0" + call[1:40].replace(b"5", b"7").ljust(
        127
    )  # half of the message, without its first byte
    assert one.differing(place, call) is None
    assert other.post(b"all_reduce of 5 elements of Double") == (place, call)
    assert one.differing(place, call) is None
    memories[1].data[place] = call.replace(b"5", b"7")
    rank, theirs = one.differing(place, call)
    assert rank == 1 and theirs == call.replace(b"5", b"7")
