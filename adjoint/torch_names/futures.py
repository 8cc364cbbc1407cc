"""`torch.futures`: results that become available later, within one process."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

_T = TypeVar("_T")


class Future(Generic[_T]):
    """A result that becomes available later.

    >>> future = Future()
    >>> later = future.then(lambda done: done.wait() + 1)
    >>> future.set_result(1)
    >>> later.wait()
    2
    """

    def __init__(self, *, devices: list[Any] | None = None) -> None:
        self._inner: concurrent.futures.Future[_T] = concurrent.futures.Future()

    def done(self) -> bool:
        """Return whether the result, or an exception, is available."""
        return self._inner.done()

    def wait(self) -> _T:
        """Wait for the result. Return it, or raise the exception."""
        return self._inner.result()

    def value(self) -> _T:
        """Return the result, which must be available."""
        if not self.done():
            raise RuntimeError("Future is not complete: call wait() first")
        return self._inner.result()

    def set_result(self, result: _T) -> None:
        """Set the result. This is allowed once."""
        if self.done():
            raise RuntimeError("Future can only be marked completed once")
        self._inner.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Make `wait` raise this exception."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._inner.set_exception(result)

    def add_done_callback(self, callback: Callable[[Future[_T]], None]) -> None:
        """Call `callback(self)` when the result is available."""
        self._inner.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future[_T]], Any]) -> Future[Any]:
        """Return the future of `callback(self)`, which runs when the result is available."""
        later: Future[Any] = Future()

        def run(_: Any) -> None:
            try:
                later.set_result(callback(self))
            except Exception as error:  # noqa: BLE001  (raised by who waits)
                later.set_exception(error)

        self._inner.add_done_callback(run)
        return later


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """Return the future of the list. It completes when all results are available."""
    together: Future[list[Future[Any]]] = Future()
    missing = len(futures)
    if not missing:
        together.set_result([])

    def one_more(_: Any) -> None:
        nonlocal missing
        missing -= 1
        if not missing:
            together.set_result(list(futures))

    for future in futures:
        future.add_done_callback(one_more)
    return together


def wait_all(futures: list[Future[_T]]) -> list[_T]:
    """Wait for all futures, and return the results in order."""
    return [future.wait() for future in collect_all(futures).wait()]
