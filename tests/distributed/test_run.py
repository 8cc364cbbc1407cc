"""`python -m torch.distributed.run` and `torch.distributed.launch` start a program in several processes."""

import subprocess
import sys

import pytest

from tests.distributed.starting import ROOT, environment

pytestmark = pytest.mark.thorough

PROGRAM = """
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
place = [os.environ[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_PORT")]
line = [*place, total.item(), dist.is_torchelastic_launched(), *sys.argv[1:]]
sys.stdout.write(" ".join(map(str, line)) + "\\n")  # in one piece, as the processes share the output
"""


def lines_of(*command):
    """Start a command of `python -m torch.distributed` in a program of `adjoint run`."""
    program = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-m', *sys.argv[1:]]).returncode)"
    finished = subprocess.run(
        [sys.executable, "-m", "adjoint", "run", "-c", program, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env=environment(),
    )
    return finished.returncode, sorted(finished.stdout.splitlines()), finished.stderr


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


@pytest.mark.parametrize("option", ["--nproc-per-node=2", "--nproc_per_node=2"])
def test_run_sets_the_variables_of_each_rank(script, option):
    port = "29713"
    command = ["torch.distributed.run", "--standalone", "--nnodes=1", "--master_port", port, option, script, "a", "--b"]
    status, lines, errors = lines_of(*command)
    assert status == 0, errors
    assert lines == [f"{rank} {rank} 2 2 0 {port} 2.0 True a --b" for rank in range(2)]


def test_launch_gives_scripts_their_local_rank(script):
    start = ["torch.distributed.launch", "--nproc_per_node=2", "--master_port=29714"]
    status, lines, errors = lines_of(*start, script, "a")
    assert status == 0, errors
    assert lines == [f"{rank} {rank} 2 2 0 29714 2.0 True --local-rank={rank} a" for rank in range(2)]
    assert lines_of(*start, "--use_env", script, "a")[1] == [
        f"{rank} {rank} 2 2 0 29714 2.0 True a" for rank in range(2)
    ]


def test_run_exits_with_the_status_of_a_module_that_fails():
    assert lines_of("torch.distributed.run", "--nproc-per-node=2", "-m", "json.tool", "nowhere.json")[0] == 2


@pytest.mark.parametrize("option", ["--nnodes=2", "--node_rank=1", "--nproc-per-node=gpu", "--nproc-per-node=x"])
def test_run_refuses_what_it_cannot_start(script, option):
    status, lines, errors = lines_of("torch.distributed.run", option, script)
    assert (status, lines) == (1, [])
    assert "adjoint launch --hosts" in errors or "Unsupported nproc_per_node value" in errors
