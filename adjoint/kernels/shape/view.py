"""Views of arrays: other shapes and strides on the same memory, and the transposes of some of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy
from numpy import ndarray

from ...codegen.acceleration import LOOPS
from ...codegen.plans import zeros
from ...codegen.recording import recordable
from ...dtypes import HELD, bfloat16, from_numpy
from ..memory import storage
from ..memory.bounds import whole
from ..memory.copying import clone, contiguous, strided_empty
from ..memory.storage import restrided
from ..runtime.costs import LARGE
from ..runtime.floating import Array, type_name
from ..runtime.narrow_array import kept
from ..runtime.shapes import normalize_dim, normalize_dims

_NO_BUFFER = HELD[bfloat16].char
"""The dtype whose arrays do not support the buffer protocol."""


def expand(self: Any, sizes: tuple[int, ...]) -> Array:
    """Return `self` repeated along dimensions of size 1, and along new leading dimensions, without a copy. -1 keeps a size.

    The result must not be written to, because its elements share memory.
    """
    if type(self) is not ndarray and isinstance(self, numpy.generic):
        self = numpy.asarray(self)  # arithmetic on 0-d arrays returns scalars, which have no array memory
    dtype = self.dtype
    try:
        shape, steps, direct = _expansion(self.shape, self.strides, dtype, sizes)
    except RuntimeError as error:
        raise RuntimeError(str(error).format(_kind(self))) from None
    return ndarray(shape, dtype, self, 0, steps) if direct else restrided(self, shape, steps)


@functools.lru_cache(2048)
def _expansion(
    own: tuple[int, ...], strides: tuple[int, ...], dtype: numpy.dtype[Any], sizes: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    """Return the shape and strides of the expanded array, and whether NumPy can create it directly."""
    lead = len(sizes) - len(own)
    if lead < 0:
        raise RuntimeError(
            f"expand({{}}, size={list(sizes)}): the number of sizes provided ({len(sizes)}) must be greater or equal "
            f"to the number of dimensions in the tensor ({len(own)})"
        )
    shape, steps = list(sizes), [0] * lead + list(strides)
    for dim in range(len(sizes) - 1, -1, -1):
        size = sizes[dim]
        if dim >= lead:
            length = own[dim - lead]
            if size == -1:
                shape[dim] = length
            elif size != length:
                if length != 1:
                    raise RuntimeError(
                        f"The expanded size of the tensor ({size}) must match the existing size ({length}) at non-singleton "
                        f"dimension {dim}.  Target sizes: {list(sizes)}.  Tensor sizes: {list(own)}"
                    )
                steps[dim] = 0
        elif size == -1:
            raise RuntimeError(
                f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {dim}"
            )
        elif size == 1 and own:
            steps[dim] = shape[dim + 1] * steps[dim + 1] if dim + 1 < len(sizes) else dtype.itemsize
    direct = (
        0 not in own
        and dtype.char != _NO_BUFFER
        and strides == tuple(dtype.itemsize * step for step in storage.row_major_steps(own))
    )
    return tuple(shape), tuple(steps), direct


def _kind(array: Array) -> str:
    return f"torch.{type_name(array.dtype)}Tensor{{[{', '.join(map(str, array.shape))}]}}"


def as_strided(self: Array, size: Any, stride: Any, storage_offset: int | None = None) -> Array:
    """Return a view of the storage with the given shape, strides and offset in elements."""
    offset = storage.storage_offset(self) if storage_offset is None else whole(storage_offset)
    try:
        return storage.strided(self, tuple(size), tuple(stride), offset, operation="as_strided")
    except TypeError:  # NumPy's integers, or tensors that represent integers
        return storage.strided(self, tuple(map(whole, size)), tuple(map(whole, stride)), offset, operation="as_strided")


def as_strided_backward(grad: Array, geometry: Any, size: Any, stride: Any, storage_offset: int | None) -> Array:
    """Return the gradient of the input of `as_strided`. Elements of the input that share memory get equal shares of it."""
    flat, start, offset = _zeros_of_both(grad, geometry, size, stride, storage_offset)
    _add_at(flat, size, stride, offset, grad)
    places = storage.strided(flat, geometry.shape, geometry.steps, start)
    return places / _sharing(flat, geometry, start) if storage.overlaps(geometry.shape, geometry.steps) else places


def as_strided_gather(grad: Array, geometry: Any, size: Any, stride: Any, storage_offset: int | None) -> Array:
    """Return `as_strided` of `grad` in memory of this `geometry`. This is the transpose of `as_strided_backward`."""
    flat, start, offset = _zeros_of_both(grad, geometry, size, stride, storage_offset)
    if storage.overlaps(geometry.shape, geometry.steps):
        grad = grad / _sharing(flat, geometry, start)
    _add_at(flat, geometry.shape, geometry.steps, start, grad)
    return storage.strided(flat, tuple(size), tuple(stride), offset).copy()


def _add_at(flat: Array, size: Any, stride: Any, offset: int, values: Array) -> None:
    """Add `values` to zeros at the positions that sizes and strides describe."""
    if not storage.overlaps(size, stride):
        storage.strided(flat, tuple(size), tuple(stride), offset)[...] = values
        return
    places: Any = offset
    for length, step in zip(size, stride, strict=True):
        places = numpy.add.outer(places, numpy.arange(length) * step)
    numpy.add.at(flat, places, values)


def _sharing(flat: Array, geometry: Any, start: int) -> Array:
    """Return the number of elements that share the position of each element, in the dtype of the memory `flat`."""
    counts = numpy.zeros_like(flat)
    _add_at(counts, geometry.shape, geometry.steps, start, counts.dtype.type(1))
    return storage.strided(counts, geometry.shape, geometry.steps, start)


def _zeros_of_both(
    grad: Array, geometry: Any, size: Any, stride: Any, storage_offset: int | None
) -> tuple[Array, int, int]:
    """Return zeros for all elements of an input of `as_strided` and of its view, and the positions of their first elements."""
    count, start, offset = memory_of_both(geometry, size, stride, storage_offset)
    return numpy.zeros(count, dtype=numpy.asarray(grad).dtype), start, offset


def memory_of_both(geometry: Any, size: Any, stride: Any, storage_offset: int | None) -> tuple[int, int, int]:
    """Return the number of elements of an input of `as_strided` and of its view, and the positions of their first elements."""
    offset = 0 if storage_offset is None else storage_offset - geometry.offset
    start, offset = max(-offset, 0), max(offset, 0)
    spans = [0]
    for lengths, strides, first in ((geometry.shape, geometry.steps, start), (size, stride, offset)):
        if 0 not in lengths:
            spans.append(first + 1 + sum((n - 1) * step for n, step in zip(lengths, strides, strict=True)))
    return max(spans), start, offset


def view_strides(shape: tuple[int, ...], strides: tuple[int, ...], size: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the strides with which the same elements have the shape `size`, or None if no such strides exist.

    Adjacent dimensions that form one dimension in memory are matched, starting with the last, with dimensions of
    `size`. The stride of a dimension of size 1 is the extent of the dimension after it.
    """
    result = [0] * len(size)
    target = len(size) - 1
    run, step = 1, strides[-1] if strides else 1
    for dim in range(len(shape) - 1, -1, -1):
        run *= shape[dim]
        if dim and (shape[dim - 1] == 1 or strides[dim - 1] == run * step):
            continue
        held = 1
        while target >= 0 and (held < run or size[target] == 1):
            result[target] = held * step
            held *= size[target]
            target -= 1
        if held != run:
            return None
        if dim:
            run, step = 1, strides[dim - 1]
    return tuple(result) if target < 0 else None


def infer_size(shape: Any, count: int) -> tuple[int, ...]:
    """Return `shape` with its -1 replaced by the size that gives `count` elements."""
    sizes = list(shape)
    known, unknown = 1, None
    for dim, size in enumerate(sizes):
        if size == -1:
            if unknown is not None:
                raise RuntimeError("only one dimension can be inferred")
            unknown = dim
        elif size < 0:
            raise RuntimeError(f"invalid shape dimension {size} at index {dim} of shape {sizes}")
        else:
            known *= size
    if unknown is not None and known and count % known == 0:
        sizes[unknown] = count // known
    elif unknown is not None and not known and count == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {sizes} because the unspecified dimension size -1 can be any "
            "value and is ambiguous"
        )
    elif unknown is not None or known != count:
        raise RuntimeError(f"shape '{sizes}' is invalid for input of size {count}")
    return tuple(sizes)


def view(self: Array, size: tuple[int, ...]) -> Array:
    """Return `self` with another shape on the same memory. Raise RuntimeError if its strides do not permit this."""
    if self.flags.c_contiguous:
        for length in size:
            if length < -1:  # NumPy treats these like -1
                infer_size(size, self.size)
        try:
            return self.reshape(size)
        except ValueError:
            infer_size(size, self.size)
            raise
    size = infer_size(size, self.size)
    strides = view_strides(self.shape, self.strides, size)
    if strides is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    if type(self) is ndarray and {*map(type, strides)} == {int}:  # sizes that a capture follows are not compared
        result = self.reshape(size)  # a view, except that NumPy may choose other strides for dimensions of size 1
        if result.strides == strides:
            return result
    result = restrided(self, size, strides)
    if not self.flags.writeable:
        result.setflags(False)  # type: ignore[call-arg]
    return result


def reshape(self: Array, size: tuple[int, ...]) -> Array:
    """Return an array of another shape, a view if possible. A size of -1 follows from the number of elements."""
    size = infer_size(size, self.size)
    if (
        not self.flags.c_contiguous
        and LOOPS.takes(self.size, LARGE)
        and view_strides(self.shape, self.strides, size) is None
    ):
        self = contiguous(self)
    return self.reshape(size)


def with_shape(self: Array, size: tuple[int, ...]) -> Array:
    """Return an array of the shape `size`, which has no -1."""
    return self.reshape(size)


def reshape_copy(self: Array, size: tuple[int, ...]) -> Array:
    """Return a copy of another shape."""
    return reshape(self, size).copy()


def alias(self: Array) -> Array:
    """Return the array itself, as a view."""
    return self.view()


def copy(self: Array) -> Array:
    """Return a row-major copy."""
    return self.copy()


def squeeze_all(self: Array) -> Array:
    """Return a view without the dimensions of size 1."""
    return self.squeeze() if 1 in self.shape else self.view()


def swapaxes(self: Array, dim0: int, dim1: int) -> Array:
    """Return a view with two dimensions exchanged. A zero-dimensional array is treated as having one dimension."""
    try:
        return self.swapaxes(dim0, dim1)
    except numpy.exceptions.AxisError:
        normalize_dim(dim0, self.ndim)
        normalize_dim(dim1, self.ndim)
        return self.view()


def unsqueeze(self: Array, dim: int) -> Array:
    """Return a view with a dimension of size 1 inserted at `dim`."""
    shape = _with_one(self.shape, dim)
    if self.flags.c_contiguous:
        return self.reshape(shape)
    strides, own = self.strides, self.shape
    dim = dim + len(shape) if dim < 0 else dim
    step = own[dim] * strides[dim] if dim < len(own) else self.itemsize
    return restrided(self, shape, (*strides[:dim], step, *strides[dim:]))


@functools.lru_cache(1024)
def _with_one(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    """Return `shape` with a size of 1 inserted at `dim`."""
    dim = normalize_dim(dim, len(shape) + 1)
    return (*shape[:dim], 1, *shape[dim:])


def squeeze_dim(self: Array, dim: int) -> Array:
    """Return a view without dimension `dim` if its size is 1."""
    shape = self.shape
    dim = normalize_dim(dim, len(shape))
    return self.squeeze(dim) if shape and shape[dim] == 1 else self.view()


def squeeze(self: Array, dims: tuple[int, ...]) -> Array:
    """Return a view without the dimensions in `dims` whose size is 1."""
    wrapped = normalize_dims(dims, self.ndim) if dims else ()
    return self.squeeze(tuple(dim for dim in wrapped if self.shape[dim] == 1))


def t(self: Array) -> Array:
    """Return the transpose of a matrix. A vector is returned unchanged."""
    if self.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    return self.T


def permute(self: Array, dims: tuple[int, ...]) -> Array:
    """Return a view with the dimensions in another order."""
    try:
        return self.transpose(dims)
    except ValueError:
        pass  # raise PyTorch's error below
    if len(dims) != self.ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of "
            f"dimensions i.e. input.dim() = {self.ndim} is not equal to len(dims) = {len(dims)}"
        )
    for dim in dims:
        normalize_dim(dim, self.ndim)
    raise RuntimeError("permute(): duplicate dims are not allowed.")


def inverse_permutation(dims: tuple[int, ...]) -> tuple[int, ...]:
    """Return the order that undoes `dims`."""
    inverse = [0] * len(dims)
    for position, dim in enumerate(dims):
        inverse[dim] = position
    return tuple(inverse)


def _at(dim: int, index: Any) -> tuple[Any, ...]:
    return (slice(None),) * dim + (index,)


def select(self: Array, dim: int, index: int) -> Array:
    """Return the slice at `index` of dimension `dim`."""
    if dim == 0:
        try:
            return self[index, ...]
        except IndexError:
            pass  # raise PyTorch's error below
    if self.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = normalize_dim(dim, self.ndim)
    size = self.shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {dim}"
        )
    return self[(slice(None),) * dim + (index, ...)]


@recordable
def select_backward(grad: Array, shape: tuple[int, ...], dim: int, index: int) -> Array:
    """Return zeros of `shape` with `grad` at `index` of dimension `dim`."""
    result = zeros(shape, grad.dtype)
    result[_at(normalize_dim(dim, len(shape)), index)] = grad
    return result


def slice_dim(self: Array, dim: int, start: int | None, end: int | None, step: int) -> Array:
    """Return every `step`th slice of dimension `dim` from `start` to before `end`. Bounds are limited to the size."""
    if dim == 0 and step > 0 and self.ndim:
        return self[start:end:step]
    if self.ndim == 0:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    return self[_at(normalize_dim(dim, self.ndim), slice(start, end, step))]


@recordable
def slice_backward(grad: Array, shape: tuple[int, ...], dim: int, start: Any, end: Any, step: int) -> Array:
    """Return zeros of `shape` with `grad` in the given slices."""
    result = zeros(shape, grad.dtype)
    result[_at(normalize_dim(dim, len(shape)), slice(start, end, step))] = grad
    return result


def diagonal(self: Array, offset: int, dim1: int, dim2: int) -> Array:
    """Return a view whose last dimension is the diagonal of two dimensions."""
    if dim1 == 0 and dim2 == 1 and self.ndim > 1:
        first, second = 0, 1
    else:
        first, second = normalize_dim(dim1, self.ndim), normalize_dim(dim2, self.ndim)
        if first == second:
            raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if offset:
        offset = max(-self.shape[first], min(offset, self.shape[second]))
    result = self.diagonal(offset, first, second)
    if self.flags.writeable:
        result.setflags(True)  # type: ignore[call-arg]
    return result


@recordable
def diagonal_backward(grad: Array, shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Array:
    """Return zeros of `shape` with `grad` on a diagonal."""
    result = zeros(shape, grad.dtype)
    diagonal(result, offset, dim1, dim2)[...] = grad
    return result


def unfold(self: Array, dimension: int, size: int, step: int) -> Array:
    """Return windows of `size` along `dimension`, at distance `step`, as a new last dimension."""
    dim = normalize_dim(dimension, self.ndim)
    length = self.shape[dim] if self.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {length} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not self.ndim:
        return restrided(self, (size,), (self.itemsize,))
    shape = list(self.shape)
    shape[dim] = (length - size) // step + 1
    steps = list(self.strides)
    inner = steps[dim]
    steps[dim] *= step
    return restrided(self, (*shape, size), (*steps, inner))


def unfold_backward(grad: Array, shape: tuple[int, ...], dimension: int, size: int, step: int) -> Array:
    """Return zeros of `shape` to which the windows are added at their positions."""
    if not shape:
        return numpy.asarray(grad.sum(dtype=grad.dtype))
    result = numpy.zeros(shape, grad.dtype)
    dim = normalize_dim(dimension, len(shape))
    windows = unfold(result, dim, size, step)
    for position in range(size):
        windows[..., position] += grad[..., position]
    return result.reshape(shape)


def unbind(self: Array, dim: int) -> list[Array]:
    """Return the slices of dimension `dim`."""
    if self.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    dim = normalize_dim(dim, self.ndim)
    if dim == 0:
        return [self[index, ...] for index in range(len(self))]
    return [self[(slice(None),) * dim + (index, ...)] for index in range(self.shape[dim])]


def part_sizes(length: int, size: int) -> list[int]:
    """Return the sizes of the parts, at most `size`, into which `length` is split."""
    size = index(size)
    return [min(size, length - start) for start in range(0, length, size)] if length else [0]


def split(self: Array, sizes: int | Sequence[int], dim: int) -> list[Array]:
    """Return the parts of dimension `dim`, of equal size or of the given sizes."""
    if self.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    dim = normalize_dim(dim, self.ndim)
    length = self.shape[dim]
    if hasattr(sizes, "__index__"):
        sizes = index(sizes)
        if sizes < 0:
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={sizes}")
        if sizes == 0 and length:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {length}")
        if dim == 0 and length:
            return [self[start : start + sizes] for start in range(0, length, sizes)]
        sizes = part_sizes(length, sizes)
    else:
        if any(size < 0 for size in sizes):
            raise RuntimeError(
                f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(sizes)}"
            )
        if sum(sizes) != length:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size at dimension {dim}), but "
                f"got split_sizes={list(sizes)}"
            )
    parts, start = [], 0
    for size in sizes:
        parts.append(self[_at(dim, slice(start, start + size))])
        start += size
    return parts


def narrow(self: Array, dim: int, start: int, length: int) -> Array:
    """Return `length` slices of dimension `dim`, from `start` on, with the checks of `narrow_copy`."""
    if self.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if dim >= self.ndim:
        raise RuntimeError("Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.")
    dim = normalize_dim(dim, self.ndim)
    size = self.shape[dim]
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    first = start + size if start < 0 else start
    if length < 0 or first > size - length:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({size}).")
    return self[_at(dim, slice(first, first + length))]


def narrow_copy(self: Array, dim: int, start: int, length: int) -> Array:
    """Return a copy of `narrow`."""
    return narrow(self, dim, start, length).copy()


def as_strided_scatter(self: Array, src: Array, size: Any, stride: Any, storage_offset: int | None = None) -> Array:
    """Return a copy of `self` with `src` at positions in its memory. The shapes must match."""
    start = 0 if storage_offset is None else storage_offset - storage.storage_offset(self)
    return _scatter_into(functools.partial(as_strided, storage_offset=start), self, src, size, stride)


def _scatter_into(view: Callable[..., Array], self: Array, src: Array, *where: Any) -> Array:
    """Return a copy of `self` with `src` written to the part that `view` returns. The shapes must match."""
    copy = _with_its_steps(self)
    shape = view(copy, *where).shape
    if src.shape != shape:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src.shape)}, slice size = {list(shape)}"
        )
    numpy.copyto(view(copy, *where), src, casting="unsafe")
    return copy


select_scatter = functools.partial(_scatter_into, select)
slice_scatter = functools.partial(_scatter_into, slice_dim)
diagonal_scatter = functools.partial(_scatter_into, diagonal)


def _with_its_steps(array: Array) -> Array:
    """Return a copy with the strides of `array`, even if they leave gaps, unless elements overlap."""
    if array.flags.c_contiguous or storage.overlaps(array.shape, array.strides):
        return clone(array)
    copy = strided_empty(array.shape, storage.element_strides(array), array.dtype)
    numpy.copyto(copy, array)
    return copy


def view_as_real(self: Array) -> Array:
    """Return a view with the real and imaginary parts in a last dimension of size 2."""
    if self.dtype.kind not in "cW":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    step = self.itemsize // 2
    return restrided(self, (*self.shape, 2), (*self.strides, step), numpy.dtype(f"f{step}"))


def view_as_complex(self: Array) -> Array:
    """Return complex numbers as a view. The last dimension of size 2 contains their real and imaginary parts."""
    if self.dtype.kind != "f" or self.itemsize == 1:
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{type_name(self.dtype)}"
        )
    if self.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if self.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    steps = storage.element_strides(self)
    if steps[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(step % 2 and size != 1 for step, size in zip(steps[:-1], self.shape, strict=False)):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if storage.storage_offset(self) % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    kind = from_numpy(self.dtype).to_complex().numpy
    return kept(self.view(kind)[..., 0])


def view_dtype(self: Array, kind: Any) -> Array:
    """Return the bytes of `self` as elements of another type. The size of the last dimension changes accordingly."""
    given, wanted = type_name(self.dtype), type_name(kind)
    if kind.itemsize == self.itemsize:
        return kept(self.view(kind))
    if self.ndim == 0:
        raise RuntimeError(f"self.dim() cannot be 0 to view {given} as {wanted} (different element sizes)")
    steps = storage.element_strides(self)
    ratio = kind.itemsize // self.itemsize
    how = f"to view {given} as {wanted} (different element sizes), but got"
    if ratio > 1 and self.shape[-1] % ratio:
        raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {how} {self.shape[-1]}")
    if steps[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {how} {steps[-1]}")
    whole = {"storage_offset()": storage.storage_offset(self)}
    whole |= {f"stride({dim})": step for dim, step in enumerate(steps[:-1])}
    for what, count in whole.items():
        if ratio > 1 and count % ratio and self.size:
            raise RuntimeError(f"self.{what} must be divisible by {ratio} {how} {count}")
    return self.view(kind)
