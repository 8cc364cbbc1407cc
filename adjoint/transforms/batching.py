"""Batching: applying one operator to a whole batch, by the batching rule that its declaration names.

`Batch` is the interface of a `vmap` for rules. `Batch` finds the tensors that have its batch dimension, and returns
these tensors with the batch dimension first. The `batch` option of a declaration is a function, or the name of a
mechanism in `MECHANISMS`. Without the option, elementwise operators and operators with parameters that name dimensions
use the matching mechanism. All others use the sequential fallback, which applies the operator to one batch element
after another.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import Any, TypeAlias

import numpy

from .. import dtypes
from ..device import contiguous_format
from ..dispatch.arguments import bind
from ..dispatch.declaration import Operator
from ..dispatch.decorators import tensors as operators
from ..dispatch.kinds import result_dtype
from ..dispatch.plan import FUNCTION, Call
from ..dispatch.planning import plan_of
from ..kernels.linalg import LinAlgError
from ..kernels.runtime.lazy_conj import LazyConjNeg
from ..kernels.runtime.meta_array import Unread
from ..random import default_generator
from ..tensor import Tensor, wrap, wrap_dim

Rule: TypeAlias = Callable[..., Any]
"""`rule(op, batch, *args)` returns the results, batch dimension first, or None to request the sequential fallback."""


class Batch:
    """The batch of a `vmap`. `at(value, index)`: the argument for one element. `random()`: "same" or "different"."""

    size: int
    at: Callable[[Any, int], Any]
    random: Callable[[], str]

    def has(self, tensor: Any) -> bool:
        """Return whether `tensor` has the batch dimension."""
        return getattr(tensor, "level", None) is self and tensor.bdim is not None

    def first(self, tensor: Any) -> Any:
        """Move the batch dimension of a tensor to the front. A tensor without this dimension is returned unchanged."""
        if getattr(tensor, "level", None) is not self:
            return tensor
        return tensor.value if not tensor.bdim else tensor.value.movedim(tensor.bdim, 0)

    def expanded(self, tensor: Any) -> Any:
        """Move the batch dimension to the front. Expand a tensor without this dimension along a new dimension."""
        first = self.first(tensor)
        return first if self.has(tensor) else first.expand((self.size, *first.shape))

    def aligned(self, tensor: Any, rank: int, *, expanded: bool = False) -> Any:
        """Return `first` or `expanded`, in a shape that broadcasts against batched tensors of `rank` dimensions."""
        first = self.expanded(tensor) if expanded else self.first(tensor)
        missing = rank - tensor._array.ndim
        if missing <= 0 or not (expanded or self.has(tensor)):
            return first
        count, *shape = first._array.shape
        return first.reshape((count, *(1,) * missing, *shape))

    @staticmethod
    def shifted(dims: Any, ndim: int) -> Any:
        """Shift dimensions of a tensor of `ndim` dimensions to make room for the batch dimension."""
        if isinstance(dims, (tuple, list)):
            return tuple(wrap_dim(dim, ndim) + 1 for dim in dims)
        return wrap_dim(dims, ndim) + 1

    def rows(self, tensor: Any) -> Any:
        """Return a tensor with the batch dimension as a matrix with one row per batch element."""
        return self.flat(self.first(tensor))

    @staticmethod
    def flat(tensor: Tensor) -> Tensor:
        """Flatten all dimensions except the first, which is the batch dimension."""
        count, *shape = tensor._array.shape
        return tensor if len(shape) == 1 else tensor.reshape((count, prod(shape)))

    def unmerged(self, tensor: Tensor) -> Tensor:
        """Split the first dimension into two. The batch dimension has been merged into it."""
        return tensor.reshape((self.size, tensor.numel() // self.size if self.size else 0))

    def batched(self, op: Operator, args: tuple[Any, ...]) -> Any:
        """Apply the batching rule of `op`, and return the results for the whole batch, with the batch dimension first."""
        if op.random and self.random() == "same":
            if op.draws and not op.inplace:  # the tensor contains parameters of the draw, not only its shape
                raise RuntimeError(SAME_OF_DIFFERENT)
            return sequential(op, self, *args, same=True)
        rule = rule_of(op)
        if not (rule in _PER_EXAMPLE or hasattr(rule, "reads_memory") or op.view or op.random):
            check_example(op, args)
        result = rule(op, self, *args)
        return sequential(op, self, *args) if result is None else result

    def by(self, mechanism: str, op: Operator, args: tuple[Any, ...]) -> Any:
        """Apply one of the `MECHANISMS` in place of the rule of `op`."""
        return MECHANISMS[mechanism](op, self, *args)


SAME_OF_DIFFERENT = (
    "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch"
)


@functools.cache
def rule_of(op: Operator) -> Rule:
    """Return the batching rule of an operator."""
    if callable(op.batch):
        return op.batch
    if op.batch is not None:
        mechanism, _, ndim = op.batch.partition(" of ")
        return functools.partial(samples, ndim=int(ndim)) if ndim else MECHANISMS[mechanism]
    if op.sequence is None and not op.outputs and (op.tangent == "elementwise" or op.operands):
        return elementwise
    if op.tensors == ["self"] and any(name in DIMENSIONS for name in op.names):
        return along_dims
    return sequential


def sequential(op: Operator, batch: Batch, *args: Any, same: bool = False) -> Any:
    """Apply the operator to one batch element after another: correct, but slow. `same`: with the same random numbers."""
    generator: Any = next((value for value in args if hasattr(value, "get_state")), default_generator)
    state: Any = generator.get_state() if same else None
    results = []
    for index in range(max(batch.size, 1)):
        if same:
            generator.set_state(state)
        results.append(op.apply(*[batch.at(value, index) for value in args]))
    if isinstance(results[0], (tuple, list)):
        return tuple(operators.stack(list(column))[: batch.size] for column in zip(*results, strict=True))
    return operators.stack(results)[: batch.size]


def elementwise(op: Operator, batch: Batch, *args: Any) -> Any:
    """Apply the operator itself to aligned tensors. They are expanded if the operator does not broadcast."""
    tensors = [value for value in args if isinstance(value, Tensor)]
    ranks = [value._array.ndim for value in tensors]
    rank = max(ranks)
    broadcasts = bool(op.operands)
    if (
        0 < rank == min(ranks)
        and "memory_format" not in op.names
        and (broadcasts or all(batch.has(value) for value in tensors))
    ):
        return op.apply(*map(batch.first, args))
    target = None
    mixed = len({value._array.dtype for value in tensors}) > 1
    if mixed and op.promote and any(batch.has(value) and not value._array.ndim for value in tensors):
        target = result_dtype(op, args)  # tensors without dimensions count less than their batches
    aligned = []
    for name, value in zip(op.names, args, strict=True):
        if name == "memory_format" and value is not contiguous_format:  # others are for the dimensions of an example
            value = None
        elif isinstance(value, Tensor):
            value = batch.aligned(value, rank, expanded=not broadcasts)
            if target is not None and value.dtype != target:
                value = value.to(target)
        aligned.append(value)
    return op.apply(*aligned)


def leading(op: Operator, batch: Batch, value: Any, *rest: Any) -> Any:
    """Apply the operator itself, which accepts additional leading dimensions."""
    return op.apply(batch.first(value), *rest)


DIMENSIONS = frozenset(("dim", "dim0", "dim1", "dim2", "dims", "dimension"))
"""Parameters that name dimensions of the first tensor, or of `shape` if the operator has that parameter."""


def along_dims(op: Operator, batch: Batch, value: Any, *rest: Any, more: int = 0) -> Any:
    """Apply the operator with shifted dimensions, of `more` than those of `value`, or return None without dimensions."""
    ndim = value._array.ndim
    if not ndim + more:
        return None
    shifted = []
    for name, argument in zip(op.names[1:], rest, strict=True):
        if name in DIMENSIONS:
            if argument is None or argument == ():
                if op.types.get(name) != "Dims":
                    return None
                argument = tuple(range(1, ndim + 1))
            else:
                argument = batch.shifted(argument, ndim + more)
        shifted.append(argument)
    return op.apply(batch.first(value), *shifted)


def expanded(op: Operator, batch: Batch, *args: Any) -> Any:
    """Apply the operator itself, with the batch dimension on all tensors (and `shape`), and with shifted dimensions."""
    named = dict(zip(op.names, args, strict=True))
    ndim = len(named["shape"]) if "shape" in named else args[0]._array.ndim
    if not ndim or any(named.get(name, 0) is None for name in DIMENSIONS):
        return None
    moved = []
    for name, value in named.items():
        if isinstance(value, Tensor):
            value = batch.expanded(value)
        elif name in DIMENSIONS:
            value = batch.shifted(value, ndim)
        elif name == "shape":
            value = (batch.size, *value)
        moved.append(value)
    return op.apply(*moved)


def broadcast(op: Operator, batch: Batch, *args: Any) -> Any:
    """Apply the operator itself, which broadcasts stacks of matrices, with the batch dimension in front."""
    rank = max(value._array.ndim for value in args if isinstance(value, Tensor))
    return op.apply(*[batch.aligned(value, rank) if isinstance(value, Tensor) else value for value in args])


def samples(op: Operator, batch: Batch, *args: Any, ndim: int | None = None) -> Any:
    """Apply the operator with the batch dimension merged into the sample dimension, which precedes `ndim` others."""
    full = [batch.expanded(value) if isinstance(value, Tensor) else value for value in args]
    ndim = full[0]._array.ndim - 2 if ndim is None else ndim
    lead = full[0].shape[: full[0]._array.ndim - ndim]
    if len(lead) not in (1, 2) or not all(value._array.size for value in full if isinstance(value, Tensor)):
        return None  # examples of other ranks are refused, and examples without elements are computed one by one
    merged = [
        value.reshape((-1, *value.shape[value._array.ndim - ndim :])) if isinstance(value, Tensor) else value
        for value in full
    ]
    results = op.apply(*merged)
    if isinstance(results, tuple):
        return tuple(result.reshape((*lead, *result.shape[1:])) for result in results)
    return results.reshape((*lead, *results.shape[1:]))


def dynamic(op: Operator, batch: Batch, *args: Any) -> Any:
    """Raise an error, because the result of the operator has a different shape for each batch element."""
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::"
        f"{op.aten_name}. Please rewrite what you are doing with operators whose results have one shape for the whole batch."
    )


_PER_EXAMPLE = (sequential, elementwise, along_dims)
"""Rules that refuse a batch if the operator refuses one example. So do rules with an attribute `reads_memory`.

The operators of the latter depend on the memory around their elements, which a copy of an example does not have.
"""

MECHANISMS: dict[str, Rule] = {
    "sequential": sequential,
    "elementwise": elementwise,
    "leading": leading,
    "dims": along_dims,
    "result dims": functools.partial(along_dims, more=1),
    "expanded": expanded,
    "broadcast": broadcast,
    "samples": samples,
    "dynamic": dynamic,
}


# --- operators without rules in PyTorch -------------------------------------------------------------------------

WITHOUT_RULE = {
    full.partition(".")[0]: full
    for full in """
    _scaled_mm _trilinear addbmm_ addcdiv_ addcmul_ addmm_ addmv_ addr_ as_strided_ baddbmm_ bincount clamp_.Tensor
    conj_physical_ cumprod_ cumsum_ floor_divide_.Tensor fmod_.Tensor hash_tensor heaviside_ histc hypot_ igamma_
    igammac_ index_copy_ index_reduce isin.Tensor_Tensor ldexp_ lerp_.Scalar linalg_ldl_solve linalg_lu
    masked_fill.Tensor masked_scatter max_unpool2d max_unpool3d multi_margin_loss multilabel_margin_loss_forward
    nanquantile.scalar nextafter_ nonzero_static ormqr _pdist_forward permute_copy polygamma_ pow_.Tensor put quantile.scalar
    remainder_.Tensor renorm scatter_.src segment_reduce soft_margin_loss special_airy_ai special_chebyshev_polynomial_t
    special_chebyshev_polynomial_u special_chebyshev_polynomial_v special_chebyshev_polynomial_w
    special_hermite_polynomial_h special_hermite_polynomial_he special_laguerre_polynomial_l
    special_legendre_polynomial_p special_log_ndtr special_shifted_chebyshev_polynomial_t
    special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w
    squeeze_copy t_copy take transpose_copy.int unsqueeze_copy upsample_nearest_exact1d.vec xlogy_.Tensor
    """.split()
}
"""PyTorch's operators without a batching rule. `.Tensor` means the call whose last argument is a tensor."""


def refuse_fallback(call: Call) -> None:
    """Raise an error if PyTorch would apply the operator to one batch element after another."""
    full = WITHOUT_RULE.get(call.op.aten_name + "_" * call.in_place)
    if full is None:
        return
    last = next(value for value in reversed(call.given) if value is not None)
    if isinstance(last, Tensor) or not full.endswith(".Tensor"):
        raise RuntimeError(f"aten::{full} hit the vmap fallback which is currently disabled")


# --- examples ---------------------------------------------------------------------------------------------------
#
# If an operator refuses one example of a batch, for wrong ranks, sizes or dimensions, it refuses the whole batch.

_MOST = 4096

_accepted: set[Any] = set()
"""The shapes, dtypes and parameters that operators have accepted for one example."""


def check_example(op: Operator, args: tuple[Any, ...]) -> None:
    """Raise the error of `op` for a copy of the first example, unless it has accepted an example of these shapes."""
    key: list[Any] = [op.name]
    for value in args:
        if isinstance(value, Tensor):
            array = value._array
            key.append((array.shape, array.dtype.char))
        elif not _describe(value, key):
            return
    signature = tuple(key)
    if signature in _accepted:
        return
    example = tuple([_first(value) for value in args])
    if any(value is None and given is not None for value, given in zip(example, args, strict=True)):
        return
    try:
        plan, call = plan_of(op, example), Call(op, FUNCTION, bind(op, example))
        call.args = list(call.given)
        for step in plan.reading:
            step(call)
        plan.arrays.compute(plan, call.arrays)
    except LinAlgError:
        return
    if len(_accepted) >= _MOST:
        _accepted.clear()
    _accepted.add(signature)


_PLAIN = (int, float, complex, str, bool, type(None), dtypes.dtype)


def _describe(value: Any, key: list[Any]) -> bool:
    """Append the identifying properties of an argument that is not a tensor. Return False if its type is not plain."""
    if type(value) in _PLAIN:
        key.append((type(value), value))
        return True
    if type(value) is numpy.ndarray:
        key.append((value.shape, value.dtype.char))
        return True
    if type(value) is not list and type(value) is not tuple:
        return False
    key.append(len(value))
    for item in value:
        if isinstance(item, Tensor):
            key.append((item._array.shape, item._array.dtype.char))
        elif not _describe(item, key):
            return False
    return True


def _first(value: Any) -> Any:
    """Return the first example in separate memory, or None for a tensor without ordinary elements."""
    if isinstance(value, (list, tuple)):
        return type(value)([_first(item) for item in value])
    if not isinstance(value, Tensor):
        return value
    whole: Any = value
    while hasattr(whole, "bdim"):
        whole = whole.value
    array, kind = value._array, type(whole._array)
    if not (kind is numpy.ndarray or issubclass(kind, LazyConjNeg)) or (array.size and not whole._array.size):
        return None
    return wrap(numpy.array(array.view(numpy.ndarray) if isinstance(array, Unread) else array))
