"""Connecting processes that `torchrun`, a shell loop, or `srun` without PMI has started, instead of an MPI launcher.

The environment tells each process its rank, the number of processes and the address of rank 0. An MPI of the MPICH
family (MPICH, Intel MPI, MVAPICH) learns from a process manager which processes participate. Rank 0 starts a process
manager, `process_manager.py`, and tells MPI its address. `MPI_Init` in all processes then creates one `COMM_WORLD`.
After that, MPI does all communication.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from .._runtime.platform import socket, subprocess
from .companions import Companions
from .errors import DistNetworkError, DistStoreError
from .state import STATE
from .stores import DEFAULT, FileStore, Store, TCPStore

LAUNCHERS = ("PMI_FD", "PMI_PORT", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID")
"""The variables that launchers of MPI processes set."""


class Place(NamedTuple):
    """The position of a process: its rank among `size`, and the address of rank 0."""

    rank: int
    size: int
    address: str
    port: int


def started_by_mpi() -> bool:
    """Return whether an MPI launcher has started this process, in a way that the MPI supports."""
    if "PMIX_NAMESPACE" in os.environ and "SLURM_STEP_NUM_TASKS" in os.environ and not _understands_pmix():
        for name in ("PMIX_NAMESPACE", "PMIX_RANK"):  # MPICH would refuse to start
            os.environ.pop(name, None)
    return any(name in os.environ for name in LAUNCHERS)


def await_all(seconds: float) -> None:
    """Wait for all processes that `adjoint launch` has started on this machine, because MPI waits without a limit.

    Raises:
        DistStoreError: if the time limit is exceeded.
    """
    told, count = os.environ.get("ADJOINT_FAILURES"), int(os.environ.get("ADJOINT_JOINING", "0"))
    STATE.joined += 1
    files = {rank: Path(f"{told}.{STATE.joined}.{rank}") for rank in range(count)}
    if files:
        files[int(os.environ["RANK"])].touch()
    end = time.monotonic() + seconds
    while missing := [rank for rank, file in files.items() if not file.exists()]:
        if time.monotonic() > end:
            raise _timeout_error(seconds, count, missing)
        time.sleep(1e-3)


def _understands_pmix() -> bool:
    """Return whether the MPI connects processes by PMIx. Open MPI supports PMIx. The wheels of MPICH do not."""
    from .launcher import LaunchError, find_mpiexec, is_open_mpi

    try:
        return is_open_mpi(find_mpiexec())
    except LaunchError:
        return True


def place(init_method: str | None, size: int, rank: int, timeout: float, store: Store | None = None) -> Place | None:
    """Read the position of this process from the arguments of `init_process_group` and the environment.

    Return None for a single process.

    Processes that share a `store` use it to find rank 0.

    Raises:
        ValueError: if a part of the information is missing.
    """
    method = urlsplit(init_method or "env://")
    given = {name: values[0] for name, values in parse_qs(method.query).items()}
    environment = dict(os.environ)
    # Slurm gives batch scripts a rank too. Only `srun` sets the number of tasks of a step.
    if "RANK" not in environment and int(environment.get("SLURM_STEP_NUM_TASKS", "1")) > 1:
        environment |= _from_slurm(environment)
    rank = rank if rank >= 0 else int(given.get("rank", environment.get("RANK", -1)))
    size = size if size > 0 else int(given.get("world_size", environment.get("WORLD_SIZE", -1)))
    if size < 0 and rank < 0:
        return None
    for name, value in (("RANK", rank), ("WORLD_SIZE", size)):
        if value < 0:
            raise ValueError(
                f"Error initializing torch.distributed using {init_method or 'env://'} rendezvous: "
                f"environment variable {name} expected, but not set"
            )
    if size == 1:
        return None
    if store is not None:
        return Place(rank, size, *_from_store(store, rank))
    if method.scheme == "tcp" and method.hostname and method.port:
        return Place(rank, size, method.hostname, method.port)
    if method.scheme == "file":
        return Place(rank, size, *_from_file(Path(method.netloc + method.path), rank, timeout))
    if method.scheme != "env":
        raise RuntimeError(f"No rendezvous handler for {method.scheme}://")
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        if name not in environment:
            raise ValueError(
                f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, but not set"
            )
    port = int(environment["MASTER_PORT"])
    if environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        port += 1  # the agent that has started us listens at the port itself
    return Place(rank, size, environment["MASTER_ADDR"], port)


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **options: Any) -> Iterator[tuple[Store, int, int]]:
    """Yield one tuple: the store that all processes share, the rank of this process, and the number of processes.

    Args:
        url: "tcp://ADDRESS:PORT", "file://PATH", or "env://", which reads the address of rank 0 from the environment.
        rank, world_size: used if neither the address nor the environment contains them.
        options: `timeout`, a `timedelta`.

    Raises:
        RuntimeError: if the kind of address is unknown.
        ValueError: if a part of the information is missing.
    """
    limit: timedelta = options.get("timeout") or DEFAULT
    method = urlsplit(url)
    if method.scheme == "file":
        given = {name: values[0] for name, values in parse_qs(method.query).items()}
        yield (
            FileStore(method.netloc + method.path),
            int(given.get("rank", rank)),
            int(given.get("world_size", world_size)),
        )
        return
    where = place(url, world_size, rank, limit.total_seconds()) or Place(0, 1, "127.0.0.1", method.port or 0)
    yield TCPStore(where.address, where.port, where.size, where.rank == 0, limit, False), where.rank, where.size


def _from_store(store: Store, rank: int) -> tuple[str, int]:
    """Return the address that rank 0 puts into a store."""
    if rank == 0:
        address, port = _own_address()
        store.set("adjoint/address", f"{address} {port}")
        return address, port
    address, port_text = store.get("adjoint/address").decode().split()
    return address, int(port_text)


def _own_address() -> tuple[str, int]:
    """Return the name of this machine and a free port."""
    with socket.socket() as free:
        free.bind(("", 0))
        return socket.gethostname(), free.getsockname()[1]


def _from_slurm(environment: dict[str, str]) -> dict[str, str]:
    """Derive the variables of `torchrun` from the variables that Slurm sets for each task."""
    nodes = environment.get("SLURM_STEP_NODELIST", environment.get("SLURM_JOB_NODELIST", "localhost"))
    first = nodes
    if "[" in nodes or "," in nodes:
        listed = subprocess.run(["scontrol", "show", "hostnames", nodes], capture_output=True, text=True, check=True)
        first = listed.stdout.split()[0]
    port = 20000 + int(environment.get("SLURM_JOB_ID", "0")) % 20000
    found = {
        "RANK": environment["SLURM_PROCID"],
        "WORLD_SIZE": environment["SLURM_STEP_NUM_TASKS"],
        "LOCAL_RANK": environment.get("SLURM_LOCALID", "0"),
        "MASTER_ADDR": environment.get("MASTER_ADDR", first),
        "MASTER_PORT": environment.get("MASTER_PORT", str(port)),
    }
    os.environ.update(found)
    return found


def _from_file(path: Path, rank: int, timeout: float) -> tuple[str, int]:
    """Return the address that rank 0 writes to a file. All processes can read this file."""
    if rank == 0:
        address, port = _own_address()
        written = path.with_name(f"{path.name}.{os.getpid()}")
        written.write_text(f"{address} {port}\n", encoding="utf-8")
        written.replace(path)
        return address, port
    deadline = time.monotonic() + timeout
    while not (path.exists() and path.stat().st_size):
        if time.monotonic() > deadline:
            raise DistNetworkError(f"rank 0 has not written its address into {path} within {timeout:g} s")
        time.sleep(0.02)
    address, port_text = path.read_text(encoding="utf-8").split()
    return address, int(port_text)


def prepare(where: Place, timeout: float) -> None:
    """Give MPI the address of the process manager, before MPI starts. Rank 0 starts the process manager.

    After this call, all processes end if one of them fails.

    Raises:
        DistNetworkError: if rank 0 cannot listen, or cannot be reached.
        DistStoreError: if the other processes do not arrive in time. MPI could not recover from this.
    """
    if where.rank == 0:
        STATE.manager = _start_manager(where, timeout)
    else:
        _await(where, timeout)
    host = "127.0.0.1" if where.rank == 0 else where.address
    os.environ.update(PMI_PORT=f"{host}:{where.port}", PMI_ID=str(where.rank), PMI_SIZE=str(where.size))
    STATE.companions = Companions(where.rank, host, where.port)
    with (
        socket.create_connection((host, where.port)) as connection,
        connection.makefile("rw", encoding="ascii") as lines,
    ):
        lines.write("cmd=barrier_in\n")
        lines.flush()
        answer = lines.readline().strip()
    if answer != "cmd=barrier_out":
        STATE.companions.give_up()
        STATE.companions = None
        raise _timeout_error(timeout, where.size, answer.partition("ranks=")[2].split(","))


def _timeout_error(seconds: float, size: int, missing: list[Any]) -> DistStoreError:
    return DistStoreError(
        f"Timed out after {seconds:g} seconds waiting for clients. {size - len(missing)}/{size} clients joined; missing ranks: "
        f"{', '.join(map(str, missing))}"
    )


def _start_manager(where: Place, timeout: float) -> subprocess.Popen[bytes]:
    """Start `process_manager.py`. It ends when its input is closed, at the latest at the end of this process."""
    script = Path(__file__).with_name("process_manager.py")
    command = [sys.executable, "-I", str(script), str(where.size), str(where.port), str(timeout)]
    manager = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    said = manager.stdout.readline().decode() if manager.stdout else ""
    if said != "ready\n":
        raise DistNetworkError(
            f"The server socket has failed to listen on any local network address. port: {where.port}, {said.strip()}"
        )
    return manager


def _await(where: Place, timeout: float) -> None:
    """Wait until rank 0 accepts connections."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            socket.create_connection((where.address, where.port), timeout=1).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise DistNetworkError(
                    f"rank {where.rank} could not reach rank 0 at {where.address}:{where.port} within {timeout:g} s: {error}"
                ) from None
            time.sleep(0.05)
