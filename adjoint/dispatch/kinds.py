"""The kinds of operands, and the dtypes of results. Kinds and numbers together determine a result."""

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
"""The properties of an operand that determine a result: a tensor's class, dtype and rank, or a number's type.

The kind of a sequence of tensors is the set of their kinds. A rank tells whether there are dimensions. For a tensor
that represents a number, it is the type of the number.
"""


def kind_of(value: Any) -> Kind:
    """Return the kind of an operand."""
    if isinstance(value, Tensor):
        array, extra = value._array, value._extra
        if extra is None or extra.number is None:
            return type(array), array.dtype, array.ndim > 0
        return type(array), array.dtype, type_of_number(extra.number.args[0])
    if isinstance(value, (list, tuple)):
        return frozenset([kind_of(item) for item in value])
    return type_of_number(value)


def type_of_number(value: Any) -> type:
    """Return the Python or NumPy type from which the type of a number is derived, or the own type of anything else."""
    kind = type(value)
    return kind if kind in SCALARS else next((each for each in kind.__mro__ if each in SCALARS), kind)


def each_of(kinds: Iterable[Kind]) -> list[Kind]:
    """Return the kinds of single operands, including operands in sequences. Omitted operands have no kind."""
    single = [each for kind in kinds for each in (kind if isinstance(kind, frozenset) else (kind,))]
    return [kind for kind in single if kind is not NoneType]


def is_of(kind: Kind, dtype: Any) -> bool:
    """Return whether all operands of a kind are tensors of this dtype."""
    return all(type(each) is tuple and each[1] == dtype for each in each_of([kind]))


def dtypes_of(op: Operator, kinds: Iterable[Kind]) -> tuple[Any, Any]:
    """Return the dtype to which operands are converted, and the dtype to which the result is rounded, or None."""
    single = each_of(kinds) if op.promote else []
    if not single:
        return None, None
    alone = all(type(kind) is not tuple or isinstance(kind[2], type) for kind in single)
    target = promote(tuple([_abstract(kind, alone) for kind in single]))
    if op.promote == "float" and not (target.is_floating_point or target.is_complex):
        target = dtypes.get_default_dtype()
    if op.wide_numbers and target.numpy in HALVES:
        for kind in single:
            if type(kind) is not tuple or (kind[2] is not True and kind[1] != target.numpy):
                return dtypes.float32, target  # for numbers, and tensors without dimensions, of another dtype
    return target, None


def _abstract(kind: Kind, alone: bool) -> tuple[Any, Rank]:
    """Return an operand in the form for promotion. `alone`: whether all operands represent numbers."""
    if type(kind) is not tuple:
        return dtypes.dtype_of_numbers(kind), Rank.SCALAR
    _, dtype, rank = kind
    if isinstance(rank, type) and not alone:
        return dtypes.dtype_of_numbers(rank), Rank.SCALAR
    return dtypes.from_numpy(dtype), Rank.DIMENSIONED if rank is True else Rank.ZERO_DIM


def result_dtype(op: Operator, args: Any) -> Any:
    """Return the dtype to which operands are promoted, or None if the operator does not promote."""
    target, rounded = dtypes_of(op, [kind_of(args[position]) for position in op.tensor_positions])
    return rounded or target


def described(kind: Kind) -> str:
    """Return the text of a kind in a plan."""
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
