"""Stores: small values by key. Processes share these values to find one another and to coordinate.

`HashStore` serves the threads of one process, `FileStore` serves processes that can access one file, and `TCPStore`
serves processes that can reach a server. One of the processes runs this server.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from .._runtime.platform import socket
from .errors import DistNetworkError, DistStoreError, QueueEmptyError

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]

Value = str | bytes
DEFAULT = timedelta(minutes=5)


def _bytes(value: Value) -> bytes:
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"the value of a store must be str or bytes, not {type(value).__name__}")
    return value.encode() if isinstance(value, str) else value


def _number(held: bytes | None) -> int:
    try:
        return int(held or b"0")
    except ValueError:
        raise ValueError(f"add(): the value that is stored, {held!r}, is no number") from None


class Store:
    """Values by key.

    If a value does not exist yet, `get` and `wait` wait until another process sets it.

    `timeout`: the time limit of these methods.
    """

    def __init__(self) -> None:
        self._timeout = DEFAULT

    @property
    def timeout(self) -> timedelta:
        """The time limit of `get` and `wait`."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the time limit of `get` and `wait`."""
        self._timeout = timeout

    def _ask(self, what: str, *arguments: Any, timeout: timedelta | None = None) -> Any:
        """Call one of the methods of `_Held`."""
        raise NotImplementedError(f"{type(self).__name__} is abstract")

    def set(self, key: str, value: Value) -> None:
        """Store a value."""
        self._ask("set", key, _bytes(value))

    def get(self, key: str) -> bytes:
        """Return the value of a key as soon as it exists.

        Raises:
            DistStoreError: if it does not exist in time.
        """
        return self._ask("get", key)

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which starts at 0, and return the sum."""
        return int(self._ask("add", key, int(amount)))

    def append(self, key: str, value: Value) -> None:
        """Append to a value."""
        self._ask("append", key, _bytes(value))

    def compare_set(self, key: str, expected_value: Value, desired_value: Value) -> bytes:
        """Store `desired_value` if the value is `expected_value`, or if there is no value and "" is expected.

        Returns:
            The value after the call, or `expected_value` if there is no value.
        """
        return self._ask("compare_set", key, _bytes(expected_value), _bytes(desired_value))

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all keys exist."""
        return bool(self._ask("check", list(keys)))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys exist.

        Raises:
            DistStoreError: if they do not exist in time.
        """
        self._ask("wait", list(keys), timeout=timeout)

    def delete_key(self, key: str) -> bool:
        """Delete a key, and return whether it existed."""
        return bool(self._ask("delete_key", key))

    def num_keys(self) -> int:
        """Return the number of keys."""
        return len(self.list_keys())

    def list_keys(self) -> list[str]:
        """All keys."""
        return list(self._ask("list_keys"))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Return the values of several keys as soon as they exist."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[Value]) -> None:
        """Store several values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def queue_push(self, key: str, value: Value) -> None:
        """Append to a queue."""
        self._ask("queue_push", key, _bytes(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value from a queue.

        Raises:
            QueueEmptyError: if the queue is empty and `block` is false.
            DistStoreError: if no value arrives in time.
        """
        return self._ask("queue_pop", key, block)

    def queue_len(self, key: str) -> int:
        """Return the length of a queue."""
        return int(self._ask("queue_len", key))

    def has_extended_api(self) -> bool:
        """Return whether `append`, `multi_get` and `multi_set` exist. The answer is always True."""
        return True

    def clone(self) -> Store:
        """Return the same store for another thread."""
        return self


class _Held:
    """The contents of a store, and its operations. `changed` is notified of every change."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.queues: dict[str, deque[bytes]] = {}
        self.changed = threading.Condition()

    def do(self, what: str, arguments: Any, seconds: float) -> Any:
        """Run an operation. The time limit applies to operations that wait."""
        with self.changed:
            result = getattr(self, what)(*arguments, **({"seconds": seconds} if what in WAITING else {}))
            if what not in WAITING and what != "check":
                self.changed.notify_all()
            return result

    def _await(self, there: Callable[[], bool], seconds: float, what: str) -> None:
        if not self.changed.wait_for(there, seconds):
            raise DistStoreError(f"wait timeout after {int(seconds * 1000)}ms, {what}")

    def wait(self, keys: list[str], seconds: float) -> None:
        """Wait for keys."""
        self._await(lambda: self.check(keys), seconds, f"keys: {', '.join(keys)}")

    def get(self, key: str, seconds: float) -> bytes:
        """Wait for a value."""
        self.wait([key], seconds)
        return self.values[key]

    def queue_pop(self, key: str, block: bool, seconds: float) -> bytes:
        """Wait for the first value of a queue."""
        if not block and not self.queues.get(key):
            raise QueueEmptyError("queue is empty")
        self._await(lambda: bool(self.queues.get(key)), seconds, f"queue: {key}")
        self.changed.notify_all()
        return self.queues[key].popleft()

    def set(self, key: str, value: bytes) -> None:
        """Store."""
        self.values[key] = value

    def add(self, key: str, amount: int) -> int:
        """Add to a number."""
        total = _number(self.values.get(key)) + amount
        self.values[key] = str(total).encode()
        return total

    def append(self, key: str, value: bytes) -> None:
        """Append."""
        self.values[key] = self.values.get(key, b"") + value

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        """Store the value if the current value is the expected one."""
        held = self.values.get(key)
        if held is None and expected:
            return expected
        if held is None or held == expected:
            self.values[key] = desired
        return self.values[key]

    def check(self, keys: list[str]) -> bool:
        """Return whether keys exist."""
        return all(key in self.values for key in keys)

    def delete_key(self, key: str) -> bool:
        """Delete."""
        return self.values.pop(key, None) is not None

    def list_keys(self) -> list[str]:
        """All keys."""
        return list(self.values)

    def queue_push(self, key: str, value: bytes) -> None:
        """Append to a queue."""
        self.queues.setdefault(key, deque()).append(value)

    def queue_len(self, key: str) -> int:
        """Return the length of a queue."""
        return len(self.queues.get(key, ()))


WAITING = ("get", "wait", "queue_pop")
"""The operations that may have to wait."""


class HashStore(Store):
    """A store in the memory of this process, for its threads."""

    def __init__(self) -> None:
        super().__init__()
        self._held = _Held()

    def _ask(self, what: str, *arguments: Any, timeout: timedelta | None = None) -> Any:
        return self._held.do(what, arguments, (timeout or self._timeout).total_seconds())


class FileStore(Store):
    """A store in a file that all processes can access.

    Args:
        file_name: the file, which is created if necessary.
        world_size: accepted. The file remains after the last process has ended.
    """

    PAUSE = 0.01
    """The number of seconds between two reads of the file."""

    def __init__(self, file_name: Any, world_size: int = -1) -> None:
        super().__init__()
        self._path = Path(file_name)
        with self._path.open("ab"):
            pass

    @property
    def path(self) -> str:
        """The path of the file."""
        return str(self._path)

    def _ask(self, what: str, *arguments: Any, timeout: timedelta | None = None) -> Any:
        seconds = (timeout or self._timeout).total_seconds()
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self._run_locked(what, arguments)
            except DistStoreError:
                if time.monotonic() > deadline:
                    raise DistStoreError(f"wait timeout after {int(seconds * 1000)}ms, {arguments[0]}") from None
                time.sleep(self.PAUSE)

    def _run_locked(self, what: str, arguments: Any) -> Any:
        """Run an operation on the contents of the file while no other process uses it."""
        import fcntl

        with self._path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            text = file.read()
            held = _Held()
            values, queues = json.loads(text) if text else ({}, {})
            held.values = {key: bytes.fromhex(value) for key, value in values.items()}
            held.queues = {key: deque(map(bytes.fromhex, each)) for key, each in queues.items()}
            result = held.do(what, arguments, 0.0)
            written = json.dumps(
                [
                    {key: value.hex() for key, value in held.values.items()},
                    {key: [value.hex() for value in each] for key, each in held.queues.items()},
                ]
            ).encode()
            if written != text:
                file.seek(0)
                file.write(written)
                file.truncate()
            return result


class PrefixStore(Store):
    """Another store, with a prefix before all keys.

    Args:
        prefix: the prefix of each key, followed by a slash.
        store: the other store.
    """

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self._prefix, self._store = f"{prefix}/", store

    @property
    def underlying_store(self) -> Store:
        """The other store."""
        return self._store

    @property
    def timeout(self) -> timedelta:
        """The time limit of the other store."""
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the time limit of the other store."""
        self._store.set_timeout(timeout)

    def _ask(self, what: str, *arguments: Any, timeout: timedelta | None = None) -> Any:
        if what == "list_keys":
            keys = self._store.list_keys()
            return [key.removeprefix(self._prefix) for key in keys if key.startswith(self._prefix)]
        first, *others = arguments
        key = [self._prefix + each for each in first] if isinstance(first, list) else self._prefix + first
        return self._store._ask(what, key, *others, timeout=timeout)


# --- over TCP ------------------------------------------------------------------------------------------------------------

ERRORS = {kind.__name__: kind for kind in (DistStoreError, QueueEmptyError, ValueError)}
"""The errors that a server sends to its clients."""


def _send(connection: socket.socket, message: Any) -> None:
    data = json.dumps(message, default=lambda value: {"hex": value.hex()}).encode()
    connection.sendall(struct.pack("!I", len(data)) + data)


def _receive(connection: socket.socket) -> Any:
    """Return a message, or None at the end."""
    length = _exactly(connection, 4)
    if length is None:
        return None
    data = _exactly(connection, struct.unpack("!I", length)[0])
    return None if data is None else json.loads(data, object_hook=lambda held: bytes.fromhex(held["hex"]))


def _exactly(connection: socket.socket, count: int) -> bytes | None:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            return None
        data += more
    return data


class _Server:
    """A server that answers clients, each in a separate thread."""

    def __init__(self, port: int) -> None:
        self.held = _Held()
        try:
            self.listener = socket.create_server(("", port), backlog=128)
        except OSError as error:
            raise DistNetworkError(
                f"The server socket has failed to listen on any local network address. port: {port}, {error}"
            ) from None
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True, name="TCPStore").start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True, name="TCPStore client").start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while (message := _receive(connection)) is not None:
                what, arguments, seconds = message
                try:
                    if what.startswith("_") or not hasattr(_Held, what):
                        raise ValueError(f"a store does not know {what!r}")
                    answer = ["", self.held.do(what, arguments, seconds)]
                except tuple(ERRORS.values()) as error:
                    answer = [type(error).__name__, str(error)]
                _send(connection, answer)

    def close(self) -> None:
        """Accept no more clients."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class TCPStore(Store):
    """A store on a server that one of the processes runs.

    Args:
        host_name, port: the address of the server. With port 0 the server chooses a port.
        world_size: the number of processes, including the server's process. The server waits for all of them.
        is_master: whether this process runs the server.
        timeout: the time limit for the server, for the clients, and for keys.
        wait_for_workers: whether the server waits for its clients.
        multi_tenant, master_listen_fd, use_libuv: accepted for compatibility with PyTorch.

    Raises:
        DistNetworkError: if the server cannot listen, or cannot be reached.
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = DEFAULT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        self._timeout = timeout
        self._server = _Server(port) if is_master else None
        self.host, self.port = host_name, self._server.port if self._server is not None else port
        self._lock = threading.Lock()
        self._connection = self._connected()
        self._process = os.getpid()
        if wait_for_workers and world_size is not None and world_size > 1:
            self._meet(world_size)

    def _connected(self) -> socket.socket:
        deadline = time.monotonic() + self._timeout.total_seconds()
        while True:
            try:
                connection = socket.create_connection((self.host, self.port), timeout=1)
            except OSError as error:
                if time.monotonic() > deadline:
                    raise DistNetworkError(
                        f"The client socket has timed out after {int(self._timeout.total_seconds() * 1000)}ms while trying to "
                        f"connect to ({self.host}, {self.port}): {error}"
                    ) from None
                time.sleep(0.02)
            else:
                connection.settimeout(None)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection

    def _meet(self, count: int) -> None:
        """Count the processes that have arrived. The server waits for all of them."""
        if self.add("init/", 1) == count:
            self.set("init/all", "")
        if self._server is not None:
            self.wait(["init/all"])

    def _ask(self, what: str, *arguments: Any, timeout: timedelta | None = None) -> Any:
        seconds = (timeout or self._timeout).total_seconds()
        with self._lock:
            if self._process != os.getpid():  # forked: the connection belongs to the parent
                self._connection, self._process = self._connected(), os.getpid()
            try:
                _send(self._connection, [what, arguments, seconds])
                answer = _receive(self._connection)
            except OSError as error:
                raise DistNetworkError(f"the store at {self.host}:{self.port} does not answer: {error}") from None
        if answer is None:
            raise DistNetworkError(f"the store at {self.host}:{self.port} has ended")
        failure, result = answer
        if failure:
            raise ERRORS[failure](result)
        return result

    def clone(self) -> TCPStore:
        """Return the same store over another connection, for another thread."""
        return TCPStore(self.host, self.port, None, False, self._timeout)

    def __del__(self) -> None:
        if getattr(self, "_process", None) == os.getpid():
            self._connection.close()
            if self._server is not None:
                self._server.close()
