"""Constructors of sparse tensors. The parts are checked, because indices outside the shape could reach any memory."""

from __future__ import annotations

from typing import Any

import numpy

from ... import dtypes
from ...device import LAYOUTS
from ...dispatch.arguments import invalid_arguments
from ...dispatch.decorators import public
from ...dispatch.sequential import data_array, read_array
from ...kernels.create.data import array_from_data
from ...kernels.sparse import layouts as kernels
from ...tape.aliases import detached
from ...tensor import LEAF, Tensor, wrap
from ..create.creation import check_requires_grad, checked_shape, is_meta
from ..memory.conversion import checked_dtype
from .layouts import compressed_of_parts, coo_of_parts


def _as_indices(data: Any) -> Tensor:
    tensor = data if isinstance(data, Tensor) else wrap(array_from_data(data, None, data_array))
    return tensor if tensor._array.dtype == numpy.int64 else tensor.detach().to(dtypes.int64)


def _as_values(data: Any, dtype: Any) -> Tensor:
    if not isinstance(data, Tensor):
        return wrap(array_from_data(data, dtype, data_array))
    return data if dtype is None else data.to(dtype)


def _finished(tensor: Tensor, requires_grad: bool) -> Tensor:
    """Return the tensor, or a leaf without the history of its elements if it should require grad."""
    if requires_grad:
        check_requires_grad(True, tensor._array.dtype)
        tensor = detached(tensor, None)
        tensor._edge = LEAF
    return tensor


@public()
def sparse_coo_tensor(
    indices=None,
    values=None,
    size=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced=None,
):
    """A tensor that stores `values` at the coordinates in the columns of `indices`. All other elements are zero.

    Values at equal coordinates are added. `values` may have dense dimensions after its first dimension.

    Args:
        indices: the coordinates, of shape (sparse dimensions, elements). Without `values`, this argument is the size of
            the tensor.
        values: the elements; omitted if `indices` is omitted.
        size: the shape; by default the smallest shape that contains all coordinates.
        dtype: the dtype of the elements; by default the dtype of `values`.
        requires_grad: whether operations on the result are recorded.
        check_invariants: whether to check `is_coalesced`. The indices are always checked.
        is_coalesced: whether the coordinates are known to be sorted and unique.

    Raises:
        RuntimeError: if indices are outside the size, or if the parts do not fit together.

    >>> import adjoint as torch
    >>> torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    if device is not None and is_meta(device):
        raise NotImplementedError("sparse tensors are not on the device meta")
    if indices is None and (size is None or values is not None):
        raise invalid_arguments("sparse_coo_tensor", *(() if values is None else (values,)))
    if values is None:
        shape = checked_shape(indices if size is None else size, "sparse_coo_tensor")
        kind = dtypes.get_default_dtype() if dtype is None else checked_dtype(dtype, "sparse_coo_tensor")
        empty = kernels.coo(numpy.zeros((len(shape), 0), numpy.int64), numpy.zeros(0, kind.numpy), shape, True)
        return _finished(wrap(empty), requires_grad)
    places, elements = _as_indices(indices), _as_values(values, checked_dtype(dtype, "sparse_coo_tensor"))
    if elements._array.ndim == 0:
        elements = elements.reshape((1,))
    rows = read_array(places)
    if rows.ndim != 2:
        if rows.ndim != 1:
            raise RuntimeError(
                f"indices must be sparse_dim x nnz, but got: {list(rows.shape)}"
                if rows.ndim
                else "indices must be sparse_dim x nnz"
            )
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {1 if size is None else len(size)}, "
            f"sparse_dim = {rows.shape[0]}, dense_dim = {elements._array.ndim - 1}"
        )
    count, dense = rows.shape[0], elements._array.shape[1:]
    if size is None:
        found = [int(row.max()) + 1 if row.size else 0 for row in rows]
        if rows.size and rows.min() < 0:
            raise RuntimeError(f"found negative index {rows.min()} for dim {int(rows.min(1).argmin())}")
        shape = (*found, *dense)
    else:
        shape = checked_shape(size, "sparse_coo_tensor")
        if len(shape) != count + len(dense):
            raise RuntimeError(
                f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(shape)}, sparse_dim = {count}, "
                f"dense_dim = {len(dense)}"
            )
    _check_coordinates(rows, elements._array, shape)
    if is_coalesced and check_invariants and (numpy.diff(kernels.keys(rows, shape[:count])) <= 0).any():
        raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")
    result = coo_of_parts(places, elements, shape, bool(is_coalesced))
    return _finished(result, requires_grad)


def _check_coordinates(indices: Any, values: Any, shape: tuple[int, ...]) -> None:
    """Raise an error unless each column has one value of the right shape, and all coordinates are inside the shape."""
    if indices.shape[1] != values.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {indices.shape[1]}, nnz from values: "
            f"{values.shape[0]}"
        )
    dense = values.shape[1:]
    if tuple(shape[len(indices) :]) != dense:
        raise RuntimeError(
            f"values has incorrect size, expected {[values.shape[0], *shape[len(indices) :]]}, got {list(values.shape)}"
        )
    for dim, row in enumerate(indices):
        if row.size and row.min() < 0:
            raise RuntimeError(f"found negative index {row.min()} for dim {dim}")
        if row.size and row.max() >= shape[dim]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {shape[dim]} but found index {row.max()}"
            )


def _compressed(
    name: str,
    layout: Any,
    compressed: Any,
    plain: Any,
    values: Any,
    size: Any,
    dtype: Any,
    requires_grad: Any,
    check_invariants: bool | None,
) -> Tensor:
    if layout is None:
        raise RuntimeError("sparse_compressed_tensor() expected a compressed layout")
    kind = repr(layout).removeprefix("torch.")
    starts, places = (
        data if isinstance(data, Tensor) else wrap(array_from_data(data, None, data_array))
        for data in (compressed, plain)
    )
    elements = _as_values(values, checked_dtype(dtype, name))
    check = _CompressedParts(kind, starts._array, places._array, elements._array)
    check.dimensions()
    shape = check.smallest_shape() if size is None else checked_shape(size, name)
    check.sizes(shape)
    if check_invariants:
        check.order()
    return _finished(compressed_of_parts(starts, places, elements, shape, kind), requires_grad)


class _CompressedParts:
    """Checks that the parts satisfy the invariants in PyTorch's documentation. Each raises a RuntimeError."""

    def __init__(self, kind: str, starts: Any, places: Any, values: Any) -> None:
        self.by_rows = kind in ("sparse_csr", "sparse_bsr")
        self.blocks = 2 if kind in ("sparse_bsr", "sparse_bsc") else 0
        self.outer, self.inner = ("crow", "col") if self.by_rows else ("ccol", "row")
        self.lines, self.others = ("rows", "ncols") if self.by_rows else ("columns", "nrows")
        self.starts, self.places, self.values = starts, places, values

    def dimensions(self) -> None:
        """Check dtypes, contiguity and numbers of dimensions."""
        starts, places, outer, inner = self.starts, self.places, f"{self.outer}_indices", f"{self.inner}_indices"
        for what, array in ((outer, starts), (inner, places)):
            if array.ndim and array.shape[-1] > 1 and array.strides[-1] != array.itemsize:
                raise RuntimeError(f"expected {what} to be a contiguous tensor per batch")
        if not starts.ndim:
            raise RuntimeError(f"{outer} must have dimensionality >= 1 but got 0")
        if starts.ndim != places.ndim:
            raise RuntimeError(
                f"{outer} and {inner} dimensionalities must be equal but got {starts.ndim} and {places.ndim}, respectively"
            )
        self.batch = starts.shape[:-1]
        if self.values.ndim <= len(self.batch) + self.blocks:
            raise RuntimeError(
                "values must have dimensionality > sum of batch and block dimensionalities "
                f"(={len(self.batch)} + {self.blocks}) but got {self.values.ndim}"
            )
        kinds = [dtypes.from_numpy(array.dtype) for array in (starts, places)]
        if kinds[0] is not kinds[1]:
            raise RuntimeError(
                f"{outer} and {inner} must have the same dtype, bot got {kinds[0].scalar_type} and {kinds[1].scalar_type}, "
                "respectively"
            )
        if kinds[0] not in (dtypes.int32, dtypes.int64):
            raise RuntimeError(f"{outer} and {inner} dtype must be Int or Long, but got {kinds[0].scalar_type}")
        if not starts.shape[-1]:
            raise RuntimeError(f"expected {outer} to have at least one element")
        rest = self.values.shape[starts.ndim :]
        self.block, self.dense = rest[: self.blocks] or (1, 1), rest[self.blocks :]

    def smallest_shape(self) -> tuple[int, ...]:
        """Return the smallest shape that has all places."""
        lengths = self.starts.shape[-1] - 1, int(self.places.max()) + 1 if self.places.size else 0
        rows, columns = lengths if self.by_rows else lengths[::-1]
        return *self.batch, rows * self.block[0], columns * self.block[1], *self.dense

    def sizes(self, shape: tuple[int, ...]) -> None:
        """Check that the parts fit the shape, and that all places are inside."""
        starts, places, outer, inner = self.starts, self.places, f"{self.outer}_indices", f"{self.inner}_indices"
        batch, dense, nnz = len(self.batch), len(self.dense), self.values.shape[len(self.batch)]
        if len(shape) != batch + 2 + dense:
            raise RuntimeError(
                f"tensor dimensionality must be sum of batch, base, and dense dimensionalities (={batch} + 2 + {dense}) but "
                f"got {len(shape)}"
            )
        batches = [list(part[:batch]) for part in (self.batch, places.shape, self.values.shape, shape)]
        if any(part != batches[-1] for part in batches):
            raise RuntimeError(
                f"all batch dimensions of {outer} (={batches[0]}), {inner} (={batches[1]}), and values (={batches[2]}) must be "
                f"equal to tensor batch dimensions (={batches[3]})"
            )
        for dim, length in enumerate(self.block):
            if length and shape[batch + dim] % length:
                raise RuntimeError(
                    f"tensor shape[{batch + dim}] (={shape[batch + dim]}) must be divisible with blocksize[{dim}] (={length}) as "
                    "defined by values shape"
                )
        lengths = [shape[batch + dim] // max(self.block[dim], 1) for dim in (0, 1)]
        count, other = lengths if self.by_rows else lengths[::-1]
        if starts.shape[-1] != count + 1:
            lines = f"{self.lines[:-1]} blocks" if self.blocks else self.lines
            raise RuntimeError(
                f"{outer}.shape[-1] must be equal to the number of {lines} + 1 (={count + 1}), but got {starts.shape[-1]}"
            )
        if places.shape[-1] != nnz:
            raise RuntimeError(
                f"{inner}.shape[-1] must be equal to nnz (={nnz}) as defined by values.shape[{batch}], but got "
                f"{places.shape[-1]}"
            )
        if list(self.values.shape[len(self.values.shape) - dense :]) != list(shape[batch + 2 :]):
            raise RuntimeError(
                f"values has dense dimensions {list(self.dense)}, but the size has {list(shape[batch + 2 :])}"
            )
        if (starts[..., 0] != 0).any():
            raise RuntimeError(f"`{outer}[..., 0] == 0` is not satisfied.")
        if (starts[..., -1] != nnz).any():
            raise RuntimeError(f"`{outer}[..., -1] == nnz` is not satisfied.")
        steps = numpy.diff(starts)
        if steps.size and (steps.min() < 0 or steps.max() > other):
            raise RuntimeError(f"`0 <= {outer}[..., 1:] - {outer}[..., :-1] <= {self.others}` is not satisfied.")
        if places.size and (places.min() < 0 or places.max() >= other):
            raise RuntimeError(f"`0 <= {inner} < {self.others}` is not satisfied.")

    def order(self) -> None:
        """Check that the places in each row (or column) increase."""
        lengths = numpy.diff(self.starts).reshape(-1)
        lines = numpy.repeat(numpy.arange(lengths.size), lengths)
        if ((numpy.diff(lines) == 0) & (numpy.diff(self.places.reshape(-1)) <= 0)).any():
            raise RuntimeError(
                f"`{self.inner}_indices[..., {self.outer}_indices[..., i - 1]:{self.outer}_indices[..., i]] for all i = 1, ..., "
                f"n{self.lines.replace('umns', 's')} are sorted and distinct along the last dimension values` is not satisfied."
            )


def _constructor(kind: str) -> Any:
    by_rows = kind in ("csr", "bsr")
    outer, inner = ("crow_indices", "col_indices") if by_rows else ("ccol_indices", "row_indices")
    layout = LAYOUTS[f"sparse_{kind}"]

    def construct(
        compressed, plain, values, size=None, *, dtype=None, device=None, pin_memory=False,
        requires_grad: bool = False, check_invariants: bool | None = None,
    ):  # fmt: skip
        return _compressed(
            construct.__name__, layout, compressed, plain, values, size, dtype, requires_grad, check_invariants
        )

    construct.__name__ = construct.__qualname__ = f"sparse_{kind}_tensor"
    names = {"compressed": outer, "plain": inner}
    code = construct.__code__
    construct.__code__ = code.replace(co_varnames=tuple(names.get(name, name) for name in code.co_varnames))
    what = "rows" if by_rows else "columns"
    stored = "blocks" if kind[0] == "b" else "elements"
    construct.__doc__ = f"""A matrix of layout `{layout!r}`: compressed {what}.

    Args:
        {outer}: where the stored {stored} of each of the {what} begin, and their number.
        {inner}: the places of the stored {stored} in their {what}.
        values: the {stored}.
        size: the shape; by default the smallest that has all places.
        dtype: that of the elements; by default that of `values`.
        requires_grad: whether operations on the result are recorded.
        check_invariants: whether the places must be sorted and distinct. The other conditions are always checked.

    Raises:
        RuntimeError: for parts that do not fit together.
    """
    return public()(construct)


for _kind in ("csr", "csc", "bsr", "bsc"):
    _constructor(_kind)


@public()
def sparse_compressed_tensor(
    compressed_indices, plain_indices, values, size=None, *, dtype=None, layout=None, device=None, pin_memory=False,
    requires_grad: bool = False, check_invariants: bool | None = None,
):  # fmt: skip
    """A matrix in the compressed layout `layout`; see `sparse_csr_tensor`."""
    given = compressed_indices, plain_indices, values, size, dtype, requires_grad, check_invariants
    return _compressed("sparse_compressed_tensor", layout, *given)
