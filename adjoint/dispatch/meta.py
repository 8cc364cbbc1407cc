"""Operators on tensors of the device `meta`: shapes are computed with zeros, and operators that need elements refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy

from ..codegen.acceleration import SHAPES
from ..device import cpu, meta
from ..kernels.linalg import LinAlgError
from ..kernels.runtime.meta_array import Meta, in_order, in_place_of, zeros
from ..kernels.runtime.shapes import broadcast_shapes
from ..random import Generator
from ..tape.interpreters import tensors_in
from ..tape.torch_dispatch import dispatching_types
from ..tensor import Tensor
from .array_classes import Dense, check_fits, given_arrays
from .declaration import Operator
from .extrapolation import filled, form_of, leaves, results_of
from .plan import Call, Plan


class OnMeta(Dense):
    """Arrays without elements. Kernels compute with zeros, and their results are on `meta` too."""

    words = ", with zeros"

    def check(self, plan: Plan, call: Call) -> None:
        """Raise an error unless all tensors are on `meta`."""
        check_places(plan.op, call.args)

    def compute(self, plan: Plan, arrays: list[Any], kernel: Any = None) -> Any:
        """Return the results on zeros, or meta arrays of their shapes, which small zeros determine if the arrays are large."""
        op = plan.op
        if op.function_name == "index_put" and any(_is_mask(index) for index in arrays[1]):
            return zeros(arrays[0])
        if "shape" in op.names and op.name.endswith("_backward"):
            return in_order(arrays[op.names.index("shape")], arrays[0].dtype)
        if op.name == "native_dropout":
            arrays = [*arrays[:2], False]  # `train`, so that nothing is drawn
        if op.draws:
            arrays = [*arrays]
            arrays[op.names.index("generator")] = _IGNORED
        if op.view or sum(map(_size, leaves(arrays))) <= SMALL:
            return self._computed(plan, arrays)
        results = results_of(plan, arrays, partial(self._computed, plan))
        return self._computed(plan, filled(form_of(arrays), {})) if results is NotImplemented else results

    def _computed(self, plan: Plan, arrays: list[Any]) -> Any:
        """Return the results on zeros. If zeros are refused, use identity matrices or ones."""
        SHAPES.only = SHAPES.special = True
        try:
            for made in (zeros, _identity):
                try:
                    return super().compute(plan, with_elements(arrays, made))
                except (LinAlgError, RuntimeError, ZeroDivisionError):  # a wrong shape raises the error again
                    pass
            return super().compute(plan, with_elements(arrays, _ones))
        finally:
            SHAPES.only = SHAPES.special = False

    def finished(self, op: Operator, results: list[Any]) -> list[Any]:
        """Return the results on `meta`."""
        return [result.view(Meta) if op.view else in_place_of(result) for result in results]

    def write_out(self, op: Operator, call: Call) -> Any:
        """Give `out`, which must be on `meta`, the shape of the result."""
        if type(call.out._array) is not Meta:
            raise Meta.error(Meta.refusal)
        if call.out._array.shape != call.results[0].shape:
            call.out._array = self.finished(op, call.results)[0]
        return call.out

    def change(self, plan: Plan, call: Call) -> Callable[[], object]:
        """Raise an error if the change is impossible. Otherwise do nothing."""
        check_change(plan.op, call.args, call.arrays)
        return lambda: None


META = OnMeta()

SMALL = 1 << 10
"""Up to this number of elements, kernels compute with zeros of full size."""

_IGNORED = Generator()
"""The generator for tensors on `meta`, so that no other generator changes."""


def has_meta(args: Iterable[Any]) -> bool:
    """Return whether a tensor among the arguments is on `meta`, or belongs to a class that overrides operators."""
    return any(type(tensor._array) is Meta for tensor in tensors_in(args)) or bool(dispatching_types(args))


_PRODUCTS = frozenset("mm bmm matmul baddbmm linear convolution embedding gather".split())
"""Operators whose operands may be on different devices. PyTorch does not check them; here, the results are on `meta`."""


def check_places(op: Operator, args: Iterable[Any]) -> None:
    """Raise an error if a tensor with dimensions is not on `meta`, or if the operator needs elements."""
    tensors = tensors_in(args)
    if op.function_name.startswith("index"):  # the indices may have elements
        tensors, indices = tensors[:1], tensors[1:]
        if op.shape_of_elements == "masks" and any(_is_mask(index._array) for index in indices):
            raise _depends_on_elements("nonzero")
    expected = next((tensor for tensor in tensors if tensor._array.ndim), tensors[0]).device
    for tensor in () if op.name in _PRODUCTS else tensors:
        if tensor.device != expected and (tensor._array.ndim or expected != meta):
            raise RuntimeError(f"Tensor on device {tensor.device} is not on the expected device {expected}!")
    if op.shape_of_elements is True:
        raise _depends_on_elements(op.function_name)


def _size(value: Any) -> int:
    """Return the number of elements of an array, or the absolute value of a number."""
    return value.size if isinstance(value, numpy.ndarray) else abs(value) if type(value) is int else 0


def _is_mask(index: Any) -> bool:
    """Return whether an array of indices is a mask without elements."""
    return type(index) is Meta and index.dtype == bool


def _depends_on_elements(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"aten::{name}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel registered. "
        "The shape of its result depends on elements, and there are none."
    )


def with_elements(arrays: Iterable[Any], made: Callable[[Any], Any]) -> list[Any]:
    """Return the arguments, including the items of lists, converted by `made`."""
    return [
        [made(item) for item in value]
        if isinstance(value, (list, tuple)) and any(type(item) is Meta for item in value)
        else made(value)
        for value in arrays
    ]


def _identity(array: Any) -> Any:
    if type(array) is not Meta or array.ndim < 2:
        return zeros(array)
    return numpy.broadcast_to(numpy.eye(*array.shape[-2:], dtype=array.dtype), array.shape)


def _ones(array: Any) -> Any:
    return numpy.broadcast_to(numpy.ones((), array.dtype), array.shape) if type(array) is Meta else array


def check_change(op: Operator, args: Any, arrays: list[Any]) -> None:
    """Raise an error if the first of `args` or the new value is on `meta`, and the change is impossible."""
    target = args[0]
    if not op.copies:
        check_places(op, args)
    elif type(target._array) is not Meta:
        raise Meta.error(Meta.refusal)
    shape = target._array.shape
    if op.operands or op.copies:
        check_fits(shape, broadcast_shapes(*(array.shape for array in given_arrays(op, arrays))))


def place_like(tensor: Tensor, device: Any) -> Any:
    """Return the device of a tensor that is created like another tensor, if no `device` is given."""
    return device if device is not None else meta if type(tensor._array) is Meta else cpu
