"""How a tensor is divided along a dimension of a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor is divided along one dimension of a mesh: `Shard`, `Replicate` or `Partial`."""

    __slots__ = ()

    def is_shard(self, dim: int | None = None) -> bool:
        """Return whether each process has a part (of dimension `dim` if it is given)."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        """Return whether each process has the whole tensor."""
        return isinstance(self, Replicate)

    def is_partial(self) -> bool:
        """Return whether the tensor is the sum of the processes' tensors."""
        return isinstance(self, Partial)


class Shard(Placement):
    """Each process has a part of dimension `dim`.

    Parts have equal size except the last ones, which may be smaller or empty.
    """

    __slots__ = ("dim",)

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shard) and other.dim == self.dim

    def __hash__(self) -> int:
        return hash((Shard, self.dim))

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"


class Replicate(Placement):
    """Each process has the whole tensor."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Replicate)

    def __hash__(self) -> int:
        return hash(Replicate)

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


class Partial(Placement):
    """The tensor is the result of a reduction, such as "sum", of the tensors of the processes."""

    __slots__ = ("reduce_op",)

    def __init__(self, reduce_op: str = "sum") -> None:
        self.reduce_op = reduce_op

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Partial) and other.reduce_op == self.reduce_op

    def __hash__(self) -> int:
        return hash((Partial, self.reduce_op))

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return "P"


def span(length: int, count: int, place: int) -> tuple[int, int]:
    """Return the range of indices of a dimension for the process at a position, divided as in `torch.chunk`."""
    size = -(-length // count)
    start = min(place * size, length)
    return start, min(start + size, length)


def spans(
    shape: Sequence[int], mesh: Any, placements: Sequence[Placement], place: Sequence[int]
) -> list[tuple[int, int]]:
    """Return, for each dimension of a tensor, the range of indices for the process at a position of the mesh."""
    found = [(0, length) for length in shape]
    for number, placement in enumerate(placements):
        if isinstance(placement, Shard):
            dim = placement.dim % len(shape)
            start, stop = found[dim]
            low, high = span(stop - start, mesh.size(number), place[number])
            found[dim] = start + low, start + high
    return found
