"""Padding and cropping arrays."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ...codegen.acceleration import LOOPS
from ...codegen.plans import Memory, Plan, compiled, empty, replayed
from ...codegen.recording import recordable
from ..index.scatter import combine, take_rows
from ..memory.copying import copy_elements, rounded, widen
from ..runtime.costs import THREADED
from ..runtime.floating import Array, is_inexact, refuse
from ..runtime.layout import row_major
from ..runtime.scalar import typed
from .windows import flat_places


@replayed
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
        result = empty(shape, self.dtype)
        for dim, part in enumerate(target):  # fill only the elements that are not copied
            outer = tuple(target[:dim])
            result[(*outer, slice(0, part.start or 0))] = value
            result[(*outer, slice(shape[dim] if part.stop is None else max(part.stop, 0), None))] = value
    else:
        result = empty(shape, self.dtype)
        result.fill(value)  # needs fewer calls than `numpy.full`
    copy_elements(result[tuple(target)], self[tuple(source)])
    return result


def padding(mode: str, name: str) -> tuple[Callable[..., Array], Callable[..., Array]]:
    """Return the kernels of the operator `name`, which pads the last dimensions, and of its gradient.

    `mode`: `"reflect"` pads with the mirror image, which does not repeat the outermost elements. `"replicate"` pads
    with the outermost elements.
    """
    dims = int(name[-2])

    @recordable
    def forward(self: Array, padding: Sequence[int]) -> Array:
        if len(padding) != 2 * dims:
            raise RuntimeError(f"padding size is expected to be {2 * dims}")
        result = padded(self, tuple(padding), mode)
        if self.dtype.kind == "b":
            raise refuse(f"{name}", self)
        return result

    def backward(grad: Array, self: Array, padding: Sequence[int]) -> Array:
        if not is_inexact(grad.dtype):
            raise refuse(f"{name}_backward", grad)
        return padded_backward(grad, self, tuple(padding), mode)

    return forward, backward


def require_fit(shape: tuple[int, ...], pad: Sequence[int], mode: str) -> None:
    """Raise an error if a shape has dimensions that cannot be padded in this mode."""
    dims = len(pad) // 2
    if mode != "circular" and (len(shape) not in (dims + 1, dims + 2) or not all(shape[len(shape) - dims - 1 :])):
        raise RuntimeError(
            f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(shape)}"
        )
    for i in range(dims):
        before, after = pad[2 * i], pad[2 * i + 1]
        dim = len(shape) - 1 - i
        size = shape[dim]
        if mode == "reflect" and (before >= size or after >= size):
            raise RuntimeError(
                f"Argument #{4 + 2 * i}: Padding size should be less than the corresponding input dimension, "
                f"but got: padding ({before}, {after}) at dimension {dim} of input {list(shape)}"
            )
        if mode == "circular" and size + before + after < 1 and max(before, after) <= size:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
        if mode == "circular" and max(before, after, 0) > size + min(before, 0) + min(after, 0):
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if size + before + after < 1:
            raise RuntimeError(
                f"input ({'WHD'[i]}: {size}) is too small. Calculated output {'WHD'[i]}: {size + before + after}"
            )


@recordable
@compiled("index.lookup.taken_in_planes")
def padded(self: Array, padding: tuple[int, ...], mode: str) -> Plan:
    """Return the array with its last dimensions padded. `mode` is "reflect", "replicate", or "circular" (joined ends)."""
    planes, area, shape, places, parts = _planes(self.shape, padding, mode)

    def take(self: Array, *_: Any) -> Array:
        return take_rows(self.reshape(planes, area), places, 1).reshape(shape)

    def into(out: Sequence[Array], self: Array, *_: Any) -> None:
        for target, source in parts:
            copy_elements(out[0][..., target], self[..., source])

    memory = Memory(shape, self.dtype)
    if len(padding) > 2 or self.size < THREADED:
        return Plan([memory], run=take, compiled=(self, planes, area, places, memory))
    return Plan([memory], into=into, compiled=NotImplemented)


def padded_backward(grad: Array, self: Array, padding: tuple[int, ...], mode: str) -> Array:
    """Return the gradient of the array that `padded` pads. Each element adds its gradient to its source."""
    planes, area, shape, places, _ = _planes(self.shape, padding, mode)
    if grad.shape != shape:
        raise RuntimeError(f"grad_output width unexpected. Expected a shape of {list(shape)}, Got: {list(grad.shape)}")
    wide = widen(grad)
    result = numpy.zeros((planes, area), wide.dtype)
    combine(result, result.shape, 1, places, row_major(wide).reshape(planes, len(places)), numpy.add)
    return rounded(result.reshape(self.shape), grad.dtype)


@functools.lru_cache(64)
def _planes(shape: tuple[int, ...], padding: tuple[int, ...], mode: str) -> Any:
    """Return the number of planes of padded dimensions, their area, the padded shape, the sources in a plane, and `_parts`."""
    require_fit(shape, padding, mode)
    dims = len(padding) // 2
    leading, lengths = shape[: len(shape) - dims], shape[len(shape) - dims :]
    pairs = [(padding[2 * i], padding[2 * i + 1]) for i in reversed(range(dims))]
    along = [origins(length, *pair, mode) for length, pair in zip(lengths, pairs, strict=True)]
    places = flat_places([each[:, None] for each in along], lengths)[0]
    return math.prod(leading), math.prod(lengths), (*leading, *map(len, along)), places, _parts(along[-1])


def _parts(sources: Array) -> list[tuple[slice, slice]]:
    """Return the slices of a padded dimension whose sources are adjacent (in either order) or one element, and their sources."""
    parts, start, steps = [], 0, [*numpy.diff(sources).tolist(), None]
    while start < len(sources):
        first, step, stop = int(sources[start]), steps[start], start + 1
        if step in (-1, 0, 1):
            while steps[stop - 1] == step:
                stop += 1
        end = first + step * (stop - start) if step in (-1, 1) else first + 1
        parts.append((slice(start, stop), slice(first, None if end < 0 else end, -1 if end < first else 1)))
        start = stop
    return parts


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
