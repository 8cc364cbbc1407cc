"""Messages between a process and its worker over sockets. The process never waits to send."""

from __future__ import annotations

import os
import weakref
from collections import deque

from .._runtime.platform import socket

__all__ = ["Channel", "WorkerEnd", "pair"]

_HEADER = 8
_CHUNK = 1 << 18


class Channel:
    """A process's end of a channel. Messages wait in the channel while the worker cannot accept them.

    Two processes that both wait for space to send would wait forever.
    """

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._socket = end
        self._outgoing: deque[memoryview] = deque()
        self._incoming = bytearray()
        self._open = True
        _channels.add(self)

    def fileno(self) -> int:
        """Return the descriptor to wait on. While `is_sending`, also wait for space to send."""
        return self._socket.fileno()

    @property
    def is_sending(self) -> bool:
        """Whether messages wait to be sent."""
        return bool(self._outgoing)

    def post(self, message: bytes) -> None:
        """Send a message now, or as soon as there is space. If the worker has ended, do nothing."""
        self._outgoing.append(memoryview(len(message).to_bytes(_HEADER, "little") + message))
        self.flush()

    def flush(self) -> None:
        """Send as much as possible without waiting."""
        try:
            while self._outgoing:
                first = self._outgoing[0]
                sent = self._socket.send(first)
                if sent == len(first):
                    self._outgoing.popleft()
                else:
                    self._outgoing[0] = first[sent:]
        except BlockingIOError:
            pass
        except OSError:  # the worker has ended, which `receive` detects after its last messages
            self._outgoing.clear()

    def receive(self) -> list[bytes]:
        """Return the messages that have arrived.

        Raises:
            EOFError: if the worker has ended, after its last message.
        """
        while self._open:
            try:
                part = self._socket.recv(_CHUNK)
            except BlockingIOError:
                break
            except OSError:
                part = b""
            self._incoming += part
            self._open = bool(part)
            if len(part) < _CHUNK:
                break
        found = self._complete()
        if not found and not self._open:
            raise EOFError
        return found

    def _complete(self) -> list[bytes]:
        """Return the messages that have arrived completely."""
        held, found, start = self._incoming, [], 0
        while len(held) >= start + _HEADER:
            stop = start + _HEADER + int.from_bytes(held[start : start + _HEADER], "little")
            if len(held) < stop:
                break
            found.append(bytes(held[start + _HEADER : stop]))
            start = stop
        if start:
            del held[:start]
        return found

    def close(self) -> None:
        """Signal the worker that no more messages follow."""
        self._open = False
        self._outgoing.clear()
        self._socket.close()


_channels: weakref.WeakSet[Channel] = weakref.WeakSet()


def _close_all() -> None:
    """Close the parent's channels in a forked child.

    A worker detects the end of its parent when all copies of the parent's end are closed.
    """
    for channel in list(_channels):
        channel.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_all)


class WorkerEnd:
    """A worker's end of a channel. It waits to send and to receive. It can be passed to a new process."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    def send(self, message: bytes) -> None:
        """Send a message.

        Raises:
            OSError: if the other process has ended.
        """
        self._socket.sendall(len(message).to_bytes(_HEADER, "little") + message)

    def receive(self) -> bytes:
        """Return the next message.

        Raises:
            EOFError: if the other process has ended, or has closed the channel.
        """
        return self._exactly(int.from_bytes(self._exactly(_HEADER), "little"))

    def _exactly(self, count: int) -> bytes:
        parts = []
        while count:
            try:
                part = self._socket.recv(min(count, _CHUNK))
            except ConnectionError:
                part = b""
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Close this process's copy of the channel."""
        self._socket.close()


def pair() -> tuple[Channel, WorkerEnd]:
    """Return the two ends of a new channel."""
    own, other = socket.socketpair()
    return Channel(own), WorkerEnd(other)
