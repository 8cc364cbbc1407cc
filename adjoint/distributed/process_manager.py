"""The process manager of ranks that no MPI launcher has started.

It uses the PMI-1 wire protocol, which consists of lines of text.

If a rank has failed, or has disappeared without leaving, it informs all ranks. All ranks then end (`companions.py`).

It is a separate process that rank 0 starts. A thread of rank 0 could not answer, because MPI holds the interpreter lock
while it starts. It runs without the rest of the package.

Reference: P. Balaji et al., "PMI: A scalable parallel process-management interface for extreme-scale systems", EuroMPI 2010.
"""

from __future__ import annotations

import contextlib
import math
import re
import secrets
import socket
import sys
import threading
import time

LINGERING = 5
"""The number of seconds in which the other ranks are answered after rank 0 has ended."""

GRACE = 0.5
"""The number of seconds after the loss of a process in which the others, or their parent, may end by themselves."""

DIED = 1
"""The exit status of the other processes in this case."""


class Manager:
    """Numbers the processes, stores their published values, and makes them wait for one another."""

    def __init__(self, size: int, port: int, timeout: float) -> None:
        self.size, self.timeout = size, timeout
        self.name = f"adjoint-{secrets.token_hex(8)}"  # MPI derives names of shared memory from it
        self.values: dict[str, str] = {}
        self.lock = threading.Lock()
        self.barrier = threading.Barrier(size)
        self.left = threading.Semaphore(0)
        self.belonging: dict[socket.socket, int] = {}
        self.told: dict[socket.socket, int] = {}
        self.gone: set[int] = set()
        self.come: set[tuple[str, str]] = set()
        self.connected = 0
        self.server = socket.create_server(("", port), backlog=size + 8)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:  # closed
                return
            with self.lock:
                self.connected += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """Answer one process until it leaves."""
        ended = False
        with (
            connection,
            connection.makefile("rw", encoding="ascii", newline="\n") as lines,
            contextlib.suppress(OSError),
        ):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for line in lines:
                words = dict(re.findall(r"(\w+)=(\S*)", line))
                self._receive_report(connection, words)
                answer = self._answer(words)
                if answer:
                    lines.write(answer)
                    lines.flush()
                if words.get("cmd") in ("finalize", "abort"):
                    ended = True
                    break
        with self.lock:
            self.connected -= 1
        if ended:
            self.left.release()
        if connection in self.told:
            self._note_end(self.told.pop(connection))
        rank = self.belonging.pop(connection, None)
        if rank is not None:
            time.sleep(GRACE)
            self._end_all(rank, DIED, said=False)

    def _receive_report(self, connection: socket.socket, words: dict[str, str]) -> None:
        """Process the report of a rank. If the rank has failed, end all ranks.

        If all ranks have reached their end, permit them to end.
        """
        command, rank = words.get("cmd"), int(words.get("rank", -1))
        if command in ("enter", "initack"):
            self.come.add((command, words.get("rank") or words["pmiid"]))
            if len(self.come) == 2 * self.size:  # each rank itself, and its MPI
                self.close()
        if command == "enter":
            self.belonging[connection] = rank
            self.told[connection] = rank
        elif command in ("leave", "end", "fail"):
            self.belonging.pop(connection, None)
        if command == "fail":
            self._end_all(rank, int(words["status"]), said=True)
        elif command == "abort":
            self._end_all(rank, int(words.get("exitcode", DIED)), said=True)
        elif command == "end":
            self._note_end(rank)

    def _note_end(self, rank: int) -> None:
        """Record that a rank has reached its end. When all ranks have reached their end, they may end."""
        self.gone.add(rank)
        if len(self.gone) == self.size:
            self._end_all(rank, 0, said=True)

    def _end_all(self, rank: int, status: int, said: bool) -> None:
        """Tell all ranks to end with an exit status, because a rank has failed. Status 0 permits them to end."""
        for connection in list(self.told):
            with contextlib.suppress(OSError):
                connection.sendall(f"{rank} {status} {int(said)}\n".encode())

    def _answer(self, words: dict[str, str]) -> str:
        """Return the reply to one command, as lines."""
        command = words.get("cmd")
        if command == "initack":
            return f"cmd=initack rc=0\ncmd=set size={self.size}\ncmd=set rank={words['pmiid']}\ncmd=set debug=0\n"
        if command == "init":
            return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
        if command == "get_maxes":
            return "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n"
        if command == "get_appnum":
            return "cmd=appnum appnum=0\n"
        if command == "get_my_kvsname":
            return f"cmd=my_kvsname kvsname={self.name}\n"
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
            try:
                self.barrier.wait(self.timeout)
            except threading.BrokenBarrierError:
                missing = {str(rank) for rank in range(self.size)} - {
                    rank for word, rank in self.come if word == "enter"
                }
                return f"cmd=missing ranks={','.join(sorted(missing))}\n"
            return "cmd=barrier_out\n"
        if command == "finalize":
            return "cmd=finalize_ack\n"
        return ""

    def close(self) -> None:
        """Accept no more ranks, and free the port. Restarted ranks must not reach this manager."""
        with contextlib.suppress(OSError):
            self.server.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts, which would keep the port
        self.server.close()

    def finish(self) -> None:
        """Answer until all processes have left. After the end of rank 0, answer only for some seconds."""
        gone = threading.Thread(target=sys.stdin.read, daemon=True)
        gone.start()
        left, deadline = 0, math.inf
        while left < self.size and time.monotonic() < deadline:
            left += self.left.acquire(timeout=0.2)
            if deadline is math.inf and not gone.is_alive():
                self.close()
                deadline = time.monotonic() + LINGERING
            if deadline < math.inf and not self.connected:
                break


def main(size: str, port: str, timeout: str) -> None:
    """Serve `size` processes at `port`. First print "ready", or the error."""
    try:
        manager = Manager(int(size), int(port), float(timeout))
    except OSError as error:
        print(error, flush=True)
        return
    print("ready", flush=True)
    manager.finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
