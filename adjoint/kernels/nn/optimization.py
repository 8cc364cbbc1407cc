"""Steps of optimizers on lists of arrays, in place, one parameter after another.

A formula is a function `formula(xp, options, param, grad, *state)` of elementwise operations, which changes `param` and
`state` in place. `xp` has the methods of tensors that the formula calls. In this module, `xp` is `Methods` or `FusedMethods`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy
from numpy import ndarray

from ...codegen.plans import compiled
from ..math.pointwise import sign
from ..runtime.costs import PASSES
from ..runtime.floating import HALVES, OFF, WARNINGS, restore

Formula = Callable[..., None]


class Methods:
    """The functions that formulas call on arrays of one dtype.

    They round like the methods of tensors with the same names. The functions after `reciprocal` use only operators,
    which the cells of compiled steps have too.
    """

    sqrt: Any = numpy.sqrt
    abs: Any = numpy.absolute
    maximum: Any = numpy.maximum
    minimum: Any = numpy.minimum
    sign: Any = staticmethod(sign)
    clone: Any = ndarray.copy
    copy_: Any = numpy.copyto

    @staticmethod
    def new_ones(array: Any, shape: Any) -> Any:
        """Return ones of the dtype of `array`."""
        return numpy.ones(shape, array.dtype)

    @staticmethod
    def masked_fill(array: Any, mask: Any, value: Any) -> Any:
        """Return a copy with `value` where `mask` is true."""
        return numpy.where(mask, array.dtype.type(value), array)

    @staticmethod
    def reciprocal(array: Any) -> Any:
        """Return 1 divided by each element."""
        return 1 / array

    @classmethod
    def clamp_(cls, array: Any, least: Any, most: Any) -> None:
        """Limit the elements to `[least, most]` in place."""
        cls.copy_(array, cls.minimum(cls.maximum(array, least), most))

    @staticmethod
    def mul_(array: Any, other: Any) -> None:
        """Multiply by `other`, an array or a number."""
        array *= other

    @staticmethod
    def add(array: Any, other: Any, *, alpha: Any = 1) -> Any:
        """Return the sum of the array and `alpha * other`."""
        return array + other * alpha

    @staticmethod
    def add_(array: Any, other: Any, *, alpha: Any = 1) -> None:
        """Add `alpha * other`."""
        array += other * alpha

    @staticmethod
    def addcmul_(array: Any, first: Any, second: Any, *, value: Any = 1) -> None:
        """Add `value * (first * second)`."""
        array += first * second * value

    @staticmethod
    def addcdiv_(array: Any, first: Any, second: Any, *, value: Any = 1) -> None:
        """Add `value * first / second`."""
        array += first * value / second

    @classmethod
    def lerp_(cls, array: Any, end: Any, weight: Any) -> None:
        """Add `weight * (end - array)`, computed from the nearer end."""
        step = end - array
        if weight < 0.5:
            array += step * weight
        else:
            cls.copy_(array, end - step * (1 - weight))


class RoundingOnce:
    """The roundings of PyTorch's fused optimizers."""

    @staticmethod
    def addcmul_(array: Any, first: Any, second: Any, *, value: Any = 1) -> None:
        """Add `(value * first) * second`."""
        array += first * value * second


class FusedMethods(RoundingOnce, Methods):
    """`Methods` with the roundings of PyTorch's fused optimizers."""


_UPDATE = compiled("nn.optimization.update", least=PASSES)


def update(formula: Formula, options: Any, lists: Sequence[list[ndarray]], fused: bool = False) -> bool:
    """Apply a formula to each of the parameters.

    Args:
        formula: as described above.
        options: its second argument.
        lists: the parameters, the gradients, and each kind of state, in lists of equal length.
        fused: whether its first argument is `FusedMethods`; half types are then computed in float32 and rounded once.

    Returns:
        False if nothing was changed, because a gradient or state differs from its parameter in shape or dtype, or
        because the dtype is complex, an integer, or a half type without `fused`.
    """
    params = lists[0]
    shapes, dtypes = [param.shape for param in params], [param.dtype for param in params]
    kind = dtypes[0]
    uniform = dtypes.count(kind) == len(dtypes)
    if not (_supports(kind, fused) if uniform else all(_supports(dtype, fused) for dtype in dtypes)):
        return False
    for arrays in lists[1:]:
        if [array.shape for array in arrays] != shapes or [array.dtype for array in arrays] != dtypes:
            return False
    apart = len(params) == 1 or _are_apart(lists)
    elements = sum([param.size for param in params])
    work = elements * len(params)  # NumPy makes calls for each parameter
    if uniform and apart and _UPDATE.run(work, lists, formula, options, fused) is not NotImplemented:
        return True
    formula = functools.partial(formula, FusedMethods if fused else Methods, options)
    token = WARNINGS[OFF]
    try:
        for arrays in zip(*lists, strict=True):
            if not arrays[0].ndim:
                arrays = [array.reshape(1) for array in arrays]  # views: operations on no dimensions give scalars
            if arrays[0].itemsize > 2:
                formula(*arrays)
                continue
            wide = [array.astype(numpy.float32) for array in arrays]
            formula(*wide)
            for number, (array, part) in enumerate(zip(arrays, wide, strict=True)):
                if number != 1:
                    array[...] = part
    finally:
        restore(token)
    return True


def _supports(dtype: numpy.dtype[Any], fused: bool) -> bool:
    return fused if dtype in HALVES else dtype.kind == "f"


def _are_apart(lists: Sequence[list[ndarray]]) -> bool:
    """Return whether no two of the changed arrays can share memory, so that the order of the updates does not matter."""
    changed = list(chain(lists[0], *lists[2:]))
    owners: list[Any] = changed
    if False in [array.base is None for array in changed]:
        owners = [array if array.base is None else array.base for array in changed]
        if any(type(owner) is not ndarray or owner.base is not None for owner in owners):
            return False
    return len(set(map(id, owners))) == len(owners)
