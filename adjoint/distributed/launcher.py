"""`adjoint launch` starts a program in several processes with MPI's launcher, and ends all of them when one fails."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from .._runtime.platform import ctypes, signal, socket, subprocess
from .mpi import MISSING

DEADLY = {signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM}
"""Signals that end a process before it can report its end."""


class LaunchError(Exception):
    """The error for processes that cannot be started."""


def launch(count: int | None, hosts: str | None, program: list[str]) -> int:
    """Run `program` in `count` processes.

    `program` is a script or "-m" and a module, and their arguments. Return the exit status of the first process that
    fails.

    Args:
        count: the number of processes; by default the number of processors.
        hosts: a file with one machine per line, in the MPI's format; by default all processes run on this machine.

    Raises:
        LaunchError: if mpi4py, mpiexec or the hosts file is missing.
    """
    if find_spec("mpi4py") is None:
        raise LaunchError(MISSING)
    if count is not None and count < 1:
        raise LaunchError(f"-n must be at least 1, not {count}")
    if hosts is not None and not Path(hosts).is_file():
        raise LaunchError(f"{hosts}: no such file")
    count = count or processors()
    with tempfile.TemporaryDirectory(prefix="adjoint-launch-") as folder:
        failures = Path(folder) / "failures"
        command = [*mpiexec_command(count, hosts), sys.executable, "-m", "adjoint.distributed.runner", *program]
        environment, prepare = _environment(count, hosts, failures), _ends_with_parent()
        # Use a separate session. Ctrl-C in a terminal reaches this process, which forwards it. If MPI's launcher received it
        # twice, it would print its state.
        started = subprocess.Popen(command, env=environment, preexec_fn=prepare, start_new_session=True)
        return _wait(started, failures)


def _ends_with_parent() -> Callable[[], object] | None:
    """Make this process end when its parent ends for any reason. MPI's launcher then ends its processes."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl
    set_signal_of_parents_death = 1
    return lambda: prctl(set_signal_of_parents_death, signal.SIGTERM)


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def mpiexec_command(count: int, hosts: str | None) -> list[str]:
    """Return the command that starts `count` processes. The program follows it."""
    mpiexec = find_mpiexec()
    command = [mpiexec, "-n", str(count)]
    if is_open_mpi(mpiexec):
        command[1:1] = ["--oversubscribe"]
        if hosts:
            command[1:1] = ["--hostfile", hosts]
    elif hosts:
        command[1:1] = ["-f", hosts]
    return command


def find_mpiexec() -> str:
    """Return the `mpiexec` that wheels install in this interpreter's folder, or the `mpiexec` on the search path."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    found = shutil.which("mpiexec", path=places)
    if found is None:
        raise LaunchError(f"there is no mpiexec: {MISSING}")
    return found


@cache
def is_open_mpi(mpiexec: str) -> bool:
    """Return whether a launcher belongs to Open MPI."""
    answer = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False)
    return "Open MPI" in answer.stdout or "OpenRTE" in answer.stdout


def _environment(count: int, hosts: str | None, failures: Path) -> dict[str, str]:
    """Return the environment variables of all processes. The runner adds the variables of each rank."""
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    environment = dict(os.environ, ADJOINT_FAILURES=str(failures))
    environment.setdefault("MASTER_ADDR", "127.0.0.1" if hosts is None else socket.gethostname())
    environment.setdefault("MASTER_PORT", str(port))
    if hosts is None:
        environment.setdefault("OMP_NUM_THREADS", str(max(1, processors() // count)))
        environment["ADJOINT_JOINING"] = str(count)
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # as in containers, for which Open MPI requires two settings
        for name in ("PRTE_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT"):
            environment.update({name: "1", f"{name}_CONFIRM": "1"})
    return environment


def _wait(processes: subprocess.Popen[bytes], failures: Path) -> int:
    """Wait for MPI's launcher. End its processes on an interrupt, or when a process has failed outside of MPI."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGTERM, interrupt)
    failed = False
    try:
        while True:
            try:
                status = processes.wait(timeout=0.1 if not failed else 0.5)
                break
            except subprocess.TimeoutExpired:
                if failed:
                    processes.terminate()
                failed = failures.exists()
    except KeyboardInterrupt:
        processes.send_signal(signal.SIGINT)
        try:
            processes.wait(timeout=5)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            processes.kill()
            processes.wait()
        return 130
    finally:
        signal.signal(signal.SIGTERM, former)
    if failures.exists():
        return int(failures.read_text(encoding="utf-8").split()[0])
    if status in DEADLY:  # MPICH's launcher ends with the number of the signal
        return 128 + status
    return 128 - status if status < 0 else status
