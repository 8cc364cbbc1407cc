"""Turning source into functions: the names that generated code uses, and the code of operators, made on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import numpy

from .._runtime.first_use import computed_once
from .._runtime.tracebacks import shorten
from ..codegen.backend import NUMPY
from ..codegen.compiled_ufuncs import LargeUfuncs, of_any_size
from ..codegen.large_formulas import LargeFormula
from ..kernels.memory.copying import copy_
from ..kernels.runtime import floating
from ..kernels.runtime.addresses import may_share_memory, overlap
from ..kernels.runtime.layout import are_turned, laid_out
from ..kernels.runtime.lazy_conj import LazyConjNeg
from ..tape import modes, origin, refusals
from ..tape.aliases import alias
from ..tape.edges import current_edge
from ..tape.inference_tensors import mark_inference
from ..tape.node import NOWHERE, Node, note_node, sequence_numbers
from ..tape.packing import Packed, pack_saved
from ..tape.saved import RELEASED, save_result, unpack, unpack_array, unpack_list
from ..tape.torch_dispatch import DISPATCHING
from ..tape.versions import shared_counter
from ..tape.views import INFERENCE, MULTI_OUTPUT, Geometry, creation_unrecorded, may_be_rebased, rebase_history
from ..tensor import LEAF, PLAIN_TYPES, Tensor, as_array, new_tensor
from . import codes, node_source, registry, slow_path
from .arguments import MISSING, in_new_order
from .constants import NUMBERS, SCALARS, constant, constant_tensor
from .declaration import Operator, parameters_of
from .emitter import function_source, has_source, pattern, plan_source, sizes_source
from .lazy_stubs import building, put_code
from .plan import IN_PLACE, IN_PLACE_VIEW, OUT, Plan
from .planning import planned
from .python_operators import call_operator
from .registry import Namespace
from .source import SOURCES, compile_source
from .sparse_layouts import node_class_on_tensors
from .steps import change, promote
from .steps.compute import computing_source
from .steps.record_lines import part_source, saving_source

arrays = Namespace(registry.operators())
"""The namespace `xp` of formulas that run on arrays: the declared operators' array functions."""

tensors = Namespace(registry.operators())
"""The namespace `xp` of formulas that run on tensors: the operators themselves."""

# A module whose name is None gets no warnings from C code. NumPy's ufuncs, called by generated functions, therefore do
# not warn about overflow or division by zero, as in PyTorch, and at no cost, unlike `errstate`.
_BASE: dict[str, Any] = {
    "__name__": None,
    "__package__": "adjoint.operators",
    "__builtins__": __builtins__,
    "FLAGS": modes.FLAGS,
    "STATE": modes.STATE,
    "ANOMALY": modes.ANOMALY,
    "PLAIN": PLAIN_TYPES,
    "LEAF": LEAF,
    "NOWHERE": NOWHERE,
    "MISSING": MISSING,
    "NUMBERS": NUMBERS,
    "SCALARS": SCALARS,
    "MULTI_OUTPUT": MULTI_OUTPUT,
    "INFERENCE": INFERENCE,
    "RELEASED": RELEASED,
    "FLOAT32": numpy.dtype(numpy.float32),
    "FLOAT64": numpy.dtype(numpy.float64),
    "HALVES": floating.HALVES,
    "OFF": floating.OFF,
    "WARNINGS": floating.WARNINGS,
    "restore": floating.restore,
    "LARGE": LargeUfuncs(),
    "ndarray": NUMPY.array_type,
    "asarray": as_array,
    "new_tensor": new_tensor,
    "new_tuple": tuple.__new__,
    "getframe": sys._getframe,
    "broadcast": numpy.broadcast,
    "sequence_numbers": sequence_numbers,
    "array_namespace": arrays,
    "tensor_namespace": tensors,
    "DISPATCHING": DISPATCHING,
    **codes.NAMES,
}
_BASE |= {
    each.__name__: each
    for each in (
        Geometry, LazyConjNeg, Packed, Tensor, alias, are_turned, call_operator, change.detached_copy,
        change.save_operand, constant, constant_tensor, copy_, creation_unrecorded, current_edge, floating.unwarned,
        in_new_order, laid_out, mark_inference, may_be_rebased, may_share_memory, node_class_on_tensors, note_node,
        origin.nearest_user_frame, overlap, pack_saved, promote.castable, promote.edges_of, promote.plain_sequence,
        rebase_history, refusals.is_refusal, save_result, shared_counter, shorten, slow_path.call,
        slow_path.step_by_step, unpack, unpack_array, unpack_list,
    )
}  # fmt: skip


def lazy_function(op: Operator, variant: str, name: str, otherwise: Any = None) -> Any:
    """Return a function that generates its own code when it is first called."""
    namespace = names_of(op) | ({} if otherwise is None else {"otherwise": otherwise})

    def build(function: FunctionType) -> None:
        if otherwise is None:
            text, defaults = function_source(op, variant)
        else:
            text, defaults = sizes_source(op, variant == "sizes of contiguous"), {}
        namespace.update(defaults)
        if op.differentiable:
            namespace["NodeClass"] = op.inplace_node_class if variant.startswith("inplace") else op.node_class
        SOURCES[name] = text
        # A copy, because another thread may be building the same function, and without a reference cycle.
        made = compile_source(text, f"<adjoint {name}>", dict(namespace)).pop(op.name)
        put_code(function, made.__code__, made.__defaults__, made.__kwdefaults__)

    function = building(name, namespace, build)
    function.__doc__ = op.doc
    function.__qualname__ = name
    function.__module__ = op.declaration.__module__
    return function


def names_of(op: Operator) -> dict[str, Any]:
    """Return the names that the code of an operator uses."""
    kernel = op.kernel
    kernels = {"general": kernel.general, "small": kernel.small, "inplace_kernel": kernel.inplace}
    return _BASE | kernels | {"OP": op, "FREQUENT": op.frequent, "RETURNS": op.returns}


class Saving(NamedTuple):
    """The functions of the slow path that make a node and save the values that it needs.

    `started(call, name, on_tensors)` returns a node that has saved operands and parameters. `results(node, outputs)`
    saves results. `values(args)` returns the parameters, shapes and dtypes that are saved, by name.
    """

    started: Callable[..., Any]
    results: Callable[..., None]
    values: Callable[..., dict[str, Any]]


class NodeClasses(dict[str, type[Node]]):
    """The classes of an operator's nodes by name, each created on first use."""

    def __init__(self, op: Operator) -> None:
        super().__init__()
        self.op = op

    def __missing__(self, name: str) -> type[Node]:
        op = self.op
        namespace = dict(_BASE, OP=op, joint=op.joint)
        for item, formula in op.formulas.items():
            saved = [each for each in (*op.saved_inputs, *op.saved_results) if each in parameters_of(formula)]
            made = op.large_formulas.get(item)
            large = made or LargeFormula(formula, f"{op.name}_grad_{item}", saved, arrays, op.defaults)
            namespace |= {f"vjp_{item}": formula, f"large_{item}": large}
        return self.setdefault(name, node_source.node_class(op, namespace, name))


class Code:
    """The generated code of one operator besides its functions. Each part is created on first use."""

    def __init__(self, op: Operator) -> None:
        self.op = op
        self.node_classes = NodeClasses(op)
        self.of_patterns: dict[tuple[Any, ...], FunctionType] = {}

    def of_plan(self, plan: Plan) -> Callable[..., Any] | None:
        """Return the straight-line code, which plans of one pattern share, or None if the plan runs step by step."""
        if not has_source(plan):
            return None
        if (known := self.of_patterns.get(pattern(plan))) is None:
            kinds = str(plan).partition("\n")[0].removeprefix(self.op.name)
            made = self._compiled(plan_source(plan), kinds, plan.way in (IN_PLACE, IN_PLACE_VIEW))
            known = self.of_patterns[pattern(plan)] = made[self.op.name]
        code = FunctionType(known.__code__, known.__globals__, self.op.name)
        code.__kwdefaults__ = {"PLAN": plan, "READ": plan.readers}
        return codes.kept(plan, code)

    def knows(self, plan: Plan) -> bool:
        """Return whether the code of a plan has been printed for another plan."""
        return bool(self.of_patterns) and has_source(plan) and pattern(plan) in self.of_patterns

    @computed_once
    def computing(self) -> Callable[..., Any]:
        """The kernel call of the straight-line code as a function of the arrays and values, in the order of the declaration."""
        return self._compiled(computing_source(self.op), "computing")["computing"]

    @computed_once
    def into(self) -> Callable[..., Any]:
        """The straight-line code of calls with `out` for plain tensors. It returns NotImplemented for other calls."""
        return self._compiled(plan_source(planned(self.op, OUT, caller=1 + self.op.caller)), "with out=")[self.op.name]

    @computed_once
    def saving(self) -> Saving:
        """Return the functions that save the values that a node needs."""
        made = self._compiled(saving_source(self.op), "saving", NODE_CLASSES=self.node_classes)
        return Saving(made["started"], made["save_results"], made["saved_values"])

    @computed_once
    def part_node(self) -> Callable[..., Node]:
        """A function that creates the node of a view from arrays, for indexing."""
        return self._compiled(part_source(self.op), "part")["part_node"]

    def _compiled(self, source: str, what: str, in_place: bool = False, **names: Any) -> dict[str, Any]:
        op, name = self.op, f"{self.op.name} {what}".replace(" (", "(")
        namespace = names_of(op) | names
        namespace |= {f"default_{name}": value for name, value in op.defaults.items()}
        namespace["any_size"] = of_any_size(op.kernel.general)
        if op.differentiable:
            namespace["NodeClass"] = op.inplace_node_class if in_place else op.node_class
        SOURCES[name] = source
        return compile_source(source, f"<adjoint {name}>", namespace)
