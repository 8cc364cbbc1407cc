"""How each class of arrays handles a call: the computation by kernels, the writing of results, and the refused calls.

Lazily conjugated or negated arrays count as dense. Other classes are in `meta`, `sparse_layouts` and `narrow`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy import ndarray

from .. import dtypes
from ..codegen.compiled_ufuncs import of_any_size
from ..kernels.memory.bounds import in_words_of_pytorch
from ..kernels.memory.copying import copy_, distinct
from ..kernels.memory.storages import resized
from ..kernels.runtime.floating import refuse, unwarned
from ..kernels.runtime.lazy_conj import lazy_bits_of, with_lazy_bits
from ..kernels.runtime.shapes import broadcast_shapes
from ..tensor import as_array
from .declaration import ARRAY, OPTIONAL_ARRAY, Operator
from .out import check_castable, check_out, check_overlap, check_partial_overlap, write_out
from .plan import Call, Plan


class Dense:
    """Arrays of elements that kernels compute with."""

    words = ""
    has_views = True
    """Whether operators that return views return views of such arrays."""
    has_layout = True
    """Whether results are rounded and laid out in memory."""
    on_tensors = False
    """Whether the formulas of nodes run on tensors, even if gradients are plain arrays."""

    def check(self, plan: Plan, call: Call) -> None:
        """Raise an error if the result cannot be written to `out`. This runs before the computation."""
        check_out(plan.op, call.out, call.operands())

    def compute(self, plan: Plan, arrays: list[Any], kernel: Any = None) -> Any:
        """Run the array function, or another `kernel`. Errors are raised with PyTorch's messages."""
        op = plan.op
        try:
            if kernel is None:
                return op.code.computing(*arrays)
            keywords = {name: a for name, a in zip(op.names, arrays, strict=True) if name in op.keyword_only}
            with unwarned():
                return of_any_size(kernel)(*arrays[: len(arrays) - len(keywords)], **keywords)
        except (MemoryError, OverflowError, ValueError) as error:
            if op.promote or "broadcast" in str(error):
                broadcast_shapes(*(array.shape for array in given_arrays(op, arrays)))
            kept = error if isinstance(error, OverflowError) else RuntimeError(str(error))
            raise in_words_of_pytorch(error) or kept from None
        except TypeError as error:
            if "ufunc" not in str(error):
                raise
            kind = dtypes.from_numpy(given_arrays(op, arrays)[0].dtype)
            raise refuse(f"{op.name}_cpu", kind) from error

    finished: Callable[[Operator, list[Any]], list[Any]] | None = None
    """A function that makes arrays of this class from the results, or None if kernels return such arrays."""

    def write_out(self, op: Operator, call: Call) -> Any:
        """Write the results to `out`, and return the result of the call."""
        return write_out(op, call.results, call.out, call.operands(), call.several)

    def change(self, plan: Plan, call: Call) -> Callable[[], object]:
        """Return the function that changes the first argument in place. All checks have already run."""
        op, target, arrays = plan.op, call.args[0], call.arrays
        array = target._array
        # If promotion has copied the target, do not use the in-place kernel.
        kernel = self.inplace_kernel(op) if arrays[0] is array else None
        result: Any = None
        if kernel is None:
            result = self.result_in_place(plan, call)
        elif op.operands:
            check_fits(array.shape, broadcast_shapes(*(item.shape for item in given_arrays(op, arrays))))
        array = target._array
        if not op.uniform_write:
            check_overlap(target)
        if not op.uniform_write or len(arrays) > 1:
            if op.copies or type(array) is ndarray or not lazy_bits_of(array):  # the copy must be materialized first
                others = [call.args[1]._array] if op.copies else arrays[1:]
                if op.uniform_write:  # the filling number is read first
                    others = [each for each in others if getattr(each, "ndim", 0)]
                if op.no_overlap and kernel is not None and not array.size:
                    self.compute(plan, arrays, kernel)  # writes nothing, and other errors come first
                check_partial_overlap(array, others, op.no_overlap)
            if not array.flags.writeable:  # part of an expanded tensor, whose elements no longer share memory
                array = arrays[0] = distinct(array)
        if kernel is None:
            return lambda: copy_(array, result)
        return lambda: self.compute(plan, arrays, kernel)

    def inplace_kernel(self, op: Operator) -> Any:
        """Return the kernel that writes its result over the first array, or None if there is none."""
        return op.kernel.inplace

    def result_in_place(self, plan: Plan, call: Call) -> Any:
        """Return the checked value to write to the first argument."""
        op, target = plan.op, call.args[0]
        try:
            result = self.compute(plan, call.arrays)
        except NotImplementedError:
            if plan.target is not None:
                check_castable(plan.rounded or plan.target, target.dtype)
            raise
        if self.dense is not None:
            result = self.dense(result)
        result = as_array(result)
        if result.dtype is not target._array.dtype:
            check_castable(dtypes.from_numpy(result.dtype), target.dtype)
        shape = target._array.shape
        if result.shape != shape:
            if not op.resizes:
                check_fits(shape, result.shape)
            target._array = with_lazy_bits(resized(target._array, result.shape), lazy_bits_of(target._array))
        return result

    dense: Callable[[Any], Any] | None = None
    """A function that stores a separate element in each place of a result, or None if results already have such elements."""


DENSE = Dense()


def given_arrays(op: Operator, arrays: list[Any]) -> list[Any]:
    """Return the arguments of the array function that are single arrays."""
    single = (ARRAY, OPTIONAL_ARRAY)
    return [item for name, item in zip(op.names, arrays, strict=True) if op.kinds[name] in single and item is not None]


def check_fits(shape: tuple[int, ...], broadcast: tuple[int, ...]) -> None:
    """Raise an error unless the result has the shape of the tensor to which it is written."""
    if broadcast != shape:
        raise RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(broadcast)}")
