"""Tables of integers with named fields. Python code packs them, and kernels read them."""

from __future__ import annotations

from typing import Any


class Struct:
    """The layout of a table of 64-bit integers.

        PLANES = Struct("many step sizes:3")
        PLANES.pack(many=4, step=100, sizes=(3, 8, 8))

    A kernel reads the table at an address: `planes = fields(table[0], PLANES)`, then `planes.many`, `planes.sizes[K]`.
    """

    def __init__(self, fields: str) -> None:
        self.counts: dict[str, int | None] = {}
        for field in fields.split():
            name, _, count = field.partition(":")
            self.counts[name] = int(count) if count else None
        self.places: dict[str, int] = {}
        self.size = 0
        for name, numbers in self.counts.items():
            self.places[name] = self.size
            self.size += numbers or 1

    def pack(self, **given: Any) -> list[int]:
        """Return the integers of the table.

        Raises:
            TypeError: if the names or the counts of the integers do not match the fields.
        """
        if given.keys() != self.counts.keys():
            raise TypeError(f"{' '.join(given)} are not the fields {' '.join(self.counts)}")
        numbers = [given[name] if count else (given[name],) for name, count in self.counts.items()]
        if [len(item) for item in numbers] != [count or 1 for count in self.counts.values()]:
            raise TypeError(f"{given} do not fit {self.counts}")
        return [int(number) for item in numbers for number in item]
