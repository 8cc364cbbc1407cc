"""Views: other shapes, strides and windows on the memory of a tensor. They share its storage and version counter."""

from __future__ import annotations

import warnings
from typing import Any

import numpy

from .. import dtypes
from ..kernels import view as kernels
from ..tape import views
from ..tape.node import Node, start
from ..tape.saved import detached, mark_inference, shared_counter
from ..tensor import Tensor, wrap_dim
from .build import operator, public
from .declaration import OPERATORS

# ruff: noqa: D101, N801  (declarations are named as the functions they become)


def sizes_of(sizes: tuple[Any, ...], function: str, name: str = "size") -> tuple[int, ...]:
    """Sizes given one by one or as one sequence."""
    if len(sizes) == 1 and not isinstance(sizes[0], int) and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    for position, size in enumerate(sizes):
        if type(size) is not int:
            if not hasattr(size, "__index__"):
                raise TypeError(
                    f"{function}(): argument '{name}' (position {position + 1}) must be tuple of ints, not "
                    f"{type(size).__name__}"
                )
            sizes = tuple(int(size) for size in sizes)
            break
    return sizes


def dims_of(dims: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions counted from the front; RuntimeError if one is named twice."""
    wrapped = tuple(wrap_dim(dim, ndim) for dim in ((dims,) if isinstance(dims, int) else dims))
    for position, dim in enumerate(wrapped):
        if dim in wrapped[:position]:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
    return wrapped


# --- another shape --------------------------------------------------------------------------------------------


@operator(view=True, namespace=None, method=False, node="ViewBackward0")
class view_shape:
    """`input` with another shape on the same memory."""

    def forward(self: Array, size):
        return kernels.view(self, size)

    def grad_self(grad, self_shape):
        return grad.reshape(self_shape)


@operator(namespace=None, method=False, node="UnsafeViewBackward0")
class unsafe_view:
    """`input`, a tensor nobody else has, with another shape."""

    def forward(self: Array, size):
        return self.reshape(size)

    def grad_self(grad, self_shape):
        return grad.reshape(self_shape)


@operator(view=True, namespace=None, method=False, node="ViewBackward0")
class view_dtype:
    """The bytes of `input` read as elements of another dtype."""

    def forward(self: Array, dtype):
        return kernels.view_dtype(self, dtype.numpy)


@public(namespace=None, method=("view",))
def view(input, *size, dtype=None):
    """The tensor with another shape, or its bytes as another dtype, on the same memory.

    >>> import adjoint as torch
    >>> torch.arange(6).view(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if not size or isinstance(size[0], dtypes.dtype):
        dtype = size[0] if size else dtype
    if dtype is not None:
        return view_dtype(input, dtype)
    return view_shape(input, size if type(size[0]) is int else sizes_of(size, "view"))


@public(method=("view_as",), namespace=None)
def view_as(input, other):
    """The tensor viewed with the shape of `other`."""
    return view_shape(input, other._array.shape)


def reshaped_array(array, size):
    """`reshape` on arrays."""
    return array.reshape(kernels.infer_size(size, array.size))


@public(method=False, on_arrays=reshaped_array)
def reshape(input, shape):
    """The tensor with another shape: a view where the strides allow it, otherwise a copy.

    >>> import adjoint as torch
    >>> torch.arange(4).reshape(2, 2).t().reshape(4)
    tensor([0, 2, 1, 3])
    """
    shape = sizes_of((shape,), "reshape", "shape")
    if input._array.flags.c_contiguous:
        return view_shape(input, shape)
    shape = kernels.infer_size(shape, input._array.size)
    if kernels.reshape_strides(input._array, shape) is not None:
        return view_shape(input, shape)
    return unsafe_view(input.clone(), shape)


@public(namespace=None, method=("reshape",))
def reshape_method(input, *shape, **names):
    """The method of `adjoint.reshape`: sizes one by one or as a sequence."""
    if names:
        return reshape(input, names["shape"])
    if len(shape) == 1 and type(shape[0]) is tuple:
        shape = shape[0]
    if input._array.flags.c_contiguous:
        return view_shape(input, shape if shape and type(shape[0]) is int else sizes_of(shape, "reshape", "shape"))
    return reshape(input, shape)


@public(method=("reshape_as",), namespace=None)
def reshape_as(input, other):
    """The tensor reshaped to the shape of `other`."""
    return reshape(input, other._array.shape)


@public(method=True)
def flatten(input, start_dim=0, end_dim=-1):
    """The dimensions from `start_dim` to `end_dim` made into one."""
    ndim = input._array.ndim
    first, last = wrap_dim(start_dim, ndim), wrap_dim(end_dim, ndim)
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if ndim == 0:
        return reshape(input, (1,))
    if first == last:
        return input
    shape = input._array.shape
    count = 1
    for size in shape[first : last + 1]:
        count *= size
    return reshape(input, (*shape[:first], count, *shape[last + 1 :]))


@public(method=True)
def unflatten(input, dim, sizes):
    """Dimension `dim` made into several of the given sizes, of which one may be -1."""
    dim = wrap_dim(dim, input._array.ndim)
    shape = input._array.shape
    sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    try:
        sizes = kernels.infer_size(sizes, shape[dim])
    except RuntimeError:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({shape[dim]}) in the input "
            "tensor"
        ) from None
    return view_shape(input, (*shape[:dim], *sizes, *shape[dim + 1 :]))


@public(method=True)
def ravel(input):
    """The tensor with one dimension."""
    return reshape(input, (-1,)) if input._array.ndim != 1 else input


@operator(view=True)
class unsqueeze:
    """A dimension of size 1 inserted at `dim`."""

    def forward(self: Array, dim):
        return kernels.unsqueeze(self, dim)

    def grad_self(grad, dim, self_shape):
        return grad.reshape(self_shape)


@operator(view=True, namespace=None, method=False, node="SqueezeBackward0")
class squeeze_all:
    """All dimensions of size 1 dropped."""

    def forward(self: Array):
        return self.reshape([size for size in self.shape if size != 1]) if 1 in self.shape else self.view()

    def grad_self(grad, self_shape):
        return grad.reshape(self_shape)


@operator(view=True, namespace=None, method=False, node="SqueezeBackward1")
class squeeze_dim:
    """Dimension `dim` dropped if its size is 1."""

    def forward(self: Array, dim):
        return kernels.squeeze(self, (dim,))

    def grad_self(grad, self_shape, dim):
        return grad.reshape(self_shape)


@operator(view=True, namespace=None, method=False, node="SqueezeBackward2")
class squeeze_dims:
    """Those of the dimensions `dim` dropped whose size is 1."""

    def forward(self: Array, dim):
        return kernels.squeeze(self, dim)

    def grad_self(grad, self_shape, dim):
        return grad.reshape(self_shape)


@public(method=True)
def squeeze(input, dim=None, *, axis=None):
    """Dimensions of size 1 dropped: all of them, or those among `dim`."""
    dim = axis if dim is None else dim
    if dim is None:
        return squeeze_all(input)
    return squeeze_dim(input, dim) if isinstance(dim, int) else squeeze_dims(input, tuple(dim))


@operator(view=True, namespace=None, method=False)
class expand:
    """Dimensions of size 1 repeated to the given sizes without copying."""

    def forward(self: Array, size):
        return kernels.expand(self, size)

    def grad_self(grad, self_shape, xp):
        return xp.sum_to_size(grad, self_shape)


@public(namespace=None, method=("expand",))
def expand_method(input, *size, implicit=False, **names):
    """Dimensions of size 1 repeated to the given sizes without copying; -1 keeps a size."""
    return expand(input, sizes_of(size or (names["size"],), "expand"))


@public(namespace=None, method=("expand_as",))
def expand_as(input, other):
    """The tensor expanded to the shape of `other`."""
    return expand(input, other._array.shape)


@public(method=True)
def broadcast_to(input, size):
    """The tensor broadcast to `size` without copying."""
    return expand(input, sizes_of((size,), "broadcast_to"))


# --- another order --------------------------------------------------------------------------------------------


@operator(view=True, alias=("swapaxes", "swapdims"))
class transpose:
    """Dimensions `dim0` and `dim1` exchanged."""

    def forward(self: Array, dim0, dim1):
        return kernels.swapaxes(self, dim0, dim1)

    def grad_self(grad, dim0, dim1):
        return grad.swapaxes(dim0, dim1)


@operator(view=True)
class t:
    """The transpose of a matrix; a vector as it is."""

    def forward(self: Array):
        return kernels.t(self)

    def grad_self(grad):
        return grad.T


@operator(view=True, namespace=None, method=False)
class permute:
    """The dimensions in another order."""

    def forward(self: Array, dims):
        return kernels.permute(self, dims)

    def grad_self(grad, dims, xp):
        return xp.permute(grad, kernels.inverse_permutation(dims))


@public(name="permute")
def permute_function(input, dims):
    """The dimensions in another order, as a view.

    >>> import adjoint as torch
    >>> torch.permute(torch.zeros(2, 3, 5), (2, 0, 1)).shape
    torch.Size([5, 2, 3])
    """
    return permute(input, tuple(dims))


@public(namespace=None, method=("permute",))
def permute_method(input, *dims, **names):
    """The dimensions in another order, one by one or as a sequence."""
    return permute(input, sizes_of(dims or (names["dims"],), "permute", "dims"))


@public(method=True, alias=("moveaxis",))
def movedim(input, source, destination):
    """The dimensions `source` moved to the positions `destination`, the others in their order."""
    ndim = input._array.ndim
    source = (source,) if isinstance(source, int) else tuple(source)
    destination = (destination,) if isinstance(destination, int) else tuple(destination)
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same number of dims "
            f"as destination ({list(destination)} dims)"
        )
    moved = dict(zip(_unique(destination, ndim, "destination"), _unique(source, ndim, "source"), strict=True))
    rest = iter([dim for dim in range(ndim) if dim not in moved.values()])
    return permute(input, tuple(moved[dim] if dim in moved else next(rest) for dim in range(ndim)))


def _unique(dims, ndim, name):
    wrapped = [wrap_dim(dim, ndim) for dim in dims]
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(dims)})")
    return wrapped


def _matrix_transpose(input):
    if input._array.ndim < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {input._array.ndim}-D tensor."
        )
    return transpose(input, -2, -1)


def _reversed_dims(input):
    ndim = input._array.ndim
    if ndim == 0:
        warnings.warn(
            "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.", UserWarning, stacklevel=2
        )
    elif ndim != 2:
        warnings.warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw an error "
            "in a future release. Consider `x.mT` to transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, "
            "-1))` to reverse the dimensions of a tensor.",
            UserWarning,
            stacklevel=2,
        )
    return permute(input, tuple(reversed(range(input._array.ndim))))


@public(method=True)
def adjoint(input):
    """The conjugate of the matrix transpose."""
    if input._array.ndim < 2:
        raise RuntimeError(
            f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {input._array.ndim}-D tensor."
        )
    return transpose(input, -2, -1).conj()


def _conjugate_transpose(input):
    if input._array.ndim not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {input._array.ndim}-D tensor."
            + (" For batches of matrices, consider using tensor.mH" if input._array.ndim > 2 else "")
        )
    return transpose(input, 0, 1).conj() if input._array.ndim else input.conj()


Tensor.T = property(_reversed_dims, doc="The dimensions reversed.")
Tensor.mT = property(_matrix_transpose, doc="The last two dimensions exchanged.")
Tensor.H = property(_conjugate_transpose, doc="The conjugate transpose of a matrix.")
Tensor.mH = property(adjoint, doc="The conjugate of the last two dimensions exchanged.")


# --- a part ---------------------------------------------------------------------------------------------------


@operator(view=True)
class select:
    """The slice at `index` of dimension `dim`, which disappears."""

    def forward(self: Array, dim, index):
        return kernels.select(self, dim, index)

    def grad_self(grad, self_shape, dim, index, xp):
        return xp.select_backward(grad, self_shape, dim, index)


@operator(namespace=None, method=False)
class select_backward:
    """Zeros of `shape` with `input` at `index` of dimension `dim`."""

    def forward(self: Array, shape, dim, index):
        return kernels.select_backward(self, shape, dim, index)

    def grad_self(grad, dim, index, xp):
        return xp.select(grad, dim, index)


@operator(view=True, namespace=None, method=False)
class slice:
    """Every `step`th slice of dimension `dim` from `start` to before `end`."""

    def forward(self: Array, dim=0, start=None, end=None, step=1):
        return kernels.slice_dim(self, dim, start, end, step)

    def grad_self(grad, self_shape, dim, start, end, step, xp):
        return xp.slice_backward(grad, self_shape, dim, start, end, step)


@operator(namespace=None, method=False)
class slice_backward:
    """Zeros of `shape` with `input` in the given slices of dimension `dim`."""

    def forward(self: Array, shape, dim, start, end, step):
        return kernels.slice_backward(self, shape, dim, start, end, step)

    def grad_self(grad, dim, start, end, step, xp):
        return xp.slice(grad, dim, start, end, step)


@public(method=True)
def narrow(input, dim, start, length):
    """`length` slices of dimension `dim`, from `start` on."""
    array = input._array
    if array.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if isinstance(start, Tensor):
        if start._array.ndim or start._array.dtype.kind not in "iu":
            raise RuntimeError("start must be an 0-dim integral Tensor.")
        start = int(start)
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    dim = wrap_dim(dim, array.ndim)
    size = array.shape[dim]
    if not -size <= start <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {start})"
        )
    start = start + size if start < 0 else start
    if start > size - length:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return slice(input, dim, start, start + length, 1)


@operator(view=True)
class diagonal:
    """The diagonal of dimensions `dim1` and `dim2`, as the last dimension."""

    def forward(self: Array, offset=0, dim1=0, dim2=1):
        return kernels.diagonal(self, offset, dim1, dim2)

    def grad_self(grad, self_shape, offset, dim1, dim2, xp):
        return xp.diagonal_backward(grad, self_shape, offset, dim1, dim2)


@operator(namespace=None, method=False)
class diagonal_backward:
    """Zeros of `shape` with `input` on a diagonal."""

    def forward(self: Array, shape, offset, dim1, dim2):
        return kernels.diagonal_backward(self, shape, offset, dim1, dim2)

    def grad_self(grad, offset, dim1, dim2, xp):
        return xp.diagonal(grad, offset, dim1, dim2)


@operator(view=True, namespace=None)
class unfold:
    """Windows of `size` along `dimension`, every `step` apart, as a new last dimension."""

    def forward(self: Array, dimension, size, step):
        return kernels.unfold(self, dimension, size, step)

    def grad_self(grad, self_shape, dimension, size, step, xp):
        return xp.unfold_backward(grad, self_shape, dimension, size, step)


@operator(namespace=None, method=False)
class unfold_backward:
    """Zeros of `shape` to which the windows are added where they came from."""

    def forward(self: Array, shape, dimension, size, step):
        return kernels.unfold_backward(self, shape, dimension, size, step)

    def grad_self(grad, dimension, size, step, xp):
        return xp.unfold(grad, dimension, size, step)


# --- several parts --------------------------------------------------------------------------------------------


@operator(view=True)
class unbind:
    """The slices of dimension `dim`, one view each."""

    def forward(self: Array, dim=0):
        return kernels.unbind(self, dim)

    def grad_self(grads, self_shape, self_dtype, dim, xp):
        return xp.unbind_backward(grads, self_shape, self_dtype, dim)


@operator(view=True, namespace=None, method=False, node="SplitBackward0")
class split_size:
    """Views of `split_size` slices of dimension `dim` each, the last perhaps smaller."""

    def forward(self: Array, split_size, dim=0):
        return kernels.split(self, split_size, dim)

    def grad_self(grads, self_shape, self_dtype, split_size, dim, xp):
        return xp.split_backward(grads, self_shape, self_dtype, split_size, dim)


@operator(view=True, method=True)
class split_with_sizes:
    """Views of the given numbers of slices of dimension `dim`."""

    def forward(self: Array, split_sizes, dim=0):
        return kernels.split(self, list(split_sizes), dim)

    def grad_self(grads, self_shape, self_dtype, split_sizes, dim, xp):
        return xp.split_backward(grads, self_shape, self_dtype, list(split_sizes), dim)


@public(method=True)
def split(input, split_size_or_sections, dim=0):
    """Views of dimension `dim` of one size each, or of the sizes in a list.

    >>> import adjoint as torch
    >>> torch.arange(5).split(2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if isinstance(split_size_or_sections, int):
        return split_size(input, split_size_or_sections, dim)
    return split_with_sizes(input, tuple(split_size_or_sections), dim)


@public(method=True)
def chunk(input, chunks, dim=0):
    """At most `chunks` views of dimension `dim`, of one size but perhaps the last."""
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = wrap_dim(dim, input._array.ndim)
    size = input._array.shape[dim]
    if size == 0:
        return split_with_sizes(input, (0,) * chunks, dim)
    return split_size(input, -(-size // chunks), dim)


@public(method=True)
def tensor_split(input, indices_or_sections, dim=0):
    """Views of dimension `dim`: a number of nearly equal ones, or cut at the given indices."""
    dim = wrap_dim(dim, input._array.ndim)
    size = input._array.shape[dim]
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        if indices_or_sections <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {indices_or_sections}")
        small, larger = divmod(size, indices_or_sections)
        lengths = [small + (index < larger) for index in range(indices_or_sections)]
        cuts = [sum(lengths[:index]) for index in range(1, len(lengths))]
    else:
        cuts = list(indices_or_sections)
    bounds = [0, *cuts, size]
    return tuple(slice(input, dim, start, end, 1) for start, end in zip(bounds, bounds[1:], strict=False))


# --- complex numbers ------------------------------------------------------------------------------------------


@operator(view=True, method=False)
class view_as_real:
    """A complex tensor as a real one, with a last dimension of real and imaginary part."""

    def forward(self: Array):
        return kernels.view_as_real(self)

    def grad_self(grad, xp):
        return xp.view_as_complex(xp.contiguous(grad))


@operator(view=True, method=False)
class view_as_complex:
    """A real tensor whose last dimension has size 2 as a complex one."""

    def forward(self: Array):
        return kernels.view_as_complex(self)

    def grad_self(grad, xp):
        return xp.view_as_real(grad)


@public(on_arrays=numpy.real)
def real(input):
    """The real part, a view; a real tensor itself."""
    return select(view_as_real(input), -1, 0) if input._array.dtype.kind == "c" else input


@public()
def imag(input):
    """The imaginary part, a view."""
    if input._array.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return select(view_as_real(input), -1, 1)


def _assign_part(part):
    def assign(self, value):
        part(self).copy_(value)

    return assign


Tensor.real = property(real, _assign_part(real), doc="The real part, a view.")
Tensor.imag = property(imag, _assign_part(imag), doc="The imaginary part, a view.")


# --- the same -------------------------------------------------------------------------------------------------


@operator(view=True, namespace=None, method=False)
class alias:
    """The tensor itself, as a view."""

    def forward(self: Array):
        return self.view()

    def grad_self(grad):
        return grad


@public(method=True)
def detach(input):
    """A tensor on the same memory, and with the same version counter, that has no history.

    >>> import adjoint as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> x.detach().requires_grad
    False
    """
    result = detached(input, shared_counter(input))
    if input._extra is not None and input._extra.inference:
        mark_inference(result)
    return result


@public(method=True)
def detach_(input):
    """Cut the tensor from its history, in place: it becomes a leaf that does not require grad."""
    if input._base is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and "
            "gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
            "these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py "
            "as a solution."
        )
    input._edge = None
    return input


# --- any strides ----------------------------------------------------------------------------------------------


@operator(view=True, namespace="torch", method=False)
class as_strided:
    """A view with the given size, strides and storage offset, counted in elements of the storage."""

    def forward(self: Array, size, stride, storage_offset=None):
        return kernels.as_strided(self, size, stride, storage_offset)

    def grad_self(grad, self_geometry, size, stride, storage_offset, xp):
        return xp.as_strided_backward(grad, self_geometry, size, stride, storage_offset)


@public(namespace=None, method=("as_strided",))
def as_strided_method(input, size, stride, storage_offset=None):
    """The method of `adjoint.as_strided`: the size and strides may be lists."""
    return as_strided(input, tuple(size), tuple(stride), storage_offset)


@operator(namespace=None, method=False)
class as_strided_backward:
    """The gradient of the input of `as_strided`."""

    def forward(self: Array, geometry, size, stride, storage_offset):
        return kernels.as_strided_backward(self, geometry, size, stride, storage_offset)

    def grad_self(grad, geometry, size, stride, storage_offset, xp):
        return xp.as_strided_gather(grad, geometry, size, stride, storage_offset)


@operator(namespace=None, method=False)
class as_strided_gather:
    """The transpose of `as_strided_backward`."""

    def forward(self: Array, geometry, size, stride, storage_offset):
        return kernels.as_strided_gather(self, geometry, size, stride, storage_offset)

    def grad_self(grad, geometry, size, stride, storage_offset, xp):
        return xp.as_strided_backward(grad, geometry, size, stride, storage_offset)


def make_as_strided_node(base: Tensor, view: Tensor, base_edge: Any) -> Node:
    """The node that makes `view` out of its base's present value."""
    source = base._array
    if source.dtype.kind == "c" and view._array.dtype.kind != "c":
        source = kernels.view_as_real(source)
        base_edge = (_node("view_as_real", source, base_edge), 0)
    node = _node("as_strided", view._array, base_edge)
    geometry = views.Geometry(view._array)
    node.saved_self_geometry = views.Geometry(source)
    node.saved_size, node.saved_stride, node.saved_storage_offset = geometry.shape, geometry.steps, geometry.offset
    return node  # type: ignore[no-any-return]


def _node(name: str, result: Any, edge: Any) -> Any:
    """A node of operator `name` whose output is like the array `result`."""
    node: Any = object.__new__(OPERATORS[name].node_class)
    start(node, (edge,), 4)
    node.shape, node.dtype = result.shape, result.dtype
    return node


views.make_as_strided_node = make_as_strided_node
views.real_view = view_as_real
