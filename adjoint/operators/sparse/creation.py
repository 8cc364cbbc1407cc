"""Constructors of sparse tensors. The parts are checked, because indices outside the shape could reach any memory."""

from __future__ import annotations

from typing import Any

import numpy

from ... import dtypes
from ...device import LAYOUTS
from ...dispatch.arguments import invalid_arguments
from ...dispatch.decorators import public
from ...dispatch.sequential import read_array
from ...interchange import tensor_array
from ...kernels.create.data import array_from_data
from ...kernels.sparse import layouts as kernels
from ...tape.aliases import detached
from ...tensor import LEAF, Tensor, can_require_grad, wrap
from ..create.creation import checked_shape, is_meta
from ..memory.conversion import checked_dtype
from .layouts import compressed_of_parts, coo_of_parts


def _as_indices(data: Any) -> Tensor:
    tensor = data if isinstance(data, Tensor) else wrap(array_from_data(data, None, tensor_array))
    return tensor if tensor._array.dtype == numpy.int64 else tensor.detach().to(dtypes.int64)


def _as_values(data: Any, dtype: Any) -> Tensor:
    if not isinstance(data, Tensor):
        return wrap(array_from_data(data, dtype, tensor_array))
    return data if dtype is None else data.to(dtype)


def _finished(tensor: Tensor, requires_grad: bool, values: Any) -> Tensor:
    """Return the tensor as a leaf. The history of `values` remains only if no option is given."""
    if requires_grad:
        if not can_require_grad(tensor._array):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
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
        return _finished(wrap(empty), requires_grad, None)
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
    return _finished(result, requires_grad, values)


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
        data if isinstance(data, Tensor) else wrap(array_from_data(data, None, tensor_array))
        for data in (compressed, plain)
    )
    elements = _as_values(values, checked_dtype(dtype, name))
    by_rows = kind in ("sparse_csr", "sparse_bsr")
    outer, inner = ("crow", "col") if by_rows else ("ccol", "row")
    if starts.dtype is not places.dtype:
        raise RuntimeError(
            f"{outer}_indices and {inner}_indices must have the same dtype, bot got {starts.dtype.scalar_type} and "
            f"{places.dtype.scalar_type}, respectively"
        )
    if starts._array.dtype.name not in ("int32", "int64"):
        raise RuntimeError(
            f"{outer}_indices and {inner}_indices dtype must be Int or Long, but got {starts.dtype.scalar_type}"
        )
    for what, array in ((f"{outer}_indices", starts._array), (f"{inner}_indices", places._array)):
        if array.ndim != 1:
            raise RuntimeError(f"{what} must have dimensionality 1 (no batches of matrices), but got {array.ndim}")
    if not elements._array.ndim:
        raise RuntimeError(
            "values must have dimensionality > sum of batch and block dimensionalities (=0 + 0) but got 0"
        )
    block = elements._array.shape[1:3] if kind in ("sparse_bsr", "sparse_bsc") else (1, 1)
    if len(block) < 2:
        raise RuntimeError("values must have dimensionality > 2, since they are blocks")
    dense = elements._array.shape[3 if kind in ("sparse_bsr", "sparse_bsc") else 1 :]
    if not starts._array.size:
        raise RuntimeError(f"expected {outer}_indices to have at least one element")
    count = starts._array.size - 1
    if size is None:
        other = int(read_array(places).max()) + 1 if places._array.size else 0
        sizes = (count * block[0], other * block[1]) if by_rows else (other * block[0], count * block[1])
        shape = (*sizes, *dense)
    else:
        shape = checked_shape(size, name)
    _check_compressed(starts._array, places._array, elements._array, shape, by_rows, block, (outer, inner), len(dense))
    if check_invariants:
        _check_sorted(starts._array, places._array, by_rows, outer, inner)
    return _finished(compressed_of_parts(starts, places, elements, shape, kind), requires_grad, values)


def _check_compressed(
    starts: Any, places: Any, values: Any, shape: Any, by_rows: bool, block: Any, names: Any, dense: int
) -> None:
    """Raise an error unless the parts satisfy the invariants in PyTorch's documentation."""
    outer, inner = names
    if len(shape) != 2 + dense:
        raise RuntimeError(
            f"tensor dimensionality must be sum of batch, base, and dense dimensionalities (=0 + 2 + {dense}) but got "
            f"{len(shape)}"
        )
    lengths = [shape[0] // block[0], shape[1] // block[1]]
    count, other = lengths if by_rows else lengths[::-1]
    if starts.size != count + 1:
        raise RuntimeError(
            f"{outer}_indices.shape[-1] must be equal to the number of {'rows' if by_rows else 'columns'} + 1 (={count + 1}), "
            f"but got {starts.size}"
        )
    if places.size != values.shape[0]:
        raise RuntimeError(
            f"{inner}_indices.shape[-1] must be equal to nnz (={values.shape[0]}) as defined by values.shape[0], but got "
            f"{places.size}"
        )
    if starts[0] != 0:
        raise RuntimeError(f"`{outer}_indices[..., 0] == 0` is not satisfied.")
    if starts[-1] != places.size:
        raise RuntimeError(f"`{outer}_indices[..., -1] == nnz` is not satisfied.")
    steps = numpy.diff(starts)
    if steps.size and (steps.min() < 0 or steps.max() > other):
        raise RuntimeError(
            f"`0 <= {outer}_indices[..., 1:] - {outer}_indices[..., :-1] <= {'ncols' if by_rows else 'nrows'}` is not satisfied."
        )
    if places.size and (places.min() < 0 or places.max() >= other):
        raise RuntimeError(f"`0 <= {inner}_indices < {'ncols' if by_rows else 'nrows'}` is not satisfied.")


def _check_sorted(starts: Any, places: Any, by_rows: bool, outer: str, inner: str) -> None:
    """Raise an error unless the places in each row (or column) increase."""
    rows = numpy.repeat(numpy.arange(starts.size - 1), numpy.diff(starts))
    if ((numpy.diff(rows) == 0) & (numpy.diff(places) <= 0)).any():
        raise RuntimeError(
            f"`{inner}_indices[..., {outer}_indices[..., i - 1]:{outer}_indices[..., i]] for all i = 1, ..., "
            f"{'nrows' if by_rows else 'ncols'} are sorted and distinct along the last dimension values` is not satisfied."
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
