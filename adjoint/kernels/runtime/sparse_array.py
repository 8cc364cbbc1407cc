"""Arrays that store only some elements. The other elements are zero.

The arrays are stand-ins of the same shape that contain the stored parts. Code that computes on dense arrays never
receives such an array, because its class is not the class of plain arrays. The kernels for such arrays are in `kernels/sparse`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy

from .meta_array import Unread


class Coordinates:
    """The parts of a tensor of layout `sparse_coo`.

    `indices`: one column of coordinates for each stored element, int64. `values`: the elements. After the first
    dimension, they may have dense dimensions. `coalesced`: the columns are sorted, and no two are equal.
    """

    __slots__ = ("coalesced", "indices", "values")

    def __init__(self, indices: Any, values: Any, coalesced: bool = False) -> None:
        self.indices, self.values, self.coalesced = indices, values, coalesced or len(values) < 2

    layout = "sparse_coo"

    @property
    def count(self) -> int:
        """The number of stored elements."""
        return len(self.values)

    def with_values(self, values: Any) -> Coordinates:
        """Return other values at the same coordinates."""
        return Coordinates(self.indices, values, self.coalesced)

    def copy(self) -> Coordinates:
        """Return a copy in separate memory."""
        return Coordinates(self.indices.copy(), self.values.copy(), self.coalesced)


class Compressed:
    """The parts of a tensor of layout `sparse_csr`, `sparse_csc`, `sparse_bsr` or `sparse_bsc`.

    `starts`: the position in `places` and `values` at which the elements (or blocks) of each row begin, or of each
    column in column layouts. `places`: their columns (or rows). `values`: the elements, or blocks. The last dimension of
    `starts` and `places` may follow batch dimensions, which `values` has too.
    """

    __slots__ = ("layout", "places", "starts", "values")

    def __init__(self, layout: str, starts: Any, places: Any, values: Any) -> None:
        self.layout, self.starts, self.places, self.values = layout, starts, places, values

    @property
    def by_rows(self) -> bool:
        """Whether the layout compresses rows instead of columns."""
        return self.layout in ("sparse_csr", "sparse_bsr")

    @property
    def in_blocks(self) -> bool:
        """Whether the array stores blocks."""
        return self.layout in ("sparse_bsr", "sparse_bsc")

    @property
    def batch(self) -> tuple[int, ...]:
        """The lengths of the batch dimensions."""
        return tuple(self.starts.shape[:-1])

    @property
    def count(self) -> int:
        """The number of stored elements (or blocks) of each matrix."""
        return int(self.places.shape[-1])

    @property
    def block(self) -> tuple[int, ...] | None:
        """The height and width of the blocks, or None if the layout stores elements."""
        return self.values.shape[self.places.ndim :][:2] if self.in_blocks else None

    def with_values(self, values: Any) -> Compressed:
        """Return other values at the same coordinates."""
        return Compressed(self.layout, self.starts, self.places, values)

    def copy(self) -> Compressed:
        """Return a copy in separate memory."""
        return Compressed(self.layout, self.starts.copy(), self.places.copy(), self.values.copy())


class SparseArray(Unread):
    """An array whose elements are in `parts`. Aliases of a tensor share the array."""

    refusal = "Cannot access data pointer of Tensor that doesn't have storage"
    parts: Any
    _sum_of_gradients: ClassVar[Any]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
        if ufunc is not numpy.add:
            raise self.error(self.refusal)
        return self._sum_of_gradients(inputs[0], inputs[1], out)

    def astype(self, dtype: Any, *args: Any, **keywords: Any) -> SparseArray:
        """Return an array with the elements converted to another dtype."""
        return sparse(self.parts.with_values(self.parts.values.astype(dtype)), self.shape)

    def copy(self, order: Any = "K") -> SparseArray:
        """Return a copy of the stored parts."""
        return sparse(self.parts.copy(), self.shape)

    def conj(self) -> SparseArray:
        """Return the complex conjugates."""
        return sparse(self.parts.with_values(self.parts.values.conj()), self.shape)

    def _real(self) -> SparseArray:
        return sparse(self.parts.with_values(self.parts.values.real), self.shape)

    real: Any = property(_real)

    def __deepcopy__(self, memo: Any) -> SparseArray:
        return self.copy()

    def __reduce__(self) -> Any:
        parts = self.parts
        return sparse, (type(parts), self.shape, *(getattr(parts, name) for name in parts.__slots__))

    @property
    def words(self) -> str:
        """The name of the layout in error messages."""
        return self.parts.layout.title().replace("_Coo", "").replace("_", "")


def sparse(parts: Any, shape: tuple[int, ...], *fields: Any) -> SparseArray:
    """Return the array with these parts and this shape. A pickle passes the class of the parts and their fields."""
    if fields:
        parts = parts(**dict(zip(parts.__slots__, fields, strict=True)))
    array = numpy.broadcast_to(numpy.zeros((), parts.values.dtype), shape).view(SparseArray)
    array.parts = parts
    return array
