"""Choosing between elements: `where`, `clamp`, `minimum` and `maximum`, and the masks for their derivatives."""

from __future__ import annotations

import numpy

from ... import dtypes
from ...aten.torch_dispatch import is_watched
from ...codegen import selection
from ...codegen.kernel import FLOATS, Kernel
from ...dispatch.annotations import Array
from ...dispatch.arguments import invalid_arguments, is_number
from ...dispatch.constants import constant, constant_tensor
from ...dispatch.decorators import binary, internal, operator, public
from ...dispatch.sequential import is_readable
from ...dispatch.signatures import OUT, with_number
from ...dtypes import Rank
from ...kernels.index import masking as kernels
from ...kernels.memory.copying import widen
from ...kernels.runtime.floating import HALVES
from ...kernels.runtime.scalar import is_within, scalar_array
from ...tensor import Tensor, wrap
from ..declaring.formulas import underived
from ..declaring.overloads import overloads, pair

public(namespace=None, name="wide", on_arrays=widen)(lambda tensor: tensor)


@internal(Kernel(selection.zero_where, quiet=True), node="MaskedFillBackward0", batch="elementwise", narrow="halves")
class zero_where:
    """`input`, but 0 where `mask` is true."""

    def forward(self: Array, mask: Array): ...

    def grad_self(grad, mask, xp):
        return xp.zero_where(grad, mask)


# --- by a condition -------------------------------------------------------------------------------------------


@internal(
    Kernel(kernels.where, quiet=True),
    elementwise=True,
    node="WhereBackward0",
    same_out=True,
    function_name="where",
    tangent="linear",
    narrow="moves",
)
class select_where:
    """`input` where `condition` is true, and `other` elsewhere."""

    def forward(condition: Array, self: Array, other: Array): ...

    def grad_self(grad, condition, xp):
        return xp.zero_where(grad, xp.logical_not(condition))

    def grad_other(grad, condition, xp):
        return xp.zero_where(grad, xp.eq(condition, True))


def _operand(value, other):
    """Return `value`, a tensor or a number, as a tensor of the dtype of a result with `other`."""
    if isinstance(value, Tensor):
        return value
    if type(other) is Tensor and is_within(value, other.dtype):
        return constant(value, other)
    if isinstance(other, Tensor):
        rank = Rank.DIMENSIONED if other._array.ndim else Rank.ZERO_DIM
        operands = ((other.dtype, rank), (dtypes.scalar_dtype(value), Rank.SCALAR))
    else:
        operands = ((dtypes.scalar_dtype(value), Rank.SCALAR), (dtypes.scalar_dtype(other), Rank.SCALAR))
    kind = dtypes.promote(operands)
    return constant_tensor(value, kind) if kind.numpy in HALVES else wrap(scalar_array(value, kind))


@public(
    on_arrays=kernels.where,
    forms=(
        "Tensor condition",
        f"Tensor condition, Tensor input, Tensor other, {OUT}",
        "Tensor condition, Number self, Tensor other",
        "Tensor condition, Tensor input, Number other",
        "Tensor condition, Number self, Number other",
    ),
)
def where(condition, input=None, other=None, *, out=None, **names):
    """`input` where `condition` is true, and `other` elsewhere.

    With `condition` alone, return the indices of its true elements.

    `input` and `other` are tensors or numbers.

    >>> import adjoint as torch
    >>> x = torch.tensor([-1.0, 2.0])
    >>> torch.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    if names:
        rest = dict(names)
        if input is None:
            input = rest.pop("self", rest.pop("x", None))
        if other is None:
            other = rest.pop("x2", None)
        if rest and (input is None or other is None):
            raise invalid_arguments("where", condition, **names)
        if rest:
            raise TypeError(f"where() got an unexpected keyword argument '{next(iter(rest))}'")
    if type(input) is Tensor and type(other) is Tensor and out is None:
        return select_where(condition, input, other)
    if input is None and other is None:
        if not is_readable(condition):
            if is_watched(condition):
                return condition.nonzero(as_tuple=True)
            raise RuntimeError(
                "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::where."
            )
        return tuple(wrap(index) for index in kernels.indices_where(condition._array))
    if not ((isinstance(input, Tensor) or is_number(input)) and (isinstance(other, Tensor) or is_number(other))):
        raise invalid_arguments("where", condition, *(value for value in (input, other) if value is not None))
    input, other = _operand(input, other), _operand(other, input)
    return select_where(condition, input, other, out=out)


@public(namespace=None, method=("where",))
def where_method(input, condition, other):
    """`input` where `condition` is true, and `other` elsewhere."""
    return where(condition, input, other)


def _one_real_type(result, given, inputs):
    """Raise an error if `heaviside` would compute in another dtype than the dtype of its operands."""
    if inputs[0].dtype is not given:
        kind = "complex tensors" if given.is_complex else "tensors with different dtypes"
        raise RuntimeError(f"heaviside is not yet implemented for {kind}.")


@operator(elementwise=True, kernel=kernels.heaviside, node="NotImplemented", inplace=True, same_out=_one_real_type)
class heaviside:
    """0 where `input` is negative, 1 where it is positive, `values` where it is 0."""

    def forward(self: Array, values: Array): ...

    grad_self = grad_values = underived("heaviside")


# --- by order -------------------------------------------------------------------------------------------------


def _unless_less(grad, self, other, xp):
    return xp.zero_where(xp.where(self == other, grad / 2, grad), self < other)


def _unless_greater(grad, self, other, xp):
    return xp.zero_where(xp.where(self == other, grad / 2, grad), self > other)


@binary(Kernel(kernels.maximum, small=numpy.maximum, dtypes=FLOATS), inplace=False, numbers=False)
class maximum:
    """The greater of two elements, or NaN if one is NaN. Where both are equal, each gets half of the gradient.

    >>> import adjoint as torch
    >>> torch.maximum(torch.tensor([1.0, 5.0]), torch.tensor([3.0, 4.0]))
    tensor([3., 5.])
    """

    grad_self, grad_other = _unless_less, _unless_greater


@binary(Kernel(kernels.minimum, small=numpy.minimum, dtypes=FLOATS), inplace=False, numbers=False)
class minimum:
    """The smaller of two elements, or NaN if one is NaN. Where both are equal, each gets half of the gradient."""

    grad_self, grad_other = _unless_greater, _unless_less


@binary(Kernel(kernels.fmax, small=numpy.fmax, dtypes=FLOATS), inplace=False, numbers=False)
class fmax:
    """The greater of two elements, or the other element if one is NaN. Where both are equal, `input` gets the gradient."""

    def grad_self(grad, self, other, xp):
        return xp.zero_where(grad, xp.logical_not((self >= other) | xp.isnan(other)))

    def grad_other(grad, self, other, xp):
        return xp.zero_where(grad, (self >= other) | xp.isnan(other))


@binary(Kernel(kernels.fmin, small=numpy.fmin, dtypes=FLOATS), inplace=False, numbers=False)
class fmin:
    """The smaller of two elements. Where both are equal, `input` gets the gradient."""

    def grad_self(grad, self, other, xp):
        return xp.zero_where(grad, xp.logical_not((self <= other) | xp.isnan(other)))

    def grad_other(grad, self, other, xp):
        return xp.zero_where(grad, (self <= other) | xp.isnan(other))


# --- by bounds ------------------------------------------------------------------------------------------------


def _is_inside(self, min, max):
    """Return whether elements are inside the bounds, for tensors; `kernels.inside` does the same for arrays."""
    if min is None:
        return self <= max
    return self >= min if max is None else (self >= min) & (self <= max)


public(namespace=None, name="inside", on_arrays=kernels.inside)(_is_inside)


@pair(
    Kernel(kernels.clamp, inplace=kernels.clamp_, quiet=True),
    by_tensor={"name": "clamp_to_tensors", "node": "ClampBackward0", "aten": "Tensor"},
    by_number={
        "name": "clamp_to_numbers",
        "node": "ClampBackward1",
        "tangent": "elementwise",
        "values": {"min": "", "max": ""},
    },
    inplace=True,
    function_name="clamp",
)
class _clamp:
    """`input` limited to the intervals between two bounds, which are both tensors or both numbers."""

    def forward(self: Array, min: Array | None = None, max: Array | None = None): ...

    def grad_self(grad, self, min, max, xp):
        return xp.zero_where(grad, xp.logical_not(xp.inside(self, min, max)))

    def grad_min(grad, self, min, max, xp):
        counts = self < min if max is None else (self < min) & (min < max)
        return xp.zero_where(grad, xp.logical_not(counts))

    def grad_max(grad, self, min, max, xp):
        counts = self > max if min is None else (self > max) | (max < min)
        return xp.zero_where(grad, xp.logical_not(counts))


clamp_to_tensors, clamp_to_numbers = _clamp.by_tensor, _clamp.by_number
_clamp_to_numbers_ = clamp_to_numbers.inplace


_PLAIN = frozenset((int, float, type(None)))


def _is_number(bound):
    """Return whether a tensor may be used as a number."""
    return bound._array.ndim == 0 and not bound.requires_grad


def _require_bounds(input, min, max):
    """Raise an error for bounds that are neither numbers nor tensors."""
    given = [bound for bound in (min, max) if bound is not None]
    if not all(isinstance(bound, Tensor) or is_number(bound) for bound in given):
        raise invalid_arguments("clamp", input, *given) from None


def _bounds(input, min, max):
    """Return the operator for these bounds, and the bounds in the form of its arguments."""
    if (min is None or isinstance(min, Tensor)) and (max is None or isinstance(max, Tensor)) and min is not max:
        return clamp_to_tensors, min, max
    _require_bounds(input, min, max)
    if not isinstance(min, Tensor) and not isinstance(max, Tensor):
        return clamp_to_numbers, min, max
    if any(bound is not None and not isinstance(bound, Tensor) for bound in (min, max)):
        if not all(_is_number(bound) for bound in (min, max) if isinstance(bound, Tensor)):
            raise invalid_arguments("clamp", input, min, max)
        min, max = (bound.item() if isinstance(bound, Tensor) else bound for bound in (min, max))
        return clamp_to_numbers, min, max
    return clamp_to_tensors, min, max


@public(
    method=True,
    alias=("clip",),
    numpy_names=True,
    on_arrays=kernels.clamp,
    forms=(
        f"Tensor input, Tensor min = None, Tensor max = None, {OUT}",
        f"Tensor input, Number min = None, Number max = None, {OUT}",
    ),
)
def clamp(input, min=None, max=None, *, out=None):
    """`input` limited to `[min, max]`, which are numbers or tensors.

    The derivative at the bounds is 1.

    >>> import adjoint as torch
    >>> torch.clamp(torch.tensor([-1.0, 0.5, 2.0]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])

    Raises:
        RuntimeError: if neither bound is given.
    """
    if type(min) in _PLAIN and type(max) in _PLAIN:
        return clamp_to_numbers(input, min, max, out=out)
    function, min, max = _bounds(input, min, max)
    return function(input, min, max, out=out)


@public(method=("clamp_", "clip_"), alias=("clip_",))
def clamp_(input, min=None, max=None):
    """`clamp` in place."""
    if type(min) in _PLAIN and type(max) in _PLAIN:
        return _clamp_to_numbers_(input, min, max)
    function, min, max = _bounds(input, min, max)
    return function.inplace(input, min, max)


def _at_one_bound(name, node, bound):
    """Return the options of `clamp_min` and `clamp_max`."""
    common = {"inplace": True, "vmap_name": "inplace arithmetic"}
    number = {"name": f"{name}_to_number", "node": f"{node}Backward0", "values": {bound: ""}, "tangent": "elementwise"}
    return {
        "promote": None,
        "by_tensor": {"name": f"{name}_to_tensor", "node": f"{node}Backward1", "aten": "Tensor", **common},
        "by_number": {**number, **common},
        "second": bound,
        "public_inplace": True,
        "forms": with_number,
    }


@overloads(kernels.clamp_min, **_at_one_bound("clamp_min", "ClampMin", "min"))
class clamp_min:
    """`input`, but at least `min`, a number or a tensor."""

    def forward(self: Array, min: Array): ...

    def grad_self(grad, self, min, xp):
        return xp.zero_where(grad, xp.logical_not(self >= min))

    def grad_min(grad, self, min, xp):
        return xp.zero_where(grad, xp.logical_not(self < min))


@overloads(kernels.clamp_max, **_at_one_bound("clamp_max", "ClampMax", "max"))
class clamp_max:
    """`input`, but at most `max`, a number or a tensor."""

    def forward(self: Array, max: Array): ...

    def grad_self(grad, self, max, xp):
        return xp.zero_where(grad, xp.logical_not(self <= max))

    def grad_max(grad, self, max, xp):
        return xp.zero_where(grad, xp.logical_not(self > max))
