"""The kinds of operands: what the result of a call depends on besides numbers, and the dtypes that follow from it."""

from __future__ import annotations

from collections.abc import Iterable
from types import NoneType
from typing import Any

from numpy import ndarray

from .. import dtypes
from ..dtypes import Rank, promote
from ..kernels.runtime.floating import HALVES
from ..tensor import Tensor
from .constants import SCALARS
from .declaration import Operator

Kind = Any
"""What a result depends on of an operand: the class, the dtype and the rank of a tensor's array; the type of a number.

Of a sequence of tensors it is the set of theirs. A rank is whether there are dimensions, or the type of the number that the
tensor stands for.
"""


def kind_of(value: Any) -> Kind:
    """The kind of an operand."""
    if isinstance(value, Tensor):
        array, extra = value._array, value._extra
        if extra is None or extra.number is None:
            return type(array), array.dtype, array.ndim > 0
        return type(array), array.dtype, type_of_number(extra.number.args[0])
    if isinstance(value, (list, tuple)):
        return frozenset([kind_of(item) for item in value])
    return type_of_number(value)


def type_of_number(value: Any) -> type:
    """The type of a number, that of Python's or NumPy's which it is derived from; of anything else its own."""
    kind = type(value)
    return kind if kind in SCALARS else next((each for each in kind.__mro__ if each in SCALARS), kind)


def each_of(kinds: Iterable[Kind]) -> list[Kind]:
    """The kinds of single operands, those of sequences among them; none of what is left out."""
    single = [each for kind in kinds for each in (kind if isinstance(kind, frozenset) else (kind,))]
    return [kind for kind in single if kind is not NoneType]


def is_of(kind: Kind, dtype: Any) -> bool:
    """Whether operands of a kind, none of them a number, are of a dtype."""
    return all(type(each) is tuple and each[1] == dtype for each in each_of([kind]))


def dtypes_of(op: Operator, kinds: Iterable[Kind]) -> tuple[Any, Any]:
    """The dtype that operands of these kinds are converted to, and that which the result is rounded to; None if there is none.

    Raises:
        RuntimeError: if the dtypes have no common one.
        TypeError: if an operand is of no type of numbers.
    """
    single = each_of(kinds) if op.promote else []
    if not single:
        return None, None
    target = promote(tuple([_abstract(kind) for kind in single]))
    if op.promote == "float" and not (target.is_floating_point or target.is_complex):
        target = dtypes.get_default_dtype()
    if op.wide_numbers and target.numpy in HALVES and any(_is_wider(kind, target) for kind in single):
        return dtypes.float32, target
    return target, None


def _abstract(kind: Kind) -> tuple[Any, Rank]:
    """An operand as promotion sees it."""
    if type(kind) is not tuple:
        return dtypes.dtype_of_numbers(kind), Rank.SCALAR
    _, dtype, rank = kind
    if isinstance(rank, type):
        return dtypes.dtype_of_numbers(rank), Rank.SCALAR
    return dtypes.from_numpy(dtype), Rank.DIMENSIONED if rank else Rank.ZERO_DIM


def _is_wider(kind: Kind, target: Any) -> bool:
    """Whether an operand is a number, or a tensor without dimensions, that is not of the half type `target`."""
    return type(kind) is not tuple or (kind[2] is not True and kind[1] != target.numpy)


def result_dtype(op: Operator, args: Any) -> Any:
    """The dtype that operands are promoted to; None if the operator does not promote."""
    target, rounded = dtypes_of(op, [kind_of(args[position]) for position in op.tensor_positions])
    return rounded or target


def described(kind: Kind) -> str:
    """A kind as a plan shows it."""
    if isinstance(kind, frozenset):
        return f"[{', '.join(sorted(map(described, kind)))}]"
    if type(kind) is not tuple:
        return kind.__name__
    holder, dtype, rank = kind
    words = ["" if holder is ndarray else f"{holder.__name__} ", dtypes.from_numpy(dtype).name]
    if rank is False:
        words.append(" without dimensions")
    elif rank is not True:
        words.append(f" for a number ({rank.__name__})")
    return "".join(words)
