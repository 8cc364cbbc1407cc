"""The history of views after in-place changes: `CopySlices`, which the base gets, and new edges of other views.

`tape.views` decides when to run these functions. The nodes compute on arrays or, if backward is recorded, on tensors.
"""

from __future__ import annotations

from typing import Any

import numpy

from ...dtypes import from_numpy
from ...kernels.memory import storage
from ...kernels.reduce.reduction import sum_to_shape
from ...kernels.runtime.lazy_conj import materialize, with_lazy_bits
from ...kernels.runtime.shapes import elements_spanned
from ...kernels.sparse.layouts import to_dense
from ...tape import modes, views
from ...tape.edges import edge_of
from ...tape.node import FREED_MESSAGE, Node, start
from ...tensor import Tensor, is_recorded, lazy_bits
from .storage_views import lazily, make_as_strided_node, replay, view_as_complex, view_as_real


def regenerate(view: Tensor, told: bool = False, places: tuple[views.Geometry, views.Geometry] | None = None) -> None:
    """Give `view` a new edge into the current history of its base, because its base has changed.

    `places` are the positions of base and view, if they are known.

    Raise an error if a custom function, or a mode that hides the origin of views, created the view. Without recording,
    raise the error only if `told` is true.
    """
    base: Any = view._base
    version = view._counter[0]  # type: ignore[index]
    if type(version) is not int and int(view._view_version) == int(version):
        view._view_version = version
        return  # nothing has changed except that the base was detached
    base_edge = edge_of(base)
    if base_edge is not None or is_recorded(view._edge):  # the base may have been detached since then
        if view._creation is not None:
            if told or modes.is_recording():
                raise views.refusal(view, "its base or another view of its base has been modified inplace")
            return
        old = view._edge
        if modes.STATE.view_replay and view._extra is not None and view._extra.made_by is not None:
            view._edge = replay(base, view._extra.made_by)
        else:
            view._edge = (make_as_strided_node(base, view, base_edge, places), 0)
        views.leave_hooks(view, old)
        view._view_version = view._counter[0]  # type: ignore[index]  # else it has not yet seen its history begin


def rebase(view: Tensor, node: Node, depth: int) -> None:
    """The operation of `node` has just changed `view` in place. Make `node` part of the history of the base of `view`."""
    base: Any = view._base
    change = CopySlices(base, view, node, depth + 1)
    views.point_at(base, (change, 0))
    regenerate(view, places=(change.base, change.view))


class CopySlices(Node):
    """The history of a base after an operation (node `function`) has changed one of its views in place.

    A backward that does not retain the graph releases `function`. The tensors that `function` has saved stay
    referenced, because the saved result of the operation may lead to that node directly. `function_class` remains too.
    """

    __slots__ = ("base", "bits", "function", "function_class", "other_kind", "view")
    takes_stand_ins = True
    function: Node | None

    def name(self) -> str:
        """Return PyTorch's full name of this node."""
        return "torch::autograd::CopySlices"

    def __init__(self, base: Tensor, view: Tensor, function: Node, depth: int) -> None:
        start(self, (edge_of(base), *function._edges[1:]), depth + 1)
        is_complex = view._array.dtype.kind in "cW"
        self.other_kind = None if (base._array.dtype.kind in "cW") == is_complex else "c" if is_complex else "f"
        self.base = views.Geometry(base._array)
        self.view = views.Geometry(view._array)
        plain = type(base._array) is numpy.ndarray is type(view._array)
        self.bits = (0, 0) if plain else (lazy_bits(base), lazy_bits(view))
        self.function = function
        self.function_class = type(function)
        self._grad_shape = base._array.shape
        self._grad_dtype = base._array.dtype

    def backward(self, grad: Any, retain_graph: bool, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """Pass the gradient inside the view through the operation, and the gradient outside the view unchanged."""
        function = self._function(retain_graph)
        whole, part = self._split(to_dense(grad))
        inner = function.backward(_for_function(function, part.copy()), True, _inner(function, edges))
        if inner[0] is None and function.runs_undefined:  # a custom function that returns no gradient
            return (None, *inner[1:])
        part[...] = 0 if inner[0] is None else _reduced(inner[0], part.shape)
        return (materialize(whole), *inner[1:])

    def _split(self, grad: Any) -> tuple[Any, Any]:
        """Return a copy of `grad` with the layout of the base, and the part of that copy at the view."""
        offset = self._offset()
        end = offset + elements_spanned(self.view.shape, self.view.steps)
        needed = 2 * end if self.other_kind == "c" else end if self.other_kind is None else -(-end // 2)
        length = max(elements_spanned(self.base.shape, self.base.steps), needed)
        flat = numpy.zeros(length + length % 2, numpy.asarray(grad).dtype)
        whole = with_lazy_bits(storage.strided(flat, self.base.shape, self.base.steps, 0), self.bits[0])
        whole[...] = grad
        elements = flat
        if self.other_kind is not None:
            kind = from_numpy(flat.dtype)
            elements = flat.view((kind.to_complex() if self.other_kind == "c" else kind.to_real()).numpy)
        return whole, with_lazy_bits(storage.strided(elements, self.view.shape, self.view.steps, offset), self.bits[1])

    def _offset(self) -> int:
        """Return the offset of the view within the base, in elements."""
        if self.other_kind is None:
            return self.view.offset - self.base.offset
        return self.view.offset - (self.base.offset // 2 if self.other_kind == "c" else 2 * self.base.offset)

    def _function(self, retain_graph: bool) -> Node:
        """Return the node of the operation. Release the node unless `retain_graph` is true."""
        function = self.function
        if function is None:
            raise RuntimeError(FREED_MESSAGE)
        if not retain_graph:
            self.function = None
        return function

    def backward_recorded(self, grad: Any, retain_graph: bool, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """Compute the gradients like `backward`, on tensors."""
        whole: Any = grad.new_empty_strided(self.base.shape, self.base.steps)
        whole.copy_(lazily(grad.to_dense(), self.bits[0]))
        offset = self._offset()
        if self.other_kind == "c":
            shape, steps = (*self.view.shape, 2), (*(2 * step for step in self.view.steps), 1)
            part: Any = view_as_complex(whole.as_strided(shape, steps, 2 * offset))
        else:
            elements: Any = whole if self.other_kind is None else view_as_real(whole)
            part = elements.as_strided(self.view.shape, self.view.steps, offset)
        part, whole = lazily(part, self.bits[1]), lazily(whole, self.bits[0])
        function = self._function(retain_graph)
        inner = function.backward_recorded(_for_function(function, part.clone()), True, _inner(function, edges))
        if inner[0] is None and function.runs_undefined:
            return (None, *inner[1:])
        if inner[0] is None:
            part.zero_()
        else:
            part.copy_(inner[0])
        return (whole, *inner[1:])


def _inner(function: Node, edges: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the edges of the operation: those of `CopySlices`, with the edge of the changed argument first, if any."""
    return (edges[0] and function._edges[0], *edges[1:])


def _for_function(function: Node, grad: Any) -> Any:
    """Return the gradient of the view in the form that the node of the operation expects."""
    return [grad] if type(function._grad_shape) is list else grad


def _reduced(array: Any, shape: tuple[int, ...]) -> Any:
    return array if array.shape == shape else sum_to_shape(array, shape)


Tensor._regenerate, Tensor._rebase = regenerate, rebase
