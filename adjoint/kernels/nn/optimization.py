"""Steps of optimizers on lists of arrays, in place: many small parameters at once, large ones in tiles that stay in cache.

A formula is a function `formula(xp, options, param, grad, *state)` of elementwise operations, which changes `param` and
`state` in place. `xp` holds the methods of tensors that it calls; here that is `ArrayMethods` or `FusedMethods`.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy
from numpy import ndarray

from ...codegen.acceleration import LOOPS
from ...codegen.costs import SORTED
from ..math.pointwise import sign
from ..runtime.floating import HALVES, OFF, WARNINGS, compute_dtype, restore
from ..runtime.parallel import parallel_rows

Formula = Callable[..., None]

_TILED = 1 << 14  # elements; smaller parameters are updated whole
_GATHERED = (
    1 << 12
)  # elements; smaller parameters are copied into one array, so that NumPy is called once for all of them
_SCRATCH = 1 << 14  # elements of that array
_PLANS = 16  # lists of shapes that a thread remembers

_concatenate: Any = getattr(numpy.concatenate, "__wrapped__", numpy.concatenate)  # without a look for other array types
_add, _subtract, _multiply, _divide, _copy = numpy.add, numpy.subtract, numpy.multiply, numpy.true_divide, numpy.copyto


class ArrayMethods:
    """The functions that formulas call on arrays of one dtype. They round as the methods of tensors with these names do."""

    sqrt = numpy.sqrt
    abs = numpy.absolute
    maximum = numpy.maximum
    reciprocal = numpy.reciprocal
    sign = staticmethod(sign)

    @staticmethod
    def clone(array: ndarray) -> ndarray:
        """A copy."""
        return array.copy()

    @staticmethod
    def new_ones(array: ndarray, shape: Sequence[int]) -> ndarray:
        """Ones of the dtype of `array`."""
        return numpy.ones(shape, array.dtype)

    @staticmethod
    def masked_fill(array: ndarray, mask: ndarray, value: float) -> ndarray:
        """A copy with `value` where `mask` is true."""
        result = array.copy()
        _copy(result, value, where=mask)
        return result

    @staticmethod
    def copy_(array: ndarray, other: ndarray) -> None:
        """Copy `other` into `array`."""
        _copy(array, other)

    @staticmethod
    def clamp_(array: ndarray, least: float, most: float) -> None:
        """Limit the elements to `[least, most]`."""
        numpy.maximum(array, least, out=array)
        numpy.minimum(array, most, out=array)

    @staticmethod
    def mul_(array: ndarray, other: Any) -> None:
        """Multiply by `other`, an array or a number."""
        _multiply(array, other, array)

    @staticmethod
    def add(array: ndarray, other: ndarray, *, alpha: float = 1) -> ndarray:
        """The sum with `alpha * other`."""
        total: ndarray = _add(array, _multiply(other, alpha))
        return total

    @staticmethod
    def add_(array: ndarray, other: ndarray, *, alpha: float = 1) -> None:
        """Add `alpha * other`."""
        _add(array, other if alpha == 1 else _multiply(other, alpha), array)

    @staticmethod
    def addcmul_(array: ndarray, first: ndarray, second: ndarray, *, value: float = 1) -> None:
        """Add `value * first * second`."""
        product = _multiply(first, second)
        if value != 1:
            _multiply(product, value, product)
        _add(array, product, array)

    @staticmethod
    def addcdiv_(array: ndarray, first: ndarray, second: ndarray, *, value: float = 1) -> None:
        """Add `value * first / second`."""
        quotient = _multiply(first, value)
        _divide(quotient, second, quotient)
        _add(array, quotient, array)

    @staticmethod
    def lerp_(array: ndarray, end: ndarray, weight: float) -> None:
        """Add `weight * (end - array)`, from whichever end is nearer."""
        step = _subtract(end, array)
        if weight < 0.5:
            _multiply(step, weight, step)
            _add(array, step, array)
        else:
            _multiply(step, 1 - weight, step)
            _subtract(end, step, array)


class FusedMethods(ArrayMethods):
    """`ArrayMethods` with the roundings of PyTorch's fused optimizers."""

    @staticmethod
    def addcmul_(array: ndarray, first: ndarray, second: ndarray, *, value: float = 1) -> None:
        """Add `(value * first) * second`."""
        product = _multiply(first, value)
        _multiply(product, second, product)
        _add(array, product, array)


def update(formula: Formula, options: Any, lists: Sequence[list[ndarray]], fused: bool = False) -> bool:
    """Apply a formula to each of the parameters.

    Args:
        formula: as described above.
        options: its second argument.
        lists: parameters, gradients, and each kind of state, in lists of one length.
        fused: whether its first argument is `FusedMethods`; half types are then computed in float32 and rounded once.

    Returns:
        False, if nothing was changed: where a gradient or state differs from its parameter in shape or dtype, and for
        complex numbers, integers, and half types unless `fused`.
    """
    params = lists[0]
    shapes, dtypes = [param.shape for param in params], [param.dtype for param in params]
    kind = dtypes[0]
    uniform = dtypes.count(kind) == len(dtypes)
    if not (_takes(kind, fused) if uniform else all(_takes(dtype, fused) for dtype in dtypes)):
        return False
    for arrays in lists[1:]:
        if [array.shape for array in arrays] != shapes or [array.dtype for array in arrays] != dtypes:
            return False
    apart = len(params) == 1 or _are_apart(lists)
    elements = sum([param.size for param in params])
    if uniform and apart and LOOPS.takes(elements, SORTED):
        done = LOOPS.run("nn.optimization.update", lists, formula, options, fused)
        if done is not NotImplemented:
            return True
    formula = functools.partial(formula, FusedMethods if fused else ArrayMethods, options)
    token = WARNINGS[OFF]
    try:
        if len(params) > 1 and uniform and apart:
            _plan(tuple(shapes), len(lists), kind).update(formula, lists)
        else:
            for arrays in zip(*lists, strict=True):
                _update_one(formula, arrays)
    finally:
        restore(token)
    return True


def _takes(dtype: numpy.dtype[Any], fused: bool) -> bool:
    return fused if dtype in HALVES else dtype.kind == "f"


def _are_apart(lists: Sequence[list[ndarray]]) -> bool:
    """Whether no two of the arrays that are changed can share memory: then parameters need not be updated in turn."""
    changed = list(chain(lists[0], *lists[2:]))
    owners: list[Any] = changed
    if False in [array.base is None for array in changed]:
        owners = [array if array.base is None else array.base for array in changed]
        if any(type(owner) is not ndarray or owner.base is not None for owner in owners):
            return False
    return len(set(map(id, owners))) == len(owners)


# --- one parameter --------------------------------------------------------------------------------------------


def _update_one(formula: Formula, arrays: Sequence[ndarray]) -> None:
    param = arrays[0]
    if param.ndim == 0:
        arrays = [array.reshape(1) for array in arrays]  # views: operations on no dimensions give scalars
    if param.size < _TILED or not all(array.flags.c_contiguous for array in arrays):
        _update_part(formula, arrays)
        return
    flat = [array.reshape(-1) for array in arrays]

    def work(start: int, stop: int) -> None:
        _update_part(formula, [array[start:stop] for array in flat])

    parallel_rows(work, param.size, param.itemsize * (len(arrays) + 2))


def _update_part(formula: Formula, arrays: Sequence[ndarray]) -> None:
    if arrays[0].itemsize > 2:
        formula(*arrays)
        return
    _update_half(formula, arrays)


def _update_half(formula: Formula, arrays: Sequence[ndarray]) -> None:
    wide = [array.astype(numpy.float32) for array in arrays]
    formula(*wide)
    for number, (array, part) in enumerate(zip(arrays, wide, strict=True)):
        if number != 1:
            array[...] = part


# --- many small parameters ------------------------------------------------------------------------------------


class _Chunk:
    """Scratch for the small parameters of a list, their gradients and state: an array for each, and its parts by their shapes."""

    def __init__(self, indices: list[int], shapes: list[tuple[int, ...]], whole: bool, flat: list[ndarray]) -> None:
        self.indices = None if whole else indices
        bounds = [0]
        for shape in shapes:
            bounds.append(bounds[-1] + math.prod(shape))
        self.flat = [array[: bounds[-1]] for array in flat]
        self.parts = [
            [array[start:stop].reshape(shape) for start, stop, shape in zip(bounds, bounds[1:], shapes, strict=False)]
            for array in self.flat
        ]

    def update(self, formula: Formula, lists: Sequence[list[ndarray]]) -> None:
        if self.indices is not None:
            lists = [[arrays[index] for index in self.indices] for arrays in lists]
        for arrays, flat in zip(lists, self.flat, strict=True):
            _concatenate(arrays, None, flat)
        formula(*self.flat)
        for number, (arrays, parts) in enumerate(zip(lists, self.parts, strict=True)):
            if number != 1:
                for array, part in zip(arrays, parts, strict=True):
                    array[...] = part


class _Plan:
    """Which parameters of a list are updated alone, and which in chunks."""

    def __init__(self, shapes: tuple[tuple[int, ...], ...], kinds: int, dtype: numpy.dtype[Any]) -> None:
        small: list[int] = []
        self.alone: list[int] = []
        for index, shape in enumerate(shapes):
            (small if math.prod(shape) < _GATHERED else self.alone).append(index)
        flat = [numpy.empty(_SCRATCH, compute_dtype(dtype)) for _ in range(kinds)] if small else []
        self.chunks = []
        members: list[int] = []
        elements = 0
        for index in small:
            size = math.prod(shapes[index])
            if elements + size > _SCRATCH:
                self.chunks.append(_Chunk(members, [shapes[i] for i in members], False, flat))
                members, elements = [], 0
            members.append(index)
            elements += size
        if members:
            self.chunks.append(_Chunk(members, [shapes[i] for i in members], len(members) == len(shapes), flat))

    def update(self, formula: Formula, lists: Sequence[list[ndarray]]) -> None:
        for index in self.alone:
            _update_one(formula, [arrays[index] for arrays in lists])
        for chunk in self.chunks:
            chunk.update(formula, lists)


class _Plans(threading.local):
    def __init__(self) -> None:
        self.known: dict[Any, _Plan] = {}


_plans = _Plans()


def _plan(shapes: tuple[tuple[int, ...], ...], kinds: int, dtype: numpy.dtype[Any]) -> _Plan:
    """The plan for parameters of these shapes and `kinds` lists. Its scratch belongs to this thread."""
    key = (kinds, dtype.num, shapes)  # the hash of a dtype takes long
    plan = _plans.known.get(key)
    if plan is None:
        if len(_plans.known) >= _PLANS:
            _plans.known.clear()
        plan = _plans.known[key] = _Plan(shapes, kinds, dtype)
    return plan
