"""Batching: one operator for a whole batch, by the rule that its declaration names.

`Batch` is what rules see of a `vmap`: which tensors have its batch dimension, and these with that dimension first. What a
declaration says as `batch` is a function, or the name of a mechanism in `MECHANISMS`. Where it says nothing, elementwise
operators and such with parameters that name dimensions have these mechanisms; all others run at each place of the batch in turn,
which is the sequential fallback.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import Any, TypeAlias

from ..dispatch.declaration import VALUE, Operator
from ..dispatch.decorators import tensors as operators
from ..dispatch.operands import result_dtype
from ..dispatch.slow_path import applied
from ..random import default_generator
from ..tensor import Tensor, wrap_dim

Rule: TypeAlias = Callable[..., Any]
"""`rule(op, batch, *args)`: the results with the batch dimension first; None where the sequential fallback is to be taken."""


class Batch:
    """A batch, as rules see it."""

    size: int

    def has(self, value: Any) -> bool:
        """Whether `value` is a tensor with the batch dimension."""
        raise NotImplementedError

    def first(self, tensor: Any) -> Any:
        """A tensor with the batch dimension first; one without it as it is."""
        raise NotImplementedError

    def at(self, value: Any, index: int) -> Any:
        """What an argument is at one place of the batch."""
        raise NotImplementedError

    def random(self) -> str:
        """`"same"` or `"different"`: whether all places of the batch get the same random numbers."""
        raise NotImplementedError

    def expanded(self, tensor: Any) -> Any:
        """A tensor with the batch dimension first; one without it is expanded along it."""
        first = self.first(tensor)
        return first if self.has(tensor) else first.expand((self.size, *first.shape))

    def aligned(self, tensor: Any, rank: int, *, expanded: bool = False) -> Any:
        """The same, broadcasting as `tensor` does with tensors of `rank` dimensions; expanded along the batch only if asked."""
        first = self.expanded(tensor) if expanded else self.first(tensor)
        missing = rank - tensor._array.ndim
        if missing <= 0 or not (expanded or self.has(tensor)):
            return first
        return first.reshape(first.shape[:1] + (1,) * missing + first.shape[1:])

    @staticmethod
    def shifted(dims: Any, ndim: int) -> Any:
        """Dimensions of a tensor of `ndim` dimensions, counted after the batch dimension."""
        if isinstance(dims, (tuple, list)):
            return tuple(wrap_dim(dim, ndim) + 1 for dim in dims)
        return wrap_dim(dims, ndim) + 1

    @staticmethod
    def flat(tensor: Tensor) -> Tensor:
        """A tensor whose first dimension is the batch's, the others flattened to one."""
        return tensor.reshape((tensor.shape[0], prod(tensor.shape[1:])))

    def unmerged(self, tensor: Tensor) -> Tensor:
        """A tensor with which the batch dimension was merged, as one of two dimensions of which the first is the batch's."""
        return tensor.reshape((self.size, tensor.numel() // self.size if self.size else 0))

    @staticmethod
    def apply(op: Operator, args: tuple[Any, ...]) -> Any:
        """Apply an operator to tensors as they are."""
        return applied(op, args)

    def batched(self, op: Operator, args: tuple[Any, ...]) -> Any:
        """The result (or results) of `op` for the whole batch, by its own rule, the batch dimension first."""
        if op.random and self.random() == "same":
            return sequential(op, self, *args, same=True)
        result = rule_of(op)(op, self, *args)
        return sequential(op, self, *args) if result is None else result

    def by(self, mechanism: str, op: Operator, args: tuple[Any, ...]) -> Any:
        """The same by one of the `MECHANISMS`."""
        return MECHANISMS[mechanism](op, self, *args)


@functools.cache
def rule_of(op: Operator) -> Rule:
    """The rule for an operator."""
    if callable(op.batch):
        return op.batch
    if op.batch is not None:
        return MECHANISMS[op.batch]
    if op.sample_ndim is not None:
        return samples
    if op.sequence is None and not op.outputs and (op.tangent == "elementwise" or op.operands):
        return elementwise
    if op.tensors == ["self"] and any(name in DIMENSIONS for name in op.names):
        return along_dims
    return sequential


def sequential(op: Operator, batch: Batch, *args: Any, same: bool = False) -> Any:
    """The operator at each place of the batch in turn, if asked with the same random numbers: right for all, if slow."""
    generator: Any = next((value for value in args if hasattr(value, "get_state")), default_generator)
    state: Any = generator.get_state() if same else None
    results = []
    for index in range(max(batch.size, 1)):
        if same:
            generator.set_state(state)
        results.append(applied(op, tuple(batch.at(value, index) for value in args)))
    if isinstance(results[0], (tuple, list)):
        return tuple(operators.stack(list(column))[: batch.size] for column in zip(*results, strict=True))
    return operators.stack(results)[: batch.size]


def elementwise(op: Operator, batch: Batch, *args: Any) -> Any:
    """The operator itself, tensors of unequal numbers of dimensions aligned; expanded where it does not broadcast operands."""
    tensors = [value for value in args if isinstance(value, Tensor)]
    ranks = [value._array.ndim for value in tensors]
    rank = max(ranks)
    broadcasts = bool(op.operands)
    if (
        0 < rank == min(ranks)
        and "memory_format" not in op.names
        and (broadcasts or all(batch.has(value) for value in tensors))
    ):
        return applied(op, tuple([batch.first(value) for value in args]))
    target = None
    if op.promote and any(batch.has(value) and not value._array.ndim for value in tensors):
        target = result_dtype(op, {n: v for n, v in zip(op.names, args, strict=True) if op.kinds[n] != VALUE})
    aligned = []
    for name, value in zip(op.names, args, strict=True):
        if name == "memory_format":  # of the four dimensions that the function sees, not of these
            value = None
        elif isinstance(value, Tensor):
            value = batch.aligned(value, rank, expanded=not broadcasts)
            if target is not None and value.dtype != target:
                value = value.to(target)
        aligned.append(value)
    return applied(op, tuple(aligned))


def leading(op: Operator, batch: Batch, value: Any, *rest: Any) -> Any:
    """The operator itself, which takes further dimensions in front of those that it works on."""
    return applied(op, (batch.first(value), *rest))


DIMENSIONS = frozenset(("dim", "dim0", "dim1", "dim2", "dims", "dimension"))
"""Parameters that name dimensions of the operator's first tensor, or of `shape` if it has that parameter."""


def along_dims(op: Operator, batch: Batch, value: Any, *rest: Any, more: int = 0) -> Any:
    """The operator itself, its dimensions counted after the batch's; None where none are given or there are none.

    Dimensions are counted among `more` than those of `value`. Of parameters annotated `Dims` None, and (), mean all dimensions.
    """
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
    return applied(op, (batch.first(value), *shifted))


def expanded(op: Operator, batch: Batch, *args: Any) -> Any:
    """The operator itself, all tensors (and `shape`) with the batch dimension, dimensions counted after it."""
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
    return applied(op, tuple(moved))


def broadcast(op: Operator, batch: Batch, *args: Any) -> Any:
    """The operator itself, which broadcasts stacks of matrices, with the batch dimension in front of all other ones."""
    rank = max(value._array.ndim for value in args if isinstance(value, Tensor))
    return applied(op, tuple(batch.aligned(value, rank) if isinstance(value, Tensor) else value for value in args))


def samples(op: Operator, batch: Batch, *args: Any) -> Any:
    """The operator itself, the batch dimension merged with the one, if any, that counts samples of `sample_ndim` dimensions.

    Where the declaration has no `sample_ndim` the first dimension always counts samples.
    """
    full = [batch.expanded(value) if isinstance(value, Tensor) else value for value in args]
    if not all(value._array.size for value in full if isinstance(value, Tensor)):
        return None
    ndim = full[0]._array.ndim - 2 if op.sample_ndim is None else op.sample_ndim
    lead = full[0].shape[: full[0]._array.ndim - ndim]
    merged = [
        value.reshape((-1, *value.shape[value._array.ndim - ndim :])) if isinstance(value, Tensor) else value
        for value in full
    ]
    results = applied(op, tuple(merged))
    if isinstance(results, tuple):
        return tuple(result.reshape((*lead, *result.shape[1:])) for result in results)
    return results.reshape((*lead, *results.shape[1:]))


def dynamic(op: Operator, batch: Batch, *args: Any) -> Any:
    """Refuse an operator whose result has another shape at each place of the batch."""
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::"
        f"{op.aten_name}. Please rewrite what you are doing with operators whose results have one shape for all examples."
    )


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
