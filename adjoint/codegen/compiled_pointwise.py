"""Compile expressions of elements as loops over large arrays.

An expression is compiled for a dtype and a memory layout of its operands when arrays first require it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy import ndarray

from .._runtime.forks import compile_source
from ..kernels.runtime.addresses import overlap
from ..kernels.runtime.costs import CALLS, LARGE, MOVED, PIECEWISE, STEPS
from ..kernels.runtime.floating import FLOAT32
from ..kernels.runtime.lazy_conj import lazy_bits_of, without_lazy_bits
from . import source
from .acceleration import LOOPS, SHAPES
from .compiled_complex import EXACT, PARTS, by_parts
from .elementary import COSTLY_OPERATIONS, FUNCTIONS, PIECEWISE_OPERATIONS
from .expression import BOOL, SCALAR, Expression, Node, Tree, choice_lines, leaves, scalar_source
from .numpy_tiles import result_like, walked
from .plans import Plan, Plans, memory_like
from .schedule import lowered, scalars_of

_ONE_BY_ONE = frozenset(
    "expm1 log1p log10 tan arcsin arccos arctan arctan2 sinh cosh arcsinh arccosh arctanh cbrt".split()
)
"""Functions for which NumPy uses no vector instructions on many kinds of processors."""

Dtype = numpy.dtype[Any]
Out = ndarray | tuple[ndarray, ...] | None

BOOLEAN = numpy.dtype(bool)


def smallest_repeated(tree: Tree) -> int:
    """Return the number of elements above which repeated calls of compiled loops are faster than NumPy."""
    if not PIECEWISE_OPERATIONS.keys().isdisjoint(operations_of(tree)) or is_exact(tree):
        return 0
    return smallest(tree) if _ONE_BY_ONE.isdisjoint(operations_of(tree)) else STEPS


def smallest(tree: Tree) -> int:
    """Return the number of elements above which compiled loops are faster than NumPy and soon repay their compilation."""
    if not PIECEWISE_OPERATIONS.keys().isdisjoint(operations_of(tree)):
        return PIECEWISE
    count = len(operations_of(tree))
    if is_costly(tree):
        return STEPS if count > 2 else MOVED
    return MOVED if count > 4 else LARGE


def is_costly(tree: Tree) -> bool:
    """Return whether NumPy takes a long time for one element. NumPy computes powers fast."""
    return not (COSTLY_OPERATIONS - {"power"}).isdisjoint(operations_of(tree))


def is_exact(tree: Tree) -> bool:
    """Return whether NumPy computes the expression in several calls, all of which give the same bits as compiled loops."""
    return len(operations_of(tree)) > 2 and has_numpy_bits(tree)


def has_numpy_bits(tree: Tree) -> bool:
    """Return whether compiled loops give the same bits as NumPy."""
    names = operations_of(tree)
    return COSTLY_OPERATIONS.isdisjoint(names) and FUNCTIONS.keys().isdisjoint(names)


def operations_of(tree: Tree) -> list[str]:
    """Return the operations of all expressions of a tree."""
    return [node.operation for leaf in leaves(tree) for node in leaf.nodes() if node.operands]


class _Variant:
    """One expression in one dtype, and its compiled forms."""

    def __init__(self, expression: Expression) -> None:
        self.expression = expression
        self.scalars = scalars_of(expression)
        operations = [node.operation for node in expression.nodes() if node.operands and node.kind != SCALAR]
        # In bytes that take as long.
        self.weight = 6 * sum(name in COSTLY_OPERATIONS for name in operations) + len(operations) // 2
        self.truths = [node.kind == BOOL for node in expression.outputs]
        self.functions: dict[Any, Any] = {}
        self.plans: Plans[Plan | None] = Plans()
        """The plans for calls with arrays of certain dtypes, shapes and strides, or None if NumPy computes."""


class CompiledPointwise:
    """The compiled forms of one tree of expressions.

    `inputs` names its arrays in order, and `parameters` names its scalars.

    `of_parts`: whether its inputs and outputs are the parts of complex arrays, such as `self.real`.

    `contiguous`: whether outputs are row-major regardless of the memory order of the operands.
    """

    def __init__(
        self,
        name: str,
        tree: Tree,
        inputs: Sequence[str],
        parameters: Sequence[str],
        contiguous: bool = False,
        of_parts: bool = False,
    ) -> None:
        self.name = name
        self.tree = tree
        self.inputs = list(inputs)
        self.parameters = list(parameters)
        self.contiguous = contiguous
        self.of_parts = of_parts
        self.of_complex = EXACT
        """The functions of complex numbers that the expression may contain."""
        self._at_once, self._spent = smallest(tree), 0
        self._cost = max([PIECEWISE_OPERATIONS.get(name, 1) for name in operations_of(tree)], default=1)
        self._dtypes: dict[str, tuple[Callable[..., Any], list[_Variant]]] = {}
        self._by_parts: dict[tuple[int, ...], CompiledPointwise] = {}
        self._choosers: dict[Any, Callable[..., Any]] = {}
        self.direct: Plans[Plan] = Plans()
        """The plans with one output that the code of `direct_source` looks up by signature."""

    def direct_source(self, signature: str, otherwise: str, namespace: dict[str, Any], into: bool = False) -> str:
        """Return the source of a function that runs a plan with few calls, and returns `otherwise` if there is no plan.

        The objects that the code uses are stored in `namespace`. `into`: whether the last parameter is `out`, to which
        the function writes.
        """
        namespace |= {
            "ndarray": ndarray, "CHOOSERS": self._choosers, "PLANS": self.direct, "LOOPS": LOOPS, "overlap": overlap,
        }  # fmt: skip
        arrays, number, values = self.inputs, "0", ""
        known = [f"type({name}) is ndarray" for name in arrays]
        if into:
            known += [f"({name} is out or not overlap({name}, out))" for name in arrays]
        lines = [f"if LOOPS._enabled and {' and '.join(known)}:"]
        if self.parameters:
            lines += [
                f"    _choose = CHOOSERS.get({arrays[0]}.dtype)",
                f"    _number, _values = _choose and _choose({', '.join(self.parameters)}) or (None, ())",
            ]
            number, values = "_number", ", *_values"
        key = ", ".join(f"{name}.dtype, {name}.shape, {name}.strides" for name in [*arrays, *(["out"] if into else [])])
        given = f"{', '.join(arrays)}{values}"
        lines += [
            f"    _plan = PLANS.get(({number}, {key}))",
            "    if _plan is not None:",
            f"        _result = {f'_plan.into((out,), {given})' if into else f'_plan.run({given})'}",
            "        if _result is not NotImplemented:",
            f"            return {'out' if into else '_result'}",
            f"return {otherwise}",
        ]
        return "\n".join([f"def {self.name}({signature}):", *("    " + line for line in lines), ""])

    def direct_form(self, names: Sequence[str], general: Callable[..., Any], into: bool = False) -> Callable[..., Any]:
        """Return the function of `direct_source` for parameters of these names, which calls `general` without a plan."""
        given = ", ".join(names)
        namespace: dict[str, Any] = {"general": general}
        otherwise = f"general({given}{', out=out' if into else ''})"
        text = self.direct_source(f"{given}, out" if into else given, otherwise, namespace, into)
        return source.compile_source(text, f"large {self.name}", namespace)[self.name]

    def repays(self, size: int) -> bool:
        """Return whether compiled loops should compute `size` elements: few elements only after many calls."""
        if size >= self._at_once or LOOPS.every_size:
            return True
        self._spent += self._cost
        return self._spent > CALLS

    def _of_dtype(self, char: str) -> tuple[Callable[..., Any], list[_Variant]]:
        found = self._dtypes.get(char)
        if found is None:
            variants: list[_Variant] = []
            lines = choice_lines(
                self.tree, lambda each: _variant_lines(each, char, variants), lambda _: ["return None"]
            )
            source = "\n".join([f"def choose({', '.join(self.parameters)}):", *("    " + line for line in lines)])
            choose = compile_source(source, f"<adjoint scalars of {self.name}>", {})["choose"]
            found = self._dtypes[char] = (choose, variants)
        return found

    def _made_of_parts(self, bits: tuple[int, ...]) -> CompiledPointwise:
        """Return the form that computes with the parts of complex arrays, given their lazy `bits`."""
        tree = by_parts(self.tree, dict(zip(self.inputs, bits, strict=True)), self.of_complex)
        made = CompiledPointwise(f"complex_{self.name}", tree, self.inputs, self.parameters, self.contiguous, True)
        if self.of_complex is EXACT and not any(bits):
            made.direct = self.direct
        return made

    def run(
        self, operands: Sequence[ndarray], scalars: Sequence[Any], dtype: Dtype, compute: Dtype, out: Out = None
    ) -> Any:
        """Return the outputs for arrays of `dtype` (in `out` if given), or NotImplemented if NumPy must compute."""
        if compute.kind == "c":
            if any(type(value) is complex for value in scalars):
                return NotImplemented
            bits = tuple(map(lazy_bits_of, operands))
            compiled = self._by_parts.get(bits) or self._by_parts.setdefault(bits, self._made_of_parts(bits))
            plain = list(map(without_lazy_bits, operands))
            return compiled.run(plain, scalars, dtype, plain[0].real.dtype, out)
        choose, variants = self._dtypes.get(compute.char) or self._of_dtype(compute.char)
        chosen = choose(*scalars)
        if chosen is None:
            return NotImplemented
        number, values = chosen
        variant = variants[number]
        if SHAPES.recorder is not None:
            new = self._new_plan(variant, operands, dtype, compute, out)
            return NotImplemented if new is None else SHAPES.recorder.run(new, (*operands, *values), out)
        if len(operands) == 1:
            (only,) = operands
            key: Any = (dtype, only.shape, only.strides)
        else:
            key = (dtype, *[item.shape for item in operands], *[item.strides for item in operands])
        if out is not None:
            outs = out if isinstance(out, tuple) else (out,)
            if any(
                item.dtype != dtype or any(each is not item and overlap(each, item) for each in operands)
                for item in outs
            ):
                return NotImplemented  # NumPy copies memory that would be overwritten before it is read
            key = (*[item.strides for item in outs], key)
        try:
            plan = variant.plans[key]
        except KeyError:
            plan = variant.plans.keep(key, self._new_plan(variant, operands, dtype, compute, out))
            if plan is not None and not isinstance(out, tuple) and (self.parameters or not values):
                self._choosers[dtype] = choose
                arrays = operands if out is None else (*operands, *outs)
                signature = [part for item in arrays for part in (item.dtype, item.shape, item.strides)]
                self.direct.keep((number, *signature), plan)
        if plan is None:
            return NotImplemented
        if out is None:
            return plan.run(*operands, *values)
        return NotImplemented if plan.into(outs, *operands, *values) is NotImplemented else out

    def in_run(self, operands: Sequence[ndarray], scalars: Sequence[Any], out: tuple[ndarray, ...]) -> Any:
        """Return the launch of `run` in a native run for arrays of one dtype, or NotImplemented."""
        dtype = out[0].dtype
        choose, variants = self._of_dtype(dtype.char)
        if (chosen := choose(*scalars)) is None:
            return NotImplemented
        number, values = chosen
        plan = self._new_plan(variants[number], operands, dtype, dtype, out)
        if plan is None or plan.call is None:
            return NotImplemented
        return plan.call.in_run({f"s{k}": value for k, value in enumerate(values)})

    def _new_plan(
        self, variant: _Variant, operands: Sequence[ndarray], dtype: Dtype, compute: Dtype, out: Out
    ) -> Plan | None:
        if compute.kind not in "fiu" or not dtype.isnative:
            return None
        if out is None:
            truths = variant.truths[:: 1 + self.of_parts]
            outs = [result_like(operands, BOOLEAN if truth else dtype, self.contiguous) for truth in truths]
        elif not any(variant.truths):
            outs = list(out) if isinstance(out, tuple) else [out]
        else:  # NumPy writes truth values as numbers
            return None
        results = [memory_like(item) for item in outs]
        size = outs[0].size
        if not size:
            return Plan(results, into=lambda *_: None)
        shape, views = walked(list(operands), outs)
        LOOPS.load("pointwise_loops")
        from .llvm.calls import NativeCall
        from .llvm.pointwise_loops import layout_of
        from .llvm.streaming import is_streamed

        fresh, inputs = out is None, views[: len(operands)]
        streamed = fresh and is_streamed(sum(item.nbytes for item in outs))
        modes, layout = layout_of(shape, inputs, views[len(operands) :], fresh, streamed)
        function = self._function(variant, dtype, compute, modes)
        if function is None:
            return None
        row_bytes = variant.weight + sum(item.itemsize for item in views)
        arrays, scalars = [f"x{k}" for k in range(len(operands))], [f"s{k}" for k in range(len(variant.scalars))]
        character = "d" if compute.kind == "f" else "q"
        call = NativeCall(function, size, row_bytes, layout, arrays, results, scalars, character)
        return call.plan([*arrays, *scalars])

    def _function(self, variant: _Variant, dtype: Dtype, compute: Dtype, modes: tuple[str, ...]) -> Any:
        """Return the compiled loops, or record that they cannot be compiled and return None."""
        from .llvm.host import HOST
        from .llvm.values import CompilationError

        with HOST.lock:
            found = variant.functions.get((dtype, modes))
            if found is None and not LOOPS.has_given_up(self.name):
                try:
                    found = variant.functions[dtype, modes] = self._compile(variant, dtype, compute, modes)
                except CompilationError as error:
                    LOOPS.note(self.name, error)
        return found

    def _compile(self, variant: _Variant, dtype: Dtype, compute: Dtype, modes: tuple[str, ...]) -> Any:
        from .llvm.element_types import type_of
        from .llvm.pointwise_loops import Plan, operand_of, pointwise_kernel

        memory, number = type_of(compute if self.of_parts else dtype), type_of(compute)
        parts = PARTS if self.of_parts else ("",)
        nodes = {node.value: node for node in variant.expression.nodes() if node.operation == "input"}
        inputs = []
        for name, mode in zip(self.inputs, modes, strict=False):
            of = [nodes.get(name + part) or Node("input", (), "number", name + part) for part in parts]
            inputs.append((of, operand_of(of, memory, mode)))
        made = variant.expression.outputs
        outputs = [
            operand_of(made[place * len(parts) : (place + 1) * len(parts)], memory, mode)
            for place, mode in enumerate(modes[len(inputs) :])
        ]
        plan = Plan(variant.expression, number, inputs, outputs, variant.scalars)
        return pointwise_kernel(f"{self.name}_{dtype.name}", plan, str(variant.expression))


def _variant_lines(expression: Expression, char: str, variants: list[_Variant]) -> list[str]:
    """Return Python code that returns the number of a new variant and its scalars, or None if the parameters are invalid."""
    variant = _Variant(lowered(expression, char, decomposed=False))
    variants.append(variant)
    scalars = [scalar_source(node) for node in variant.scalars]
    lines = [f"if {_out_of_range(scalar, char)}:\n    return None" for scalar in scalars] if char != "d" else []
    return [
        *"\n".join(lines).splitlines(),
        f"return {len(variants) - 1}, ({''.join(f'{scalar}, ' for scalar in scalars)})",
    ]


def _out_of_range(scalar: str, char: str) -> str:
    """Return a Python condition that is true for numbers that elements of a dtype cannot represent."""
    if char == "f":
        largest = repr(float(numpy.finfo(char).max))
        return f"{largest} < {scalar} < 1e999 or -1e999 < {scalar} < -{largest}"
    limits = numpy.iinfo(char)
    return f"not {limits.min or -limits.max} <= {scalar} <= {limits.max}"


def computed_in(dtype: Dtype) -> Dtype:
    """Return the dtype in which numbers of `dtype` are computed."""
    return FLOAT32 if dtype.itemsize == 2 and dtype.kind in "fV" else dtype
