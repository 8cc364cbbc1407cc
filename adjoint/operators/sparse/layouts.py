"""Tensors with sparse layouts: creation from parts, access to parts, and conversion from and to dense tensors."""

from __future__ import annotations

from typing import Any

from ...device import sparse_coo, strided
from ...dispatch.annotations import Array, Dtype
from ...dispatch.decorators import internal, operator, public
from ...kernels.runtime.sparse_array import Coordinates, SparseArray
from ...kernels.sparse import layouts as kernels
from ...tape.versions import bump
from ...tape.views import check_inplace
from ...tensor import Tensor, wrap
from ..declaring.formulas import same


def linear(kernel: Any, sparse: str, **options: Any) -> Any:
    """Declare a linear operator on a tensor of any layout, with its kernel for sparse layouts (see `Operator`)."""
    return internal(kernel, sparse=sparse, out=False, tangent="linear", **options)


# --- made of parts ----------------------------------------------------------------------------------------------------


@linear(kernels.coo, "result", narrow="converts", node="SparseCooTensorWithDimsAndTensorsBackward0")
class coo_of_parts:
    """A tensor of layout `sparse_coo` made from checked parts."""

    def forward(indices: Array, values: Array, size, is_coalesced): ...

    def grad_values(grad, indices, values_shape, xp):
        return xp.elements_at(grad, indices, values_shape[1:])


@linear(kernels.elements_at, "layouts.elements_at")
class elements_at:
    """The elements, or slices of the shape `dense_shape`, at the columns of `indices`."""

    def forward(self: Array, indices: Array, dense_shape): ...

    def grad_self(grad, indices, self_shape, xp):
        return xp.to_dense_from(xp.coo_of_parts(indices, grad, self_shape, False), None, False, "strided")


@linear(kernels.compressed_of_parts, "result", node="SparseCompressedTensorBackward0", narrow="converts")
class compressed_of_parts:
    """A tensor of one of the four compressed layouts, made from checked parts."""

    def forward(compressed_indices: Array, plain_indices: Array, values: Array, size, layout): ...

    def grad_values(grad, result, xp):
        return xp.values(xp.sparse_mask(grad, result))


@linear(kernels.with_values, "layouts.with_values")
class with_values:
    """`self` with other values at its stored elements."""

    def forward(self: Array, values: Array): ...

    def grad_values(grad, self, xp):
        return xp.values(xp.sparse_mask(grad, self))


# --- their parts ------------------------------------------------------------------------------------------------------


@internal(kernels.stored, sparse="layouts.stored", out=False)
class values:
    """The stored elements."""

    def grad_self(grad, self, xp):
        return xp.with_values(self, grad)


def layout_of(tensor: Tensor) -> str:
    """Return the layout of a tensor as errors name it: `Strided`, `Sparse`, `SparseCsr`, ..."""
    array: Any = tensor._array
    return array.words if isinstance(array, SparseArray) else "Strided"


def _coordinates(tensor: Tensor, function: str) -> Coordinates:
    """Return the parts of a tensor of layout `sparse_coo`. Raise an error for other layouts."""
    if layout_of(tensor) != "Sparse":
        raise RuntimeError(f"{function} expected sparse coordinate tensor layout but got {layout_of(tensor)}")
    array: Any = tensor._array
    parts: Coordinates = array.parts
    return parts


@public(namespace=None, method=("values",))
def stored_values(self, /):
    """Return the stored elements of a sparse tensor. A tensor in the layout of coordinates must be coalesced.

    >>> import adjoint as torch
    >>> torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse().values()
    tensor([2., 3.])
    """
    if layout_of(self) == "Strided":
        raise RuntimeError("values expected sparse tensor layout but got Strided")
    if layout_of(self) == "Sparse" and not self._array.parts.coalesced:
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    return values(self)


@public(namespace=None, method=True)
def indices(self, /):
    """The coordinates of the stored elements of a coalesced tensor. Each column contains one coordinate vector."""
    parts = _coordinates(self, "indices")
    if not parts.coalesced:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return wrap(parts.indices)


@public(namespace=None, method=True)
def _values(self, /):
    """The stored elements without their history. The tensor need not be coalesced."""
    if layout_of(self) == "Strided":
        raise RuntimeError("_values expected sparse tensor layout but got Strided")
    return wrap(self._array.parts.values)


@public(namespace=None, method=True)
def _indices(self, /):
    """The coordinates of the stored elements. The tensor need not be coalesced."""
    return wrap(_coordinates(self, "_indices").indices)


@public(namespace=None, method=True)
def _nnz(self, /):
    """The number of stored elements (or blocks)."""
    if layout_of(self) == "Strided":
        raise NotImplementedError(
            "Could not run 'aten::_nnz' with arguments from the 'CPU' backend. Only sparse tensors store some elements alone."
        )
    return self._array.parts.count


def _compressed_indices(name: str, by_rows: bool, starts: bool) -> Any:
    which = "row" if by_rows else "column"

    def read(self, /):
        array = self._array
        parts = array.parts if isinstance(array, SparseArray) else None
        if parts is None or isinstance(parts, Coordinates) or parts.by_rows != by_rows:
            raise RuntimeError(f"{name} expected sparse {which} compressed tensor layout but got {layout_of(self)}")
        return wrap(parts.starts if starts else parts.places)

    read.__name__ = read.__qualname__ = name
    of = "rows" if by_rows == starts else "columns"
    read.__doc__ = (
        f"Where the stored elements of each of the {of} begin." if starts else f"The {of} of the stored elements."
    )
    return public(namespace=None, method=True)(read)


for _name, _by_rows, _starts in (
    ("crow_indices", True, True),
    ("col_indices", True, False),
    ("ccol_indices", False, True),
    ("row_indices", False, False),
):
    _compressed_indices(_name, _by_rows, _starts)


@public(namespace=None, method=True)
def is_coalesced(self, /):
    """Whether the coordinates are sorted and unique."""
    return _coordinates(self, "is_coalesced").coalesced


@public(namespace=None, method=True)
def _coalesced_(self, coalesced, /):
    """Declare whether the coordinates are sorted and unique."""
    _coordinates(self, "_coalesced_").coalesced = bool(coalesced)
    return self


@public(namespace=None, method=("sparse_dim", "_dimI"))
def sparse_dim(input, /):
    """The number of sparse dimensions; 0 for a dense tensor."""
    array: Any = input._array
    if not isinstance(array, SparseArray):
        return 0
    return len(array.parts.indices) if isinstance(array.parts, Coordinates) else 2


@public(namespace=None, method=("dense_dim", "_dimV"))
def dense_dim(input, /):
    """The number of dense dimensions. A dense tensor has only dense dimensions."""
    array: Any = input._array
    batch = len(array.parts.batch) if isinstance(array, SparseArray) and not isinstance(array.parts, Coordinates) else 0
    return array.ndim - batch - sparse_dim(input)


def _resized(tensor: Tensor, size: Any, sparse_dim: int, dense_dim: int, clear: bool, name: str) -> Tensor:
    parts, shape = _coordinates(tensor, name), tuple(size)
    if len(shape) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(shape)}, sparse_dim = {sparse_dim}, "
            f"dense_dim = {dense_dim}"
        )
    check_inplace(tensor)
    if clear:
        parts = kernels.empty_parts(sparse_dim, shape, tensor._array.dtype)
    elif len(parts.values):
        if sparse_dim != len(parts.indices) or dense_dim != parts.values.ndim - 1:
            raise RuntimeError(
                f"changing the number of sparse or dense dimensions (from {len(parts.indices)} and {parts.values.ndim - 1}) of a "
                "sparse tensor that stores elements is not supported"
            )
        if any(new < old for new, old in zip(shape, tensor.shape, strict=True)):
            raise RuntimeError("shrinking the size of a sparse tensor that stores elements is not supported")
        parts = kernels.grown(parts, shape)
    else:
        parts = kernels.empty_parts(sparse_dim, shape, tensor._array.dtype)
    tensor._array = kernels.sparse(parts, shape)
    bump(tensor, name, depth=2)
    return tensor


@public(namespace=None, method=True)
def sparse_resize_(self, size, sparse_dim, dense_dim):
    """Give the tensor a larger shape in place. Only an empty tensor may change its numbers of dimensions."""
    return _resized(self, size, sparse_dim, dense_dim, False, "sparse_resize_")


@public(namespace=None, method=True)
def sparse_resize_and_clear_(self, size, sparse_dim, dense_dim):
    """Give the tensor a shape in place, and drop its stored elements."""
    return _resized(self, size, sparse_dim, dense_dim, True, "sparse_resize_and_clear_")


@public(method=True)
def resize_as_sparse_(input, template):
    """Give the tensor the shape of another sparse tensor in place, and if the layout is compressed, also its coordinates."""
    if input.layout not in (strided, sparse_coo) or template.layout not in (strided, sparse_coo):
        for name, tensor in (("self", input), ("src", template)):
            if tensor.layout in (strided, sparse_coo):
                raise RuntimeError(
                    f"resize_as_sparse_compressed_: {name}  expected sparse compressed tensor layout but got {layout_of(tensor)}"
                )
        if input.layout is not template.layout:
            raise RuntimeError(
                "resize_as_sparse_compressed_tensor_: self and src must have the same layout, but got: self "
                f"({input._array.words}) and source ({template._array.words})"
            )
        input._array = kernels.at_places_of(template._array, input._array)
        bump(input, "resize_as_sparse_")
        return input
    return _resized(input, template.shape, sparse_dim(template), dense_dim(template), False, "resize_as_sparse_")


# --- conversion -------------------------------------------------------------------------------------------------------


@linear(kernels.to_coo, "layouts.coalesce", node="CoalesceBackward0")
class coalesced:
    """The same tensor with sorted coordinates. Elements at equal coordinates are added up."""

    grad_self = same


@public(namespace=None, method=True)
def coalesce(self, /):
    """The same tensor with sorted, unique coordinates. Elements at equal coordinates are added up.

    A coalesced tensor is returned unchanged.

    >>> import adjoint as torch
    >>> torch.sparse_coo_tensor([[1, 0, 1]], [1.0, 2.0, 3.0], (2,)).coalesce().values()
    tensor([2., 4.])
    """
    return self if _coordinates(self, "coalesce").coalesced else coalesced(self)


@linear(kernels.in_layout, "layouts.in_layout result")
class in_layout:
    """The tensor converted to the layout of this name."""

    def forward(self: Array, layout): ...

    def grad_self(grad, xp):
        return xp.in_layout(grad, "strided")


@linear(kernels.to_dense, "layouts.to_dense", node="ToDenseBackward0")
class to_dense_from:
    """The tensor with all elements. The gradient stores the elements that the tensor stores, unless `masked_grad` is False."""

    def forward(self: Array, dtype, masked_grad, source): ...

    def grad_self(grad, self, masked_grad, source, xp):
        if masked_grad is False:
            return xp.in_layout(grad, source)
        return xp.sparse_mask(grad, xp.coalesced(self) if source == "sparse_coo" else self)


@public(namespace=None, method=True)
def to_dense(input, dtype: Dtype = None, *, masked_grad: bool | None = None):
    """The tensor with all elements.

    A dense tensor is returned unchanged, or converted to `dtype`.

    >>> import adjoint as torch
    >>> torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2)).to_dense()
    tensor([[0., 1.],
            [2., 0.]])
    """
    if layout_of(input) == "Strided":
        return input if dtype is None else input.to(dtype)
    return to_dense_from(input, None if dtype is None else dtype.numpy, masked_grad, _source(input))


@linear(
    lambda self, sparse_dim, source: kernels.to_coo(self, sparse_dim),
    "layouts.to_coo_from result",
    node="ToSparseBackward0",
)
class to_sparse_dims:
    """The tensor with `sparse_dim` sparse dimensions. `source` is the current layout."""

    real_derivative = "_to_sparse"

    def forward(self: Array, sparse_dim, source): ...

    def grad_self(grad, source, xp):
        return xp.in_layout(grad, source)


@linear(
    lambda self, source: kernels.to_coo(self), "layouts.to_coo_from result", narrow="converts", node="ToSparseBackward1"
)
class to_sparse_whole:
    """The tensor with its nonzero elements stored. `source` is the current layout."""

    real_derivative = "_to_sparse"

    def forward(self: Array, source): ...

    def grad_self(grad, source, xp):
        return xp.in_layout(grad, source)


def _to_compressed(layout: str) -> Any:
    """The operator that converts to a compressed layout."""

    @linear(
        lambda self, blocksize, dense_dim, source: kernels.compress(self, layout, blocksize, dense_dim),
        f"layouts.to_{layout} result",
        narrow="converts",
        name=f"to_{layout}_from",
        node=f"To{kernels.layout_name(layout)}Backward0",
    )
    class converted:
        """The tensor in a compressed layout. `source` is the current layout."""

        def forward(self: Array, blocksize, dense_dim, source): ...

        def grad_self(grad, source, xp):
            return xp.in_layout(grad, source)

    return converted


_CONVERTERS = {layout: _to_compressed(layout) for layout in ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")}


def _source(tensor: Tensor) -> str:
    """Return the name of the layout. If it is compressed, the number of dense dimensions and the size of the blocks follow."""
    array: Any = tensor._array
    if not isinstance(array, SparseArray):
        return "strided"
    if isinstance(array.parts, Coordinates):
        return "sparse_coo"
    return " ".join([array.parts.layout, str(dense_dim(tensor)), *map(str, array.parts.block or ())])


def _check_blocksize(input: Tensor, blocksize: Any) -> None:
    """Raise an error unless the size of the blocks is a pair of positive numbers."""
    source = "dense" if layout_of(input) == "Strided" else "sparse"
    if len(blocksize) != 2:
        raise RuntimeError(f"{source}_to_sparse: blocksize needs to be a tuple of size 2, but got {len(blocksize)}")
    if min(blocksize) <= 0:
        raise RuntimeError(f"{source}_to_sparse: blocksize needs to be positive, but got {list(blocksize)}")


def _compressed(input: Tensor, layout: str, blocksize: Any, dense_dim: Any) -> Tensor:
    if layout in ("sparse_bsr", "sparse_bsc"):
        if blocksize is None:
            raise RuntimeError(
                f"to_{layout} for {layout_of(input)} to {kernels.layout_name(layout)} conversion requires blocksize"
            )
        blocksize = (blocksize,) * 2 if isinstance(blocksize, int) else tuple(blocksize)
        _check_blocksize(input, blocksize)
    if _source(input).split()[0] == layout and blocksize is None:
        return input
    result: Tensor = _CONVERTERS[layout](input, blocksize, dense_dim, _source(input))
    return result


@public(namespace=None, method=True)
def to_sparse(input, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """The tensor in a sparse layout. The default is the layout of coordinates.

    Args:
        sparse_dim: the number of leading sparse dimensions; by default all.
        layout: the layout of the result.
        blocksize: the size of the blocks in block layouts.
        dense_dim: the number of trailing dense dimensions in compressed layouts.

    >>> import adjoint as torch
    >>> torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    tensor(indices=tensor([[0, 1],
                           [1, 0]]),
           values=tensor([2., 3.]),
           size=(2, 2), nnz=2, layout=torch.sparse_coo)
    """
    if blocksize is not None and not isinstance(blocksize, int):
        _check_blocksize(input, blocksize)
    if layout is not None and layout is not sparse_coo:
        name = repr(layout).removeprefix("torch.")
        if name == "strided":
            return to_dense(input)
        return _compressed(input, name, blocksize, dense_dim)
    if layout_of(input) == "Sparse":
        if sparse_dim not in (None, len(input._array.parts.indices)):
            raise RuntimeError(
                "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported"
            )
        return input
    if sparse_dim is None:
        return to_sparse_whole(input, _source(input))
    return to_sparse_dims(input, sparse_dim, _source(input))


@public(namespace=None, method=True)
def to_sparse_coo(input, /):
    """The tensor in the layout of coordinates."""
    return to_sparse(input)


def _to_layout(layout: str, doc: str) -> None:
    def convert(input, dense_dim=None):
        return _compressed(input, layout, None, dense_dim)

    def convert_to_blocks(input, blocksize, dense_dim=None):
        return _compressed(input, layout, blocksize, dense_dim)

    function = convert_to_blocks if "sparse_bs" in layout else convert
    function.__doc__ = doc
    public(namespace=None, method=True, name=f"to_{layout}")(function)


_to_layout(
    "sparse_csr",
    """The matrix with compressed rows: the start of each row, and the column and the value of each stored element.

    >>> import adjoint as torch
    >>> torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csr().crow_indices()
    tensor([0, 1, 2])
    """,
)
_to_layout("sparse_csc", "The matrix with compressed columns.")
_to_layout("sparse_bsr", "The matrix as blocks, with compressed rows of blocks.")
_to_layout("sparse_bsc", "The matrix as blocks, with compressed columns of blocks.")


@operator(
    kernel=kernels.sparse_mask,
    sparse="layouts.sparse_mask result",
    namespace=None,
    method=True,
    out=False,
    tangent="linear",
)
class sparse_mask:
    """The elements of the tensor at the stored elements of `mask`, in the layout of `mask`.

    >>> import adjoint as torch
    >>> mask = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).to_sparse()
    >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]]).sparse_mask(mask).values()
    tensor([2., 3.])
    """

    def forward(self: Array, mask: Array): ...

    def grad_self(grad, mask, xp):
        return xp.to_dense_from(xp.sparse_mask(grad, mask), None, False, "strided")
