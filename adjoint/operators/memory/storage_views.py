"""Other views of a tensor's memory: complex numbers as pairs, arbitrary strides, and views without history."""

from __future__ import annotations

from typing import Any

import numpy

from ...dispatch.annotations import Array, Int, Ints
from ...dispatch.declaration import OPERATORS
from ...dispatch.decorators import internal, named, operator, public, publish, tensors
from ...dispatch.slow_path import call
from ...kernels.memory.bounds import whole
from ...kernels.runtime.addresses import address
from ...kernels.runtime.lazy_conj import CONJ, NEG, lazy_bits_of, with_lazy_bits, without_lazy_bits
from ...kernels.runtime.meta_array import Unread
from ...kernels.runtime.shapes import elements_spanned
from ...kernels.runtime.sparse_array import SparseArray
from ...kernels.shape import view as kernels
from ...tape import modes, views
from ...tape.aliases import detached
from ...tape.anomaly import BY_DEFINITION, note_cut
from ...tape.inference_tensors import share_inference
from ...tape.interpreters import check_owned
from ...tape.node import NOWHERE, Node, start
from ...tape.versions import detach_in_place, shared_counter
from ...tensor import Tensor, is_recorded, lazy_bits
from ..declaring.formulas import same
from ..shape.parts import select


@internal(kernels.alias, view=True, node="Identity", batch="leading", sparse="shapes.itself")
class forward_primal:
    """The tensor as a view without the tangent of forward mode."""

    grad_self = same


# --- complex numbers ------------------------------------------------------------------------------------------


def _check_resolved(input):
    if input.is_conj():
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can view it as "
            "real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the original."
        )


@operator(view=True, method=False, kernel=kernels.view_as_real, check=_check_resolved, batch="leading")
class view_as_real:
    """A complex tensor as a real tensor, with real and imaginary parts in a last dimension."""

    def grad_self(grad, xp):
        return xp.view_as_complex(xp.contiguous(grad))


@operator(view=True, method=False, kernel=kernels.view_as_complex)
class view_as_complex:
    """A real tensor with a last dimension of size 2 as a complex tensor."""

    def grad_self(grad, xp):
        return xp.view_as_real(xp.resolve_conj(grad))

    def batch(op, batch, value):
        return op.apply(batch.first(value) if value._array.ndim else batch.at(value, 0))


@public(on_arrays=numpy.real, numpy_names=True)
def real(input):
    """The real part as a view. A real tensor is returned unchanged."""
    if input._array.dtype.kind not in "cW":
        return input
    if type(input._array) is SparseArray:
        return tensors.with_values(input, real(tensors.values(input)))
    return select(view_as_real(input.conj() if input.is_conj() else input), input._array.ndim, 0)


@public(numpy_names=True)
def imag(input):
    """The imaginary part as a view."""
    if input._array.dtype.kind not in "cW":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    pairs = tensors._neg_view(view_as_real(input.conj())) if input.is_conj() else view_as_real(input)
    return select(pairs, input._array.ndim, 1)


def _assign_part(part):
    def assign(self, value):
        part(self).copy_(value)

    return assign


Tensor.real = property(named(real, "real"), _assign_part(real), doc="The real part, a view.")  # type: ignore[assignment, method-assign]
Tensor.imag = property(named(imag, "imag"), _assign_part(imag), doc="The imaginary part, a view.")  # type: ignore[assignment, method-assign]


# --- without history ------------------------------------------------------------------------------------------


@public(method=True)
def detach(input):
    """A tensor without history that shares memory and version counter with this tensor.

    >>> import adjoint as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> x.detach().requires_grad
    False
    """
    result = detached(input, None if input.is_inference() else shared_counter(input))
    return share_inference(result, input, "detach")


@public(method=True)
def detach_(input):
    """Cut the tensor from its history in place. The tensor becomes a leaf that does not require grad."""
    check_owned(input, lambda: "detach_")
    if input._base is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and "
            "gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
            "these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py "
            "as the solution."
        )
    if modes.ANOMALY.enabled and input.requires_grad:
        note_cut("detach_", BY_DEFINITION, [input], [input])
    detach_in_place(input)
    for level in modes.STATE.interpreters:
        level.forget(input)
    return input


# --- any strides ----------------------------------------------------------------------------------------------


@operator(view=True, namespace=None, method=("as_strided",), inplace=True, kernel=kernels.as_strided)
class as_strided:
    """A view with the given size, strides and storage offset, all counted in elements of the storage."""

    saved_display = {"self_geometry": None}

    def forward(self: Array, size: Ints, stride: Ints, storage_offset: Int = None): ...

    def grad_self(grad, self_geometry, size, stride, storage_offset, xp):
        offset = None if storage_offset is None else whole(storage_offset)
        return xp.as_strided_backward(grad, self_geometry, tuple(map(whole, size)), tuple(map(whole, stride)), offset)

    def batch(op, batch, value, size, stride, storage_offset):  # each example has a window on its part of the memory
        first = batch.first(value)
        offset = first.storage_offset() if storage_offset is None else storage_offset
        _check_window(first, list(size), list(stride), offset)
        return first.as_strided((first.shape[0], *size), (first.stride(0), *stride), offset)


def _check_window(batch: Tensor, size: list[int], stride: list[int], offset: int) -> None:
    """Raise an error if an example of `batch`, whose first dimension counts examples, does not contain this window."""
    if len(size) != len(stride):
        raise RuntimeError(
            "Tensor.as_strided(size, stride, ...): size and stride must have the same length! "
            f"Got size {size} and stride {stride}"
        )
    start, wanted = batch.storage_offset(), elements_spanned(size, stride)
    given = elements_spanned(batch.shape[1:], batch.stride()[1:])
    if not wanted or (start <= offset and offset + wanted <= start + given):
        return
    reach = "`tensor` has no storage but the passed-in (size, stride, storage_offset) imply a result with some storage."
    if given:
        reach = (
            f"`result` can access some memory in range [{offset}, {offset + wanted}], but `tensor` can only access some "
            f"memory in range [{start}, {start + given}]."
        )
    raise RuntimeError(
        f"result = tensor.as_strided({size}, {stride}, {offset}) can access memory outside of `tensor`. {reach} This is not "
        "supported inside of vmap, please try to rewrite the `as_strided` call as a sequence of PyTorch view operations"
    )


public(name="as_strided", numpy_names=True)(as_strided)
publish("torch", as_strided_=as_strided.inplace)


@internal(kernels.as_strided_backward, tangent="linear", narrow="halves")
class as_strided_backward:
    """The gradient of the input of `as_strided`."""

    def forward(self: Array, geometry, size, stride, storage_offset): ...

    def grad_self(grad, geometry, size, stride, storage_offset, xp):
        return xp.as_strided_gather(grad, geometry, size, stride, storage_offset)


@internal(kernels.as_strided_gather, tangent="linear", narrow="moves")
class as_strided_gather:
    """The transpose of `as_strided_backward`."""

    def forward(self: Array, geometry, size, stride, storage_offset): ...

    def grad_self(grad, geometry, size, stride, storage_offset, xp):
        return xp.as_strided_backward(grad, geometry, size, stride, storage_offset)


@operator(kernel=kernels.as_strided_scatter, out=False, narrow="moves")
class as_strided_scatter:
    """A copy of `input` with `src` at the memory positions that sizes, strides and offset describe.

    Raises:
        RuntimeError: if `src` has another size, or if a position is out of range.
    """

    saved_display = {"self_geometry": None}

    def forward(self: Array, src: Array, size: Ints, stride: Ints, storage_offset: Int = None): ...

    def grad_self(grad, src, self_geometry, size, stride, storage_offset, xp):
        written = xp.as_strided_backward(xp.ones_like(src), self_geometry, size, stride, storage_offset)
        return xp.where(written == 0, grad, xp.zeros_like(grad))

    def grad_src(grad, self_geometry, size, stride, storage_offset, xp):
        return xp.as_strided_gather(grad, self_geometry, size, stride, storage_offset)

    def batch(op, batch, value, src, size, stride, storage_offset):
        if batch.has(value):
            first = batch.first(value)
        else:
            first = batch.expanded(value).contiguous()
            storage_offset = None if storage_offset is None else storage_offset - value.storage_offset()
        offset = first.storage_offset() if storage_offset is None else storage_offset
        _check_window(first, list(size), list(stride), offset)
        return first.as_strided_scatter(
            batch.expanded(src), (first.shape[0], *size), (first.stride(0), *stride), offset
        )

    batch.reads_memory = True  # type: ignore[attr-defined]


def make_as_strided_node(base: Tensor, view: Tensor, base_edge: Any, places: Any = None) -> Node:
    """Return the node that computes `view` from the current value of its base.

    `places` are the geometries of both, if they are known.

    If an operation such as `conj`, which reads memory differently, has created the view, this operation comes last here too.
    """
    last = getattr(view._edge[0], "operator", None) if is_recorded(view._edge) else None
    name, source, result = None if last is None else last.name, _with_own_bits(base), _with_own_bits(view)
    if (
        type(source) is numpy.ndarray is type(result)
        and source.dtype.kind == result.dtype.kind
        and name not in _READINGS
    ):
        return _as_strided_node(source, result, base_edge, places)
    edge = _edge_between(source, result, base_edge, name)
    return edge[0] if edge is not base_edge else _as_strided_node(source, result, base_edge)


def _with_own_bits(tensor: Tensor) -> Any:
    """Return the array of a tensor, or the stand-in for an example in a batch, with the lazy bits of the tensor."""
    array: Any = tensor._array
    return with_lazy_bits(array, lazy_bits(tensor) ^ lazy_bits_of(array)) if type(array) is Unread else array


def _edge_between(source: Any, result: Any, edge: Any, last: str | None) -> Any:
    """Return the edge of the array `result`, which shares memory with `source`. `edge`: the edge of `source`."""
    before, after = lazy_bits_of(source), lazy_bits_of(result)
    source, result = without_lazy_bits(source), without_lazy_bits(result)
    if last in _READINGS:
        bits, read = _READINGS[last]
        return (
            _node(
                last,
                result,
                _edge_between(with_lazy_bits(source, before), with_lazy_bits(read(result), after ^ bits), edge, None),
            ),
            0,
        )
    if source.dtype.kind == result.dtype.kind:
        before, after = 0, before ^ after
    edge = _lazily_edge(source, edge, before)
    if source.dtype.kind not in "cW" and result.dtype.kind in "cW":
        pairs = kernels.view_as_real(result)
        edge = (_node("view_as_complex", result, _strided_edge(source, pairs, edge)), 0)
    else:
        if source.dtype.kind in "cW" and result.dtype.kind not in "cW":
            source = kernels.view_as_real(source)
            edge = (_node("view_as_real", source, edge), 0)
        if after and sorted(source.shape) != sorted(result.shape):  # a part of a conjugate, not the conjugate of a part
            edge, after = _lazily_edge(source, edge, after), 0
        edge = _strided_edge(source, result, edge)
    return _lazily_edge(result, edge, after)


_READINGS: dict[str, tuple[int, Any]] = {
    "conjugate": (CONJ, lambda array: array),
    "_neg_view": (NEG, lambda array: array),
    "view_as_real": (0, kernels.view_as_complex),
    "view_as_complex": (0, kernels.view_as_real),
}
"""For each operation, the bits that it toggles and the form of its result."""


def _strided_edge(source: Any, result: Any, edge: Any) -> Any:
    """Return the edge of the array `result`, a part of `source`. The edge of `source` is `edge`."""
    if (source.shape, source.strides, address(source)) == (result.shape, result.strides, address(result)):
        return edge
    return (_as_strided_node(source, result, edge), 0)


def _lazily_edge(array: Any, edge: Any, bits: int) -> Any:
    """Return the edge of the tensor of `edge` after a change of the lazy bits `bits`. `array` is like the result."""
    for bit, name in ((CONJ, "conjugate"), (NEG, "_neg_view")):
        edge = (_node(name, array, edge), 0) if bits & bit else edge
    return edge


def lazily(tensor: Tensor, bits: int) -> Tensor:
    """Return a view of `tensor` with these `bits` toggled."""
    tensor = tensors.conjugate(tensor) if bits & CONJ else tensor
    return tensors._neg_view(tensor) if bits & NEG else tensor


def _as_strided_node(source: Any, result: Any, edge: Any, places: Any = None) -> Any:
    """Return the node that computes the array `result` from `source`, on the same memory."""
    node = _node("as_strided", result, edge)
    node.saved_self_geometry, geometry = places or (views.Geometry(source), views.Geometry(result))
    node.saved_size, node.saved_stride, node.saved_storage_offset = geometry.shape, geometry.steps, geometry.offset
    return node


def _node(name: str, result: Any, edge: Any) -> Any:
    """Return a node of operator `name` with an output like the array `result`."""
    node: Any = object.__new__(OPERATORS[name].node_class)
    start(node, (None if edge is NOWHERE else edge,), 4)
    node._grad_shape, node._grad_dtype = result.shape, result.dtype
    return node


def replay(base: Tensor, made_by: tuple[Any, ...]) -> Any:
    """Apply the operations `made_by`, which are pairs (operator, arguments), to `base`. Return the edge of the view."""
    view = base
    enabled = modes.STATE.grad_enabled
    modes.set_grad(True)
    try:
        for op, args in made_by:
            view = call(op, (view, *args))
    finally:
        modes.set_grad(enabled)
    return view._edge
