"""How processes that no MPI launcher has started find one another: `torchrun`, a shell loop, `srun` without PMI.

Each knows its rank, how many there are and the address of rank 0 from its environment. An MPI of MPICH's family (MPICH, Intel
MPI, MVAPICH) learns who takes part from a process manager, by lines of text over a socket: the PMI-1 wire protocol. Rank 0
answers them here, in a thread, so that `MPI_Init` in every process forms one `COMM_WORLD`. All communication after that is
MPI's.

Reference: P. Balaji et al., "PMI: A scalable parallel process-management interface for extreme-scale systems", EuroMPI 2010.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from .errors import DistNetworkError

LAUNCHERS = ("PMI_FD", "PMI_PORT", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID")
"""Variables that a launcher of MPI processes sets."""


class Place(NamedTuple):
    """Where a process stands: its rank among `size`, and where rank 0 can be reached."""

    rank: int
    size: int
    address: str
    port: int


def started_by_mpi() -> bool:
    """Whether an MPI launcher has started this process."""
    return any(name in os.environ for name in LAUNCHERS)


def place(init_method: str | None, size: int, rank: int, timeout: float) -> Place | None:
    """Read this process's place from the arguments of `init_process_group` and the environment; None if it is alone.

    Raises:
        ValueError: if a part is missing.
    """
    method = urlsplit(init_method or "env://")
    given = {name: values[0] for name, values in parse_qs(method.query).items()}
    environment = dict(os.environ)
    if "RANK" not in environment and int(environment.get("SLURM_NTASKS", "1")) > 1 and "SLURM_PROCID" in environment:
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


def _from_slurm(environment: dict[str, str]) -> dict[str, str]:
    """The variables of `torchrun`, from those that Slurm sets for each task."""
    nodes = environment.get("SLURM_STEP_NODELIST", environment.get("SLURM_JOB_NODELIST", "localhost"))
    first = nodes
    if "[" in nodes or "," in nodes:
        listed = subprocess.run(["scontrol", "show", "hostnames", nodes], capture_output=True, text=True, check=True)
        first = listed.stdout.split()[0]
    port = 20000 + int(environment.get("SLURM_JOB_ID", "0")) % 20000
    found = {
        "RANK": environment["SLURM_PROCID"],
        "WORLD_SIZE": environment["SLURM_NTASKS"],
        "LOCAL_RANK": environment.get("SLURM_LOCALID", "0"),
        "MASTER_ADDR": environment.get("MASTER_ADDR", first),
        "MASTER_PORT": environment.get("MASTER_PORT", str(port)),
    }
    os.environ.update(found)
    return found


def _from_file(path: Path, rank: int, timeout: float) -> tuple[str, int]:
    """The address of rank 0, which it writes into a file that all can read."""
    if rank == 0:
        with socket.socket() as free:
            free.bind(("", 0))
            address, port = socket.gethostname(), free.getsockname()[1]
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


def prepare(where: Place, timeout: float) -> Manager | None:
    """Tell MPI, which has not started yet, where it finds the others. Rank 0 gets the manager that answers them."""
    manager = Manager(where, timeout) if where.rank == 0 else None
    host = "127.0.0.1" if where.rank == 0 else where.address
    if where.rank:
        _await(where, timeout)
    os.environ.update(PMI_PORT=f"{host}:{where.port}", PMI_ID=str(where.rank), PMI_SIZE=str(where.size))
    return manager


def _await(where: Place, timeout: float) -> None:
    """Wait until rank 0 listens."""
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


class Manager:
    """The process manager in rank 0: it numbers the processes, stores what they publish, and lets them wait for one another."""

    def __init__(self, where: Place, timeout: float) -> None:
        self.size = where.size
        self.values: dict[str, str] = {}
        self.lock = threading.Lock()
        self.barrier = threading.Barrier(where.size)
        self.present = threading.Semaphore(0)
        self.left = threading.Semaphore(0)
        self.timeout = timeout
        try:
            self.server = socket.create_server(("", where.port), backlog=where.size + 8)
        except OSError as error:
            raise DistNetworkError(
                f"The server socket has failed to listen on any local network address. port: {where.port}, {error}"
            ) from None
        threading.Thread(target=self._accept, daemon=True, name="adjoint rendezvous").start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True, name="adjoint rendezvous").start()

    def _serve(self, connection: socket.socket) -> None:
        """Answer one process until it leaves."""
        with connection, connection.makefile("rw", encoding="ascii", newline="\n") as lines:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for line in lines:
                words = dict(re.findall(r"(\w+)=(\S*)", line))
                answer = self._answer(words)
                if answer:
                    lines.write(answer)
                    lines.flush()
                if words.get("cmd") in ("finalize", "abort"):
                    break
            else:
                return
        self.left.release()

    def _answer(self, words: dict[str, str]) -> str:
        """The reply to one command, as lines."""
        command = words.get("cmd")
        if command == "initack":
            self.present.release()
            return f"cmd=initack rc=0\ncmd=set size={self.size}\ncmd=set rank={words['pmiid']}\ncmd=set debug=0\n"
        if command == "init":
            return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
        if command == "get_maxes":
            return "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n"
        if command == "get_appnum":
            return "cmd=appnum appnum=0\n"
        if command == "get_my_kvsname":
            return "cmd=my_kvsname kvsname=adjoint\n"
        if command == "get_universe_size":
            return f"cmd=universe_size size={self.size}\n"
        if command == "put":
            with self.lock:
                self.values[words["key"]] = words["value"]
            return "cmd=put_result rc=0 msg=success\n"
        if command == "get":
            with self.lock:
                value = self.values.get(words["key"])
            if value is None:
                return "cmd=get_result rc=-1 msg=key_not_found value=unknown\n"
            return f"cmd=get_result rc=0 msg=success value={value}\n"
        if command == "barrier_in":
            self.barrier.wait(self.timeout)
            return "cmd=barrier_out\n"
        if command == "finalize":
            return "cmd=finalize_ack\n"
        return ""

    def finish(self) -> None:
        """Answer until all processes have left, for at most a few seconds."""
        deadline = time.monotonic() + 5
        for _ in range(self.size):
            if not self.left.acquire(timeout=max(0.0, deadline - time.monotonic())):
                break
        self.server.close()
