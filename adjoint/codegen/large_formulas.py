"""Compile gradient formulas that consist of elementwise arithmetic as loops over large arrays.

When a gradient is large enough for the first time, a formula such as `grad * other.conj()` is traced like a pointwise
kernel and becomes one loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from opcode import opmap
from types import FunctionType, MappingProxyType
from typing import Any

import numpy
from numpy import ndarray

from ..kernels.runtime.costs import LARGE
from ..kernels.runtime.lazy_conj import CONJ, lazy_bits_of, with_lazy_bits
from .acceleration import LOOPS
from .compiled_complex import EXACT
from .compiled_pointwise import CompiledPointwise, computed_in
from .compiled_ufuncs import large
from .expression import INPUT, ROW_OPERATIONS, Expression, Node, Tree, leaves
from .schedule import lowered
from .tracing import ARRAY, Parameters, TracingError, trace, xp

_ARITHMETIC = bytes(
    [code for name, code in opmap.items() if name in ("BINARY_OP", "UNARY_NEGATIVE") or name.startswith("BINARY_MUL")]
)


def large_from() -> int:
    """Return the number of elements above which gradients count as large."""
    return 0 if LOOPS.every_size else LARGE


def is_arithmetic(formula: Callable[..., Any]) -> bool:
    """Return whether a formula may be elementwise arithmetic: it has operators, and expressions support its names."""
    code = formula.__code__
    if not LOOPS.installed or code.co_freevars or set(code.co_code[::2]).isdisjoint(_ARITHMETIC):
        return False
    return all(name == "xp" or hasattr(xp, name) for name in code.co_names)


def _computes(expression: Expression) -> bool:
    """Return whether an expression is elementwise and computes more than a copy."""
    nodes = expression.nodes()
    copies = any(node.operation == INPUT for node in expression.outputs)
    return not copies and not any(node.operation in ROW_OPERATIONS for node in nodes)


def _read(node: Node) -> tuple[str, int] | None:
    """Return the name of an input and whether it is conjugated."""
    inner = node.operands[0] if node.operation == "conjugate" else node
    return (inner.value, CONJ if inner is not node else 0) if inner.operation == INPUT else None


class LargeFormula:
    """A formula for large gradients. `name`: the name of its loops.

    `arrays` are the array parameters other than `grad`. A parameter whose value in `defaults` is None may be None.
    """

    def __init__(
        self,
        formula: Callable[..., Any],
        name: str,
        arrays: list[str],
        namespace: Any,
        defaults: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.formula = formula
        self.name = name
        optional = [each for each, value in defaults.items() if value is None]
        self.annotations = {**dict.fromkeys(optional, "float | None"), **dict.fromkeys(["grad", *arrays], ARRAY)}
        self.namespace = namespace
        self.direct: Callable[..., Any] = self._begin
        self.of_complex: tuple[CompiledPointwise, list[Any]] | None = None
        """If the formula is only a complex function: the function, the names of its operands, and whether they are conjugated."""

    def __call__(self, *values: Any) -> Any:
        """Return the value of the formula. `values` are its arguments other than `xp`."""
        return self.direct(*values)

    def _begin(self, *values: Any) -> Any:
        """Trace the formula. A formula that is not an elementwise expression is computed directly."""
        formula = self.formula
        traced = FunctionType(formula.__code__, formula.__globals__, self.name, formula.__defaults__)
        traced.__annotations__ = self.annotations
        self.parameters = Parameters(traced)
        try:
            tree = trace(traced, self.parameters)
            self.elements = all(map(_computes, leaves(tree)))
        except TracingError:
            self.elements = False
        if self.elements:
            self.compiled = CompiledPointwise(self.name, tree, self.parameters.arrays, self.parameters.scalars)
        only = self._operation(tree) if self.elements else None
        if only is not None:
            self.direct = only
        elif self.elements:
            self.direct = self.compiled.direct_form(self.parameters.names, self._general)
        else:
            self.direct = self._written
        return self.direct(*values)

    def _operation(self, tree: Tree) -> Any:
        """Return the loops of a ufunc if the formula is only this ufunc applied to real numbers."""
        if not isinstance(tree, Expression):
            return None
        (node, *more) = lowered(tree, "f", decomposed=False).outputs
        ufunc = large(getattr(numpy, node.operation, None))
        if more or ufunc is None or not node.operands or any(item.operation != INPUT for item in node.operands):
            return None
        (written,) = tree.outputs
        if written.operation == node.operation and node.operation in EXACT and all(map(_read, written.operands)):
            self.of_complex = ufunc.compiled, [_read(item) for item in written.operands]
        given = ", ".join(self.parameters.names)
        operands = ", ".join([item.value for item in node.operands])
        text = f"lambda {given}: ufunc({operands}) if grad.dtype.kind in 'fV' else general({given})"
        return eval(text, {"ufunc": ufunc.direct, "general": self._general})

    def _general(self, *values: Any) -> Any:
        given = dict(zip(self.parameters.names, values, strict=True))
        operands = [given[name] for name in self.parameters.arrays]
        dtype = given["grad"].dtype
        compute = computed_in(dtype)
        lazy = compute.kind == "c"
        alike = all(
            (type(item) is ndarray or (lazy and lazy_bits_of(item))) and item.dtype is dtype for item in operands
        )
        if alike and compute.kind in "fc" and LOOPS.enabled:
            if lazy and self.of_complex is not None:
                compiled, named = self.of_complex
                read = [with_lazy_bits(given[name], bits) for name, bits in named]
                result = compiled.run(read, (), dtype, compute)
            else:
                scalars = [given[name] for name in self.parameters.scalars]
                result = self.compiled.run(operands, scalars, dtype, compute)
            if result is not NotImplemented:
                return result
        return self._written(*values)

    def _written(self, *values: Any) -> Any:
        given = dict(zip(self.parameters.names, values, strict=True))
        return self.formula(**given, **({"xp": self.namespace} if self.parameters.takes_xp else {}))
