"""Operators on sparse tensors: the choice of the kernel, refusals, and the recorded nodes.

The option `sparse` names a function of a module in `kernels.sparse`, with the parameters of the operator.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from .._runtime.first_use import import_late
from ..codegen.backend import NUMPY
from ..kernels.runtime.sparse_array import Coordinates, SparseArray
from ..kernels.sparse.layouts import as_written_to, overwrite, to_dense
from ..tape.evaluation import on_tensors
from ..tape.interpreters import mapped
from ..tensor import as_array, wrap
from .array_classes import Dense
from .declaration import Operator
from .extrapolation import leaves
from .out import check_castable
from .plan import Call, Plan

VALUES = "values"
"""The option value for an operator whose own kernel applies to the stored elements."""

COMPRESSED_VALUES = "compressed_values"
"""The same, but the operator refuses coordinates."""


def sparse_kernel(op: Operator) -> Any:
    """Return the kernel of `op` for sparse layouts, or None if there is none."""
    if op.sparse in (VALUES, COMPRESSED_VALUES):
        compute = import_late("adjoint.kernels.sparse.arithmetic").mapped
        kernel = NUMPY.kernel(op.name).general
        all_layouts = op.sparse == VALUES

        def of_values(array: Any, *args: Any, **options: Any) -> Any:
            refused = not all_layouts and isinstance(array.parts, Coordinates)
            return NotImplemented if refused else compute(array, kernel, *args, **options)

        return of_values
    if op.sparse is None:
        return None
    module, _, name = op.sparse.rpartition(".")
    return getattr(import_late(f"adjoint.kernels.sparse.{module}"), name)


class Sparse(Dense):
    """Sparse arrays, possibly together with dense arrays."""

    words = ", on the sparse layout"
    has_views = has_layout = False
    on_tensors = True

    def compute(self, plan: Plan, arrays: list[Any], kernel: Any = None) -> Any:
        """Return the results. The operator refuses if it has no kernel for the layout."""
        kernel = kernel or sparse_kernel(plan.op)
        result = NotImplemented if kernel is None else super().compute(plan, arrays, kernel)
        if result is NotImplemented:
            raise refusal(plan, arrays)
        return result

    def change(self, plan: Plan, call: Call) -> Callable[[], object]:
        """Return the function that replaces the stored parts of a sparse first argument, or overwrites a dense one."""
        target = call.args[0]
        array: Any = target._array
        if type(array) is not SparseArray:
            return super().change(plan, call)
        if plan.op.sparse == VALUES and not getattr(array.parts, "coalesced", True) and plan.op.name != "neg":
            raise RuntimeError(f"{plan.op.name}_ requires coalesced input")
        result = as_written_to(array, as_array(self.compute(plan, call.arrays)))
        if result.shape != array.shape:
            raise RuntimeError(f"output with shape {list(array.shape)} doesn't match the shape {list(result.shape)}")
        check_castable(wrap(result).dtype, target.dtype)
        return lambda: overwrite(array, result)

    def inplace_kernel(self, op: Operator) -> Any:
        """Return the kernel that overwrites a dense first operand if another operand is sparse, or None."""
        module, _, name = (op.sparse or "").rpartition(".")
        return getattr(import_late(f"adjoint.kernels.sparse.{module}"), f"{name}_", None) if module else None

    dense = staticmethod(to_dense)


SPARSE = Sparse()


def refusal(plan: Plan, arrays: list[Any]) -> NotImplementedError:
    """Return the error for an operator that does not support the layout."""
    op = plan.op
    found = next(array for array in leaves(arrays) if isinstance(array, SparseArray))
    name = op.aten_name + ("_" if plan.way.startswith("_") else "") + ("" if op.aten == "default" else f".{op.aten}")
    error = NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the '{found.words}CPU' backend. This could be because the operator "
        "doesn't exist for this backend, or was omitted during the selective/custom build process (if using custom build)."
    )
    error.add_note("The operator computes on dense tensors: convert the sparse one by `to_dense()`.")
    return error


def dense_arguments(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with dense tensors in place of sparse tensors, also in sequences."""
    return tuple(mapped(lambda each: each.to_dense() if type(each._array) is SparseArray else each, args))


@cache
def node_class_on_tensors(kind: Any) -> Any:
    """Return the node class of an operation with sparse or narrow operands or results. Its formulas always run on tensors."""
    members = {
        "__slots__": (),
        "__module__": kind.__module__,
        "__doc__": kind.__doc__,
        "backward": on_tensors,
        "takes_stand_ins": True,
    }
    return type(kind.__name__, (kind,), members)
