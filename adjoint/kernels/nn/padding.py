"""Padding and cropping arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from ...codegen.acceleration import LOOPS
from ...codegen.costs import THREADED
from ...codegen.plans import Memory, Plan, planned
from ..memory.copying import copy_elements
from ..runtime.floating import refuse, widen
from ..runtime.scalar import typed

Array = numpy.ndarray[Any, Any]


def constant_pad_nd(self: Array, pad: Sequence[int], value: Any) -> Array:
    """`self` with `pad` (before, after) elements of `value` around the last dimensions; negative ones crop."""
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    dims = len(pad) // 2
    if dims > self.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {self.ndim}"
        )
    shape, source, target = list(self.shape), [slice(None)] * self.ndim, [slice(None)] * self.ndim
    for i in range(dims):
        dim, before, after = self.ndim - 1 - i, pad[2 * i], pad[2 * i + 1]
        if self.shape[dim] + min(before, 0) + min(after, 0) < 0:  # also where the other end would be padded again
            raise RuntimeError(
                f"narrow(): length must be non-negative. The input size {self.shape[dim]} of dimension {dim} is less than what "
                f"the negative padding {before} and {after} takes away."
            )
        shape[dim] = size = self.shape[dim] + before + after
        source[dim] = slice(max(-before, 0), self.shape[dim] - max(-after, 0))
        target[dim] = slice(max(before, 0), size - max(after, 0))
    value = typed(value, self.dtype)
    if LOOPS.takes(math.prod(shape), THREADED):
        result = numpy.empty(shape, self.dtype)
        for dim, part in enumerate(target):  # only what is not copied is filled
            outer = tuple(target[:dim])
            result[(*outer, slice(0, part.start or 0))] = value
            result[(*outer, slice(shape[dim] if part.stop is None else max(part.stop, 0), None))] = value
    else:
        result = numpy.empty(shape, self.dtype)
        result.fill(value)  # with fewer calls than `numpy.full`
    copy_elements(result[tuple(target)], self[tuple(source)])
    return result


def padding(mode: str, name: str) -> tuple[Callable[..., Array], Callable[..., Array]]:
    """The kernels of the operator `name`, which continues the last dimensions, and of its gradient.

    `mode`: `"reflect"`, by their mirror image, which does not repeat the outermost elements; `"replicate"`, by these.
    """

    def forward(self: Array, padding: Sequence[int]) -> Array:
        if self.dtype.kind == "b":
            raise refuse(f"{name}", self)
        padded_array: Array = padded(self, tuple(padding), mode)
        return padded_array

    def backward(grad: Array, self: Array, padding: Sequence[int]) -> Array:
        folded: Array = padded_backward(grad, self, tuple(padding), mode)
        return folded

    return forward, backward


@planned("nn.padding.padded")
def padded(self: Array, padding: tuple[int, ...], mode: str) -> Plan:
    """The last dimensions continued, by a `mode` of `padding` or, "circular", as if their ends met."""
    shape = list(self.shape)
    for i in range(len(padding) // 2):
        shape[-1 - i] += padding[2 * i] + padding[2 * i + 1]
    return Plan([Memory(tuple(shape), self.dtype)], run=_padded)


def _padded(self: Array, padding: tuple[int, ...], mode: str) -> Array:
    result = self
    for i in range(len(padding) // 2):
        dim = self.ndim - 1 - i
        size = self.shape[dim] + padding[2 * i] + padding[2 * i + 1]
        source, result = result, numpy.empty((*result.shape[:dim], size, *result.shape[dim + 1 :]), self.dtype)
        for target, origin, _ in _parts(mode, self.shape[dim], padding[2 * i], padding[2 * i + 1]):
            result[_along(dim, target)] = source[_along(dim, origin)]
    return result


@planned("nn.padding.padded_backward")
def padded_backward(grad: Array, self: Array, padding: tuple[int, ...], mode: str) -> Plan:
    """The gradient of what `padded` continues."""
    return Plan([Memory(self.shape, self.dtype)], run=_folded)


def _folded(grad: Array, self: Array, padding: tuple[int, ...], mode: str) -> Array:
    result = widen(grad)
    for i in range(len(padding) // 2):
        dim = self.ndim - 1 - i
        source = result
        result = numpy.zeros((*source.shape[:dim], self.shape[dim], *source.shape[dim + 1 :]), source.dtype)
        for target, origin, repeated in _parts(mode, self.shape[dim], padding[2 * i], padding[2 * i + 1]):
            part = source[_along(dim, target)]
            result[_along(dim, origin)] += numpy.add.reduce(part, dim, keepdims=True) if repeated else part
    return result.astype(self.dtype, copy=False)


def _along(dim: int, part: slice) -> tuple[slice, ...]:
    return (*[slice(None)] * dim, part)


def _parts(mode: str, size: int, before: int, after: int) -> Iterator[tuple[slice, slice, bool]]:
    """The parts of a padded dimension: where they are, where in the input they come from, whether that is one element.

    Positions count from the input's first element; negative padding leaves out what is there.
    """
    first, last = -before, size + after

    def part(start: int, stop: int) -> slice:
        return slice(start - first, stop - first)

    start, stop = max(first, 0), min(size, last)
    if start < stop:
        yield part(start, stop), slice(start, stop), False
    if mode == "circular":
        yield part(min(first, 0), 0), slice(stop - max(-first, 0), stop), False
        yield part(size, max(last, size)), slice(start, start + max(last - size, 0)), False
        return
    for start, stop, edge in ((first, min(0, last), 0), (max(size, first), last, size - 1)):
        if start >= stop:
            continue
        if mode == "replicate":
            yield part(start, stop), slice(edge, edge + 1), True
        else:
            low = 2 * edge - stop + 1  # the mirror image of the last position
            yield part(start, stop), slice(2 * edge - start, low - 1 if low else None, -1), False
