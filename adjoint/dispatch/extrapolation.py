"""Shapes of the results of kernels for large arrays, extrapolated from runs on small arrays of zeros.

A small size replaces each large size. The small sizes have the same order and, because kernels divide sizes by strides,
the same remainders. If a size is close to a multiple of another size, as sizes before and after a convolution are, the
small sizes have the same relation. Sizes of results are then polynomials in the sizes that may vary. Their degree is at
most two, a few runs give the coefficients, and a last run checks them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement, pairwise
from math import lcm, prod
from typing import Any, NamedTuple

import numpy

from ..kernels.runtime.meta_array import Meta, in_order
from ..tensor import as_array
from .plan import Plan

STRIDES = frozenset(("kernel_size", "split_size", "step", "stride"))
"""The parameters by which kernels divide sizes, also with a remainder."""

FACTORS = frozenset(("blocksize", "downscale_factor", "group", "groups", "upscale_factor"))
"""The parameters by which kernels divide sizes without a remainder."""

LEAST = ((12, 1), (32, 24))
"""The least small sizes, and their distances. The second pair is tried if a kernel refuses the small sizes."""

FEW = 1 << 17
"""Up to this number of elements, kernels with large numbers among their arguments run on arrays of full size."""


class Form(NamedTuple):
    """The shape and the dtype of an array, and its dimensions, the fastest first, each with a word for its memory."""

    shape: tuple[int, ...]
    dtype: Any
    steps: tuple[tuple[int, str], ...]

    def zeros(self, sizes: dict[int, int]) -> Any:
        """Return a meta array of this form, with other sizes."""
        strides, dense = [0] * len(self.shape), self.dtype.itemsize
        shape = [sizes.get(size, size) for size in self.shape]
        for dim, word in self.steps:
            if word != "shared":
                strides[dim] = dense if word == "dense" else 2 * dense
                dense = strides[dim] * shape[dim]
        return numpy.ndarray(shape, self.dtype, numpy.zeros(dense, "b"), 0, strides).view(Meta)


def form_of(value: Any) -> Any:
    """Return the forms of arrays, also in sequences. Masks with elements, and other values, are returned unchanged."""
    if isinstance(value, numpy.ndarray) and (type(value) is Meta or value.dtype != bool):
        steps, dense = [], value.itemsize
        for step, size, dim in sorted((abs(value.strides[dim]), value.shape[dim], dim) for dim in range(value.ndim)):
            steps.append((dim, "dense" if step == dense else "apart" if step > dense else "shared"))
            dense = max(step, dense) * size if step else dense
        return Form(value.shape, value.dtype, tuple(steps))
    return each(form_of, value) if isinstance(value, (list, tuple)) else value


def each(function: Callable[..., Any], values: Any, *args: Any) -> Any:
    """Return `function` of the items of a list or a tuple, in a sequence of the same type."""
    results = [function(value, *args) for value in values]
    return results if type(values) is list else values._make(results) if hasattr(values, "_make") else tuple(results)


def filled(form: Any, sizes: dict[int, int], numbers: bool = False) -> Any:
    """Return meta arrays in place of forms, with other sizes. `numbers`: whether numbers are sizes too."""
    if type(form) is Form:
        return form.zeros(sizes)
    if isinstance(form, (list, tuple)):
        return each(filled, form, sizes, numbers)
    return sizes.get(form, -sizes.get(-form, -form)) if numbers and type(form) is int else form


def leaves(value: Any) -> Iterator[Any]:
    """Iterate over a value, or over the values in nested sequences."""
    if isinstance(value, (list, tuple)) and type(value) is not Form:
        for item in value:
            yield from leaves(item)
    else:
        yield value


class Family:
    """Small sizes in place of some `values`, as functions of steps, one for each size that may vary.

    A step adds their period to a size and to the larger sizes that vary. A period is a multiple of all `strides`, and of
    the `factors` that divide the size. `least`: the smallest size that is replaced. Sizes that differ by less than
    `distance` keep their difference, and other sizes keep this distance. `most`: the largest small size if small sizes are
    proportional to sizes, otherwise 0.
    """

    def __init__(
        self, values: list[int], strides: set[int], factors: dict[int, set[int]], least: int, distance: int, most: int
    ) -> None:
        self.values, ratios = values, sorted({1, *strides})
        self.periods = {value: lcm(2, *strides, *factors.get(value, ())) for value in values}
        while True:
            self.bases: dict[int, int] = {}
            self.ties: dict[int, tuple[int, int]] = {}
            self.products: dict[int, tuple[int, int]] = {}
            small: dict[int, int] = {}
            last = least - 1
            for value in values:
                near = [(ratio == 1, abs(ratio * size - value), ratio, size) for size in small for ratio in ratios]
                near = [item for item in near if item[1] < max(distance, 16) and value >= least]
                small[value], base = value, max(last + distance, value * most // values[-1])
                base += (value - base) % self.periods[value]
                product = [
                    (one, value // one) for one in small if one >= least and value % one == 0 and value // one in small
                ]
                product = [pair for pair in product if min(pair) >= least]
                if product:
                    one, two = self.products[value] = product[0]
                    small[value] = small[one] * small[two]
                elif near:
                    ratio, size = self.ties[value] = min(near)[2:]
                    small[value] += ratio * (small[size] - size)
                elif base < value >= least:
                    self.bases[value] = small[value] = base
                last = max(last, small[value])
            self.count = len(self.bases)
            if all(one < two for steps in self._extremes() for one, two in pairwise(self.sizes(steps).values())):
                return
            least *= 2

    def _extremes(self) -> Iterator[tuple[int, ...]]:
        yield self.checked(2)
        for place in range(self.count):
            yield tuple(2 * (root == place) for root in range(self.count))

    def checked(self, degree: int) -> tuple[int, ...]:
        """Return the steps of the run that checks polynomials of a degree."""
        return tuple(degree + 1 if root == 0 else 1 for root in range(self.count))

    def sizes(self, steps: tuple[int, ...]) -> dict[int, int]:
        """Return the sizes after some steps, by the values that they replace."""
        found: dict[int, int] = {}
        added, roots = 0, iter(steps)
        for value in self.values:
            if value in self.products:
                found[value] = prod(found[size] for size in self.products[value])
            elif value in self.ties:
                ratio, size = self.ties[value]
                found[value] = ratio * found[size] + value - ratio * size
            elif value in self.bases:
                added += next(roots)
                found[value] = self.bases[value] + self.periods[value] * added
            else:
                found[value] = value
        return found

    def target(self) -> tuple[int, ...]:
        """Return the steps after which the sizes equal the values."""
        added = [0, *((value - small) // self.periods[value] for value, small in self.bases.items())]
        return tuple(two - one for one, two in pairwise(added))


def extrapolated(plan: Plan, given: list[Any], compute: Callable[[list[Any]], Any], least: int, distance: int) -> Any:
    """Return the forms of the results, and their sizes. Raise ValueError if a few runs do not determine them."""
    values_of = [(name, leaf) for name, value in zip(plan.op.names, given, strict=True) for leaf in leaves(value)]
    named = [(name, abs(leaf)) for name, leaf in values_of if type(leaf) is int]
    strides = {number for name, number in named if name in STRIDES and number}
    forms = [leaf for _, leaf in values_of if type(leaf) is Form]
    channels = {size for place, form in enumerate(forms) for size in (*form.shape[place == 0 : 2], *form.shape[-3:-2])}
    divisors = {number**2 if "scale" in name else number for name, number in named if name in FACTORS and number}
    values = {size for form in forms for size in form.shape}
    factors = {size: {each for each in divisors if size % each == 0} for size in channels}
    others = {number for name, number in named if name not in STRIDES | FACTORS}
    kept = {*strides, *(number for number in others if number <= 64 and number not in values)}
    free = others - kept - values
    if free and sum(prod(form.shape) for form in forms) <= FEW:
        raise ValueError("limits of sizes may depend on exact numbers")
    most = {1: 4096, 2: 512, 3: 128}.get(max((len(form.shape) for form in forms), default=1), 64) if free else 0
    least, distance = max(least - 1, 0, *kept) + 1, max(distance, sum(kept) + 1)
    family = Family(sorted(values | free), strides, factors, least, distance, most)

    def run(steps: tuple[int, ...]) -> tuple[Any, list[int]]:
        sizes = family.sizes(steps)
        named = zip(plan.op.names, given, strict=True)
        found = compute([filled(value, sizes, name not in STRIDES | FACTORS) for name, value in named])
        several = isinstance(found, (list, tuple))
        forms = [_result(as_array(item)) for item in (found if several else (found,))]
        return (several, *(form[1:] for form in forms)), [size for form in forms for size in form[0]]

    units = [tuple(int(root == place) for root in range(family.count)) for place in range(family.count)]
    kind, base = run((0,) * family.count)
    first = [run(unit)[1] for unit in units]
    bends: dict[tuple[int, int], list[int]] = {}

    def predicted(steps: tuple[int, ...]) -> list[int]:
        found = []
        for dim, size in enumerate(base):
            total = size + sum(step * (sizes[dim] - size) for step, sizes in zip(steps, first, strict=True))
            for (one, two), sizes in bends.items():
                bend = sizes[dim] - first[one][dim] - first[two][dim] + size
                total += bend * steps[one] * (steps[two] - (one == two)) // (1 + (one == two))
            found.append(total)
        return found

    for degree in (1, 2):
        if degree == 2:
            for one, two in combinations_with_replacement(range(family.count), 2):
                bends[one, two] = run(tuple(map(sum, zip(units[one], units[two], strict=True))))[1]
        if family.count and run(family.checked(degree)) == (kind, predicted(family.checked(degree))):
            return kind, predicted(family.target())
    raise ValueError("the results are no polynomials in the sizes")


def _result(array: Any) -> tuple[tuple[int, ...], Any, tuple[int, ...]]:
    """Return the shape and the dtype of a result, and its dimensions, the slowest first."""
    if not array.flags.forc and any(word == "apart" for _, word in form_of(array).steps):
        raise ValueError("the result has gaps in memory")
    return array.shape, array.dtype, tuple(sorted(range(array.ndim), key=lambda dim: -array.strides[dim]))


_KNOWN: dict[tuple[Plan, Any], Any] = {}


def _key(value: Any) -> Any:
    if isinstance(value, numpy.ndarray):
        return value.shape, value.strides, value.dtype
    return tuple(map(_key, value)) if isinstance(value, (list, tuple)) else (type(value), repr(value))


def results_of(plan: Plan, arrays: list[Any], compute: Callable[[list[Any]], Any]) -> Any:
    """Return meta arrays with the shapes of `compute(arrays)`, or `NotImplemented` if small runs do not determine them."""
    key = plan, _key(arrays)
    found = _KNOWN.get(key)
    given: Any = None if found else form_of(arrays)
    if any(isinstance(leaf, numpy.ndarray) for leaf in leaves(given)):
        return NotImplemented
    for least, distance in LEAST:
        try:
            found = found or extrapolated(plan, given, compute, least, distance)
        except (ArithmeticError, IndexError, RuntimeError, TypeError, ValueError):
            pass
    if found is None:
        return NotImplemented
    if len(_KNOWN) > 4096:
        _KNOWN.clear()
    (several, *forms), sizes = _KNOWN[key] = found
    made, rest = [], iter(sizes)
    for dtype, order in forms:
        made.append(in_order([next(rest) for _ in order], dtype, order))
    return made if several else made[0]
