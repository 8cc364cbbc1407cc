"""`torch.torch_version`: a version string that can be compared as a version."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["TorchVersion"]


def _release(version: Any) -> tuple[int, ...]:
    """Return the numbers of a release, without trailing zeros. For "2.1.0+cpu" and for (2, 1, 0) they are (2, 1)."""
    text = version if isinstance(version, str) else ".".join(map(str, version))
    start = re.match(r"\s*v?(\d+(?:\.\d+)*)", text)
    if start is None:
        raise ValueError(f"Invalid version: {text!r}")
    numbers = [int(part) for part in start[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


class TorchVersion(str):
    """A string such as "2.13.0+cpu" that is ordered by its numbers.

    It can be compared with strings, tuples of numbers and versions.

    It equals only an identical string. It is greater than other versions with the same numbers.

    >>> version = TorchVersion("2.13.0+cpu")
    >>> version > "2.9", version >= (2, 13), version < "3"
    (True, True, True)
    """

    __slots__ = ()

    def __lt__(self, other: Any) -> bool:
        if not isinstance(other, (str, tuple, list)):
            return NotImplemented
        try:
            return _release(self) < _release(other)
        except ValueError:
            return str.__lt__(self, str(other))

    def __le__(self, other: Any) -> bool:
        before = self.__lt__(other)
        return before if before is NotImplemented else before or self == other

    def __gt__(self, other: Any) -> bool:
        not_after = self.__le__(other)
        return not_after if not_after is NotImplemented else not not_after

    def __ge__(self, other: Any) -> bool:
        before = self.__lt__(other)
        return before if before is NotImplemented else not before

    __eq__, __ne__, __hash__ = str.__eq__, str.__ne__, str.__hash__
