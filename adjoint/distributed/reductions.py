"""The reduction of arrays: the operations, and MPI's datatypes and operations for each dtype.

MPI has neither bfloat16 nor float16, and its minimum of a NaN and a number depends on their order. A function of this
package reduces such cases. MPI calls this function with two parts at a time. The function rounds after every step, as
PyTorch does. It is commutative bit for bit, so all ranks get the same result.

For sparse tensors, each rank receives the elements of all ranks and adds them in the order of the ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy

import adjoint as torch

from .. import dtypes
from ..interchange import tensor_array
from ..kernels.runtime.floating import unwarned
from . import mpi

if TYPE_CHECKING:
    from .process_group import ProcessGroup
    from .steps import Steps

Array = numpy.ndarray[Any, Any]


class ReduceOp(Enum):
    """The reduction operations: SUM, AVG, PRODUCT, MIN, MAX, and for integers BAND, BOR, BXOR."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # as PyTorch names the type of the operations

BITWISE = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
_HALVES = ("float16", "bfloat16")
_OF_BOOL = {
    ReduceOp.SUM: "LOR",
    ReduceOp.PRODUCT: "LAND",
    ReduceOp.MIN: "LAND",
    ReduceOp.MAX: "LOR",
    ReduceOp.BAND: "LAND",
    ReduceOp.BOR: "LOR",
    ReduceOp.BXOR: "LXOR",
}
_NATIVE = {
    ReduceOp.SUM: "SUM",
    ReduceOp.AVG: "SUM",
    ReduceOp.PRODUCT: "PROD",
    ReduceOp.MIN: "MIN",
    ReduceOp.MAX: "MAX",
    ReduceOp.BAND: "BAND",
    ReduceOp.BOR: "BOR",
    ReduceOp.BXOR: "BXOR",
}
_UFUNCS: dict[ReduceOp, numpy.ufunc] = {
    ReduceOp.SUM: numpy.add,
    ReduceOp.AVG: numpy.add,
    ReduceOp.PRODUCT: numpy.multiply,
    ReduceOp.MIN: numpy.minimum,
    ReduceOp.MAX: numpy.maximum,
    ReduceOp.BAND: numpy.bitwise_and,
    ReduceOp.BOR: numpy.bitwise_or,
    ReduceOp.BXOR: numpy.bitwise_xor,
}


def check(op: Any, dtype: dtypes.dtype, name: str) -> None:
    """Refuse tensors that cannot be reduced.

    Raises:
        TypeError: if `op` is not a ReduceOp.
        ValueError: if complex numbers are reduced by an operation other than SUM and AVG.
        RuntimeError: if floating-point numbers are reduced bitwise, or if integers are averaged.
    """
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{name}(): argument 'op' must be a ReduceOp, not {type(op).__name__}")
    if dtype.is_complex and op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise ValueError(f"{name} does not support {op} on complex tensors")
    if op in BITWISE and dtype.is_floating_point:
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op is ReduceOp.AVG and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"result type Float can't be cast to the desired output type {dtype.scalar_type}")


def movable(array: Array) -> Any:
    """Return MPI's description of a contiguous array as bytes."""
    return [array.reshape(-1).view(numpy.uint8), mpi.load().BYTE]


def reducible(array: Array, op: ReduceOp) -> tuple[Array, Any, Any]:
    """Return a contiguous array as one dimension of elements that MPI supports, their MPI datatype, and the MPI operation."""
    MPI = mpi.load()
    flat = array.reshape(-1)
    kind = flat.dtype.kind
    if kind == "c":
        flat = flat.view(flat.real.dtype)
    name = flat.dtype.name
    if kind == "b":
        return flat.view(numpy.uint8), MPI.UINT8_T, getattr(MPI, _OF_BOOL[op])
    if name in _HALVES:
        datatype = MPI.INT16_T if name == "float16" else MPI.UINT16_T
        return flat.view(numpy.uint16), datatype, _stepwise(op, name)
    datatype = getattr(MPI, {"float32": "FLOAT", "float64": "DOUBLE"}.get(name, f"{name.upper()}_T"))
    if kind == "f" and op in (ReduceOp.MIN, ReduceOp.MAX):
        return flat, datatype, _stepwise(op, name)
    return flat, datatype, getattr(MPI, _NATIVE[op])


@cache
def _stepwise(op: ReduceOp, name: str) -> Any:
    """Return the MPI operation that combines two buffers with NumPy's function.

    Half-precision elements are computed in float32 and rounded.
    """
    held = getattr(dtypes, name).numpy
    combine = combination(held, op)

    def of_buffers(first: Any, second: Any, datatype: Any) -> None:
        combine(numpy.frombuffer(first, held), numpy.frombuffer(second, held))

    return mpi.load().Op.Create(of_buffers, commute=True)


@cache
def combination(held: numpy.dtype[Any], op: ReduceOp) -> Callable[[Array, Array], None]:
    """Return the function that reduces its first array into its second with NumPy's function.

    Half precision is computed in float32 and rounded.
    """
    ufunc = _UFUNCS[op]

    def combine(a: Array, b: Array) -> None:
        with unwarned():
            ufunc(a, b, out=b)

    def combine_halves(a: Array, b: Array) -> None:
        with unwarned():
            b[:] = ufunc(a.astype(numpy.float32), b.astype(numpy.float32))

    return combine_halves if held.name in _HALVES else combine


def averaged(array: Array, count: int) -> None:
    """Divide a sum in place for AVG. Half-precision sums are divided in float32 and rounded."""
    if array.dtype.name in _HALVES:
        array[...] = array.astype(numpy.float32) / numpy.float32(count)
    else:
        array /= count


def check_sparse(tensor: Any, op: ReduceOp) -> None:
    """Raise RuntimeError unless a sparse reduction is supported for the tensor."""
    if tensor.layout is not torch.sparse_coo:
        raise RuntimeError(f"all_reduce: sparse tensors must have the layout torch.sparse_coo, not {tensor.layout}")
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise RuntimeError("all_reduce: sparse tensors are reduced by ReduceOp.SUM and ReduceOp.AVG only")


def all_reduce_sparse_steps(group: ProcessGroup, tensor: Any, op: ReduceOp) -> Steps:
    """Put the sum, or the mean, of the tensors of all ranks into `tensor`. The stored elements may differ between ranks."""
    own = tensor.detach().coalesce()
    indices, values = (tensor_array(part) for part in (own.indices().t().contiguous(), own.values().contiguous()))
    counts = numpy.empty(group.size(), numpy.int64)
    yield group.comm.Iallgather(numpy.array([len(values)]), counts)
    every = []
    for part in (indices, values):
        gathered = numpy.empty((int(counts.sum()), *part.shape[1:]), part.dtype)
        yield _gather(group.comm, part, gathered, counts)
        every.append(gathered)
    with torch.no_grad():
        total = torch.sparse_coo_tensor(
            torch.from_numpy(every[0]).t(), torch.tensor(every[1], dtype=tensor.dtype), tensor.shape
        ).coalesce()
        tensor.copy_(total / group.size() if op is ReduceOp.AVG else total)


def _gather(comm: Any, part: Array, gathered: Array, counts: Array) -> Any:
    """Return the request that joins the rows of all ranks. Each rank may have a different number of rows."""
    width = part.itemsize * int(numpy.prod(part.shape[1:], dtype=numpy.int64))
    sizes = [width * count for count in counts.tolist()]
    starts = [0, *accumulate(sizes)][:-1]
    (sent, kind), (received, _) = movable(part), movable(gathered)
    return comm.Iallgatherv([sent, kind], [received, sizes, starts, kind])
