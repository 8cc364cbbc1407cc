"""Copying and overwriting of tensors (`clone`, `copy_`, `fill_`), and changes of memory (`set_`, `resize_`)."""

from __future__ import annotations

import numpy

from ..._runtime.extra import note_former
from ..._runtime.first_use import import_late
from ..._runtime.tracebacks import warn
from ...codegen.backend import NUMPY
from ...codegen.kernel import Kernel
from ...device import channels_last, channels_last_3d, contiguous_format, preserve_format
from ...dispatch.annotations import Array
from ...dispatch.arguments import MISSING, invalid_arguments, is_of_type, require
from ...dispatch.decorators import internal, operator, public, tensors
from ...dispatch.leaves import as_operator
from ...dispatch.numpy_names import with_numpy_names
from ...dispatch.out import Underived
from ...dtypes import C_NAMES
from ...kernels.memory import copying, storage, storages
from ...kernels.memory.bounds import checked_bytes, whole
from ...kernels.reduce import reduction
from ...kernels.runtime import shapes
from ...kernels.runtime.lazy_conj import lazy_bits_of, with_lazy_bits, without_lazy_bits
from ...tape import modes, views
from ...tape.interpreters import check_owned, innermost
from ...tape.refusals import count_change
from ...tape.versions import about_to_change, bump
from ...tensor import LEAF, Tensor, can_require_grad, wrap
from ..create.creation import shape_of
from ..declaring import formulas

# --- copies ---------------------------------------------------------------------------------------------------


@operator(
    kernel=Kernel(copying.clone, quiet=True),
    out=False,
    tangent="linear",
    batch="elementwise",
    sparse="shapes.clone",
    narrow="moves",
)
class clone:
    """A copy in separate memory.

    Gradients pass through the copy.

    >>> import adjoint as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> x.clone()
    tensor([1., 1.], grad_fn=<CloneBackward0>)
    """

    def forward(self: Array, *, memory_format=None): ...

    grad_self = formulas.same


@public(namespace=None, method=True, on_arrays=copying.contiguous)
def contiguous(self, /, *, memory_format=contiguous_format):
    """The tensor itself if its memory has row-major order (or `memory_format`), otherwise a copy."""
    if type(self._array) is numpy.ndarray and memory_format is contiguous_format and self._array.flags.c_contiguous:
        return self
    if memory_format is preserve_format or self.is_contiguous(memory_format=memory_format):
        return self
    return clone(self, memory_format=memory_format)


@internal(
    Kernel(lambda self, other, non_blocking=False: copying.expanded(other, self), inplace=copying.copy_, quiet=True),
    inplace="copies",
    node="CopyBackwards",
    out=False,
    tangent="linear",
    vmap_name="inplace arithmetic",
    sparse="shapes.copy",
    narrow="converts",
)
class copy:
    """`other`, broadcast to the shape of `self`, as the new value of `self`."""

    def forward(self: Array, other: Array, non_blocking=False): ...

    grad_self = formulas.zero

    grad_other = formulas.same

    def batch(op, batch, value, source, *rest):
        return op.apply(batch.expanded(value), batch.aligned(source, value._array.ndim), *rest)


@public(namespace=None, method=True)
def copy_(input, other, non_blocking: bool = False):
    """Overwrite the elements of the tensor with the elements of `other`, broadcast and converted.

    >>> import adjoint as torch
    >>> torch.zeros(2, 2).copy_(torch.tensor([1, 2]))
    tensor([[1., 2.],
            [1., 2.]])
    """
    if not isinstance(other, Tensor):
        if not isinstance(other, (int, float, complex)):
            require("Tensor", other, "copy_", "other", 1)
        other = wrap(numpy.asarray(other))
    if other._edge is not None and not can_require_grad(input._array):
        other = other.detach()
    return _copy_(input, other)


_copy_ = copy.inplace


@public(namespace=None, method=True, on_arrays=reduction.sum_to_shape)
def sum_to_size(self, /, *sizes, size=None):
    """The tensor summed to `size`, which must broadcast to the tensor's shape. This is the transpose of `expand`."""
    shape = size if size is not None else sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    shape, own = tuple(shape), self._array.shape
    if not shapes.can_expand(shape, own):
        raise RuntimeError(f"size {{{list(shape)}}} is not expandable to size {{{list(own)}}}.")
    if not shape:
        return tensors.sum(self)
    lead = len(own) - len(shape)
    dims = [*range(lead), *(lead + dim for dim, length in enumerate(shape) if length == 1 and own[lead + dim] != 1)]
    result = tensors.sum(self, dims, keepdim=True) if dims else self
    return result.view(shape) if lead else result


# --- filling --------------------------------------------------------------------------------------------------


def _filling(kernel, **options):
    """Declare an operator that makes all elements equal."""
    return internal(kernel, inplace="uniform", out=False, narrow="converts", **options)


@_filling(
    Kernel(copying.full_like, inplace=copying.fill_, quiet=True),
    node="FillBackward2",
    batch="elementwise",
    aten="Scalar",
    sparse="shapes.fill",
)
class fill:
    """The tensor with the number `value` as every element."""

    def forward(self: Array, value): ...

    grad_self = formulas.zero


@_filling(
    Kernel(lambda self, value: copying.expanded(value, self), inplace=copying.fill_with_),
    node="FillBackward3",
    vmap_name="fill_",
    aten_name="fill",
    sparse="shapes.fill",
)
class fill_tensor:
    """The tensor with the zero-dimensional tensor `value` as every element."""

    saved_display = {"value_sym_sizes": None}

    def forward(self: Array, value: Array): ...

    grad_self = formulas.zero

    def grad_value(grad, value_shape, xp):
        return xp.sum_to_size(grad, value_shape)

    def batch(op, batch, value, filling):
        return op.apply(batch.expanded(value), batch.aligned(filling, value._array.ndim))


_fill_, _fill_tensor_ = fill.inplace, fill_tensor.inplace


def _check_fill_value(input, value):
    if not isinstance(value, Tensor):
        if not isinstance(value, (int, float, complex, numpy.number, numpy.bool_)):
            raise invalid_arguments("fill", input, value)
    elif value._array.ndim:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value._array.ndim} dimensions."
        )


@public(method=True)
def fill_(input, value):
    """Set every element to `value`, a number or a zero-dimensional tensor, in place.

    >>> import adjoint as torch
    >>> torch.zeros(3).fill_(7)
    tensor([7., 7., 7.])
    """
    if type(value) is float or type(value) is int:
        return _fill_(input, value)
    _check_fill_value(input, value)
    return _fill_tensor_(input, value) if isinstance(value, Tensor) else _fill_(input, value)


@internal(copying.full_like, out=False, node="FillBackward0", batch="elementwise", aten_name="full", narrow="converts")
class full_of_number:
    """A tensor like `self` filled with the number `value`."""

    def forward(self: Array, value): ...

    grad_self = formulas.zero


@internal(
    copying.filled_like, out=False, node="FillBackward1", batch="elementwise", aten_name="full", narrow="converts"
)
class full_of_tensor:
    """A tensor like `self` filled with the zero-dimensional tensor `value`."""

    def forward(self: Array, value: Array): ...

    grad_self = formulas.zero

    def grad_value(grad, value_shape, xp):
        return xp.sum_to_size(grad, value_shape)


@public(name="fill", forms=("Tensor input, Tensor value", "Tensor input, Number value"))
def fill_function(input=None, value=None, **names):
    """A tensor like `input` filled with `value`, a number or a zero-dimensional tensor."""
    if names:
        return with_numpy_names(fill_function, names, input, value)
    _check_fill_value(input, value)
    return full_of_tensor(input, value) if isinstance(value, Tensor) else full_of_number(input, value)


@internal(Kernel(copying.fill_diagonal, inplace=copying.fill_diagonal_), inplace=True, out=False)
class fill_diagonal:
    """The tensor with a number as every element of the main diagonal."""

    def forward(self: Array, fill_value, wrap=False): ...

    def grad_self(grad, wrap, xp):
        return xp.fill_diagonal(grad, 0, wrap)


public(namespace=None, method=True, name="fill_diagonal_")(fill_diagonal.inplace)


@_filling(Kernel(numpy.zeros_like, inplace=copying.zero_, quiet=True), batch="elementwise", sparse="shapes.zeros")
class zero:
    """The tensor with zero as every element."""

    grad_self = formulas.zero


public(method=True, name="zero_")(zero.inplace)


# --- by a Python function -------------------------------------------------------------------------------------


def _mapped(function, callable, input, **others):
    for place, (name, tensor) in enumerate(others.items(), 1):
        require("Tensor", tensor, function, name, place)
    for tensor in (input, *others.values()) if len(others) > 1 else (input,):
        if tensor.requires_grad:
            raise RuntimeError(
                f"Can't call {function}() on Variable that requires grad. Use var.detach().{function}() instead."
            )
    for name, tensor in others.items():
        if input.dtype is not tensor.dtype:
            which = "argument " * (len(others) > 1) + f"'{name}'"
            raise TypeError(f"{function}: expected {input.type()} for {which} (got {tensor.type()})")
    about_to_change(input)
    arrays = input._array, *(tensor.expand(input._array.shape)._array for tensor in others.values())
    count_change(input, function, copying.copy_, input._array, copying.mapped(callable, *arrays))
    return input


@public(namespace=None, method=True)
def apply_(input, callable):
    """Replace each element x in place by `callable(x)`. This function is slow."""
    return _mapped("apply_", callable, input)


@public(namespace=None, method=True)
def map_(input, tensor, callable):
    """Replace each element x in place by `callable(x, y)`, where y is the element of `tensor`.

    This function is slow.
    """
    return _mapped("map_", callable, input, other=tensor)


@public(namespace=None, method=True)
def map2_(input, x, y, callable):
    """Replace each element e in place by `callable(e, a, b)`, where a and b are the elements of `x` and `y`.

    This function is slow.
    """
    return _mapped("map2_", callable, input, x=x, y=y)


# --- other memory ---------------------------------------------------------------------------------------------


@public(
    namespace=None,
    method=True,
    forms=(
        "",
        "torch.Storage source",
        "torch.Storage source, int storage_offset, tuple of ints size, tuple of ints stride = None",
        "Tensor source",
        "Tensor source, int storage_offset, tuple of ints size, tuple of ints stride = None",
    ),
)
def set_(input, source=MISSING, storage_offset=MISSING, size=MISSING, stride=MISSING):
    """Move the tensor to the memory of `source`, a tensor or storage. Without `source`, move it to empty memory.

    Without `size`, the tensor covers all elements of `source`. `storage_offset` and `stride` count elements from the
    first element of `source`. A storage that is too small is enlarged. `source` moves to the new memory, but its views
    stay on the old memory.

    Raises:
        RuntimeError: if no storage can hold the tensor, or if the external memory of `source` is too small.
    """
    if modes.STATE.interpreters and any(hasattr(level, "tangent_of") for level in [innermost((input, source))]):
        raise NotImplementedError(
            "Trying to use forward AD with set_ that does not support it because it has not been implemented yet."
        )
    window = _window(source, storage_offset, size, stride)
    views.check_inplace(input)
    views.check_inference(input)
    inputs = [input, source] if isinstance(source, Tensor) else [input]
    recording = modes.is_recording() and any(tensor.requires_grad for tensor in inputs)
    if recording and input._base is not None:
        views.check_view_creation(input)
    as_operator(move_to_memory, input, None if source is MISSING else source, window)
    if recording:
        views.rebase_history(input, Underived("set_", inputs, input), 1)
    return input


def move_to_memory(input, source, window):
    """Move a tensor to a window of the memory of `source`, or to empty memory."""
    kind = input._array.dtype
    if source is None:
        array = NUMPY.allocate(0, kind)
    else:
        _check_source(source, input)
        if window is None:
            array = source._array if isinstance(source, Tensor) else source.elements(kind)
        else:
            array = _part_of(source, window, kind, input._array.shape)
    if input._edge is LEAF:
        note_former(input, array)
    about_to_change(input)
    input._array = with_lazy_bits(without_lazy_bits(array), lazy_bits_of(input._array))
    bump(input, "set_")


def _window(source, *place):
    """Return the offset, size and strides given to `set_` (contiguous by default), or None if there are no such arguments."""
    storage_offset, size, stride = place
    if source is MISSING or isinstance(source, (Tensor, storages.UntypedStorage)):
        if all(value is MISSING for value in place):
            return None
        stride = () if stride is MISSING or stride is None else stride
        wanted = is_of_type(storage_offset, "Int") and is_of_type(size, "Ints") and is_of_type(stride, "Ints")
        if wanted and source is not MISSING:
            return whole(storage_offset), tuple(map(whole, size)), tuple(map(whole, stride))
    raise invalid_arguments("set_", *(value for value in (source, *place) if value is not MISSING))


def _check_source(source, input):
    """Raise an error unless `source` has the dtype and the device of `input`."""
    if not isinstance(source, Tensor):
        source.check_kind(input._array.dtype, C_NAMES[input.dtype])
    elif source.dtype is not input.dtype:
        raise RuntimeError(
            f"Could not set tensor of type {C_NAMES[source.dtype]} to a tensor of type {C_NAMES[input.dtype]}"
        )
    if source.device != input.device:
        raise RuntimeError(
            f'Attempted to set the storage of a tensor on device "{input.device}" to a storage on different device '
            f'"{source.device}".  This is no longer allowed; the devices must match.'
        )


def _part_of(source, window, kind, before):
    """Return the array of a window of `source`. Move `source` to larger memory if the size is another than `before`."""
    offset, size, stride = window
    if isinstance(source, Tensor):
        if not source.is_contiguous():
            raise RuntimeError("passed in tensor to be used as storage must be contiguous")
        offset += source.storage_offset()
        source = source.untyped_storage()
    if size == before and not stride:
        checked_bytes(size, storage.row_major_steps(size), offset, kind.itemsize, source.nbytes())
    if stride:
        return source.extended(size, stride, offset, kind)
    return source.extended(size, storage.row_major_steps(size), offset, kind, "resize_")


@public(namespace=None, method=True)
def resize_(input, *sizes, size=None, memory_format=None):
    """Give the tensor another size in place, with the strides of `memory_format` (by default row-major, if the size changes).

    If its memory is too small, the tensor moves to larger memory. Elements keep their order in memory. New elements are not
    initialized.
    """
    views.check_inference(input)
    check_owned(input, lambda: "resize_")
    if input.requires_grad and not modes.STATE.inference:
        raise RuntimeError("cannot resize variables that require grad")
    if input._extra is not None and input._extra.tangents:
        raise RuntimeError("cannot resize variables that has a forward grad")
    return as_operator(resize_memory, input, shape_of(sizes, size, "resize_"), memory_format)


def resize_memory(input, size, memory_format):
    """Give a tensor another size."""
    shape = tuple(size)
    order = copying.order_of(memory_format, len(shape))
    changed = shape != input._array.shape
    if changed and input.is_sparse_csr:
        input._array = import_late("adjoint.kernels.sparse.shapes").resize_rows(input._array, shape)
    elif changed or memory_format is not None:
        before = storage.root_of(input._array).nbytes
        array = storages.resized(input._array, shape if order is None else tuple(shape[dim] for dim in order))
        copying.uninitialized(array, before)
        array = array if order is None else array.transpose(numpy.argsort(order))
        input._array = with_lazy_bits(array, lazy_bits_of(input._array))
    if changed:
        bump(input, "resize_")
    return input


@public(namespace=None, method=True)
def resize(input, *sizes):
    """`reshape` with separate sizes. Deprecated."""
    warn("non-inplace resize is deprecated")
    return input.reshape(sizes)


@public(namespace=None, method=True)
def resize_as(input, tensor):
    """`reshape` to the size of another tensor. Deprecated."""
    warn("non-inplace resize_as is deprecated")
    return input.reshape(tensor.shape)


@public(method=True)
def resize_as_(input, the_template, memory_format=None):
    """Give the tensor the size of another tensor in place, and with `preserve_format` also its memory format. See `resize_`."""
    require("Tensor", the_template, "resize_as_", "the_template", 1)
    return as_operator(resize_memory_as, input, the_template, memory_format)


def resize_memory_as(input, the_template, memory_format):
    """Give a tensor the size of another tensor, and with `preserve_format` also its memory format."""
    if memory_format is preserve_format:
        formats = {4: channels_last, 5: channels_last_3d}
        wanted = formats.get(the_template.dim(), contiguous_format)
        is_ordinary = the_template.is_contiguous() or not the_template.is_contiguous(memory_format=wanted)
        memory_format = contiguous_format if is_ordinary else wanted
    return resize_(input, tuple(the_template._array.shape), memory_format=memory_format)
