"""Padding and cropping arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ...codegen.acceleration import LOOPS
from ...codegen.costs import THREADED
from ...codegen.plans import Memory, Plan, planned
from ..index.scatter import combine_at
from ..memory.copying import copy_elements
from ..runtime.floating import refuse
from ..runtime.scalar import typed
from .windows import flat_places

Array = numpy.ndarray[Any, Any]


def constant_pad_nd(self: Array, pad: Sequence[int], value: Any) -> Array:
    """Return `self` with `pad` (before, after) elements of `value` around the last dimensions. Negative numbers crop."""
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
        if self.shape[dim] + min(before, 0) + min(after, 0) < 0:  # even if the other end would be padded again
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
        for dim, part in enumerate(target):  # fill only the elements that are not copied
            outer = tuple(target[:dim])
            result[(*outer, slice(0, part.start or 0))] = value
            result[(*outer, slice(shape[dim] if part.stop is None else max(part.stop, 0), None))] = value
    else:
        result = numpy.empty(shape, self.dtype)
        result.fill(value)  # needs fewer calls than `numpy.full`
    copy_elements(result[tuple(target)], self[tuple(source)])
    return result


def padding(mode: str, name: str) -> tuple[Callable[..., Array], Callable[..., Array]]:
    """Return the kernels of the operator `name`, which pads the last dimensions, and of its gradient.

    `mode`: `"reflect"` pads with the mirror image, which does not repeat the outermost elements. `"replicate"` pads
    with the outermost elements.
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
    """Return the array with its last dimensions padded.

    `mode` is "reflect", "replicate", or "circular", as if the ends of a dimension met.
    """
    lengths, origins = _origins_of(self.shape, padding, mode)
    shape = (*self.shape[: self.ndim - len(lengths)], *map(len, origins))
    places = flat_places([each[:, None] for each in origins], lengths)[0]
    planes = math.prod(shape[: self.ndim - len(lengths)])

    def run(self: Array, *_: Any) -> Array:
        return self.reshape(planes, math.prod(lengths)).take(places, 1).reshape(shape)

    return Plan([Memory(shape, self.dtype)], run=run)


@planned("nn.padding.padded_backward")
def padded_backward(grad: Array, self: Array, padding: tuple[int, ...], mode: str) -> Plan:
    """Return the gradient of the array that `padded` pads.

    The gradient of each element is added to the gradient of its source.
    """
    lengths, origins = _origins_of(self.shape, padding, mode)
    shape = (*self.shape[: self.ndim - len(lengths)], *map(len, origins))
    if grad.shape != shape:
        raise RuntimeError(f"grad_output width unexpected. Expected a shape of {list(shape)}, Got: {list(grad.shape)}")
    places = flat_places([each[:, None] for each in origins], lengths)[0]
    planes = numpy.arange(math.prod(self.shape[: self.ndim - len(lengths)]))

    def run(grad: Array, self: Array, *_: Any) -> Array:
        result = numpy.zeros(self.shape, self.dtype)
        positions = planes[:, None] * math.prod(lengths) + places
        return combine_at(result, numpy.add, positions.reshape(-1), grad.reshape(-1))

    return Plan([Memory(self.shape, self.dtype)], run=run)


def _origins_of(shape: tuple[int, ...], padding: tuple[int, ...], mode: str) -> tuple[tuple[int, ...], list[Array]]:
    """Return the lengths of the padded dimensions, and for each dimension the source index of each padded index."""
    dims = len(padding) // 2
    lengths = shape[len(shape) - dims :]
    pairs = [(padding[2 * i], padding[2 * i + 1]) for i in reversed(range(dims))]
    return lengths, [origins(length, *pair, mode) for length, pair in zip(lengths, pairs, strict=True)]


def origins(length: int, before: int, after: int, mode: str) -> Array:
    """Return the source index of each index of a padded dimension."""
    places = numpy.arange(-before, length + after)
    if mode == "circular":
        start = max(-before, 0)
        return start + (places - start) % max(min(length + after, length) - start, 1)
    if mode == "replicate":
        return places.clip(0, length - 1)
    places = numpy.abs(places)
    return length - 1 - numpy.abs(length - 1 - places)
