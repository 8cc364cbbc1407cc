"""Expressions of elements as compiled loops over large arrays.

An expression is compiled for a dtype, and for how its operands lie in memory, when arrays first need it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from struct import pack, unpack
from typing import Any

import numpy
from numpy import ndarray

from ..kernels.runtime.floating import FLOAT32
from .acceleration import LOOPS
from .elementary import FUNCTIONS
from .expression import BOOL, CONSTANT, SCALAR, Choice, Expression, Node, Refusal, Tree, leaves, scalar_source
from .llvm.launch import launch
from .numpy_tiles import result_like, walked
from .schedule import lowered

SHORTEST_ROW = 16
"""Rows of fewer elements, where dimensions cannot be joined, are left to NumPy: each row has a cost of its own."""

COSTLY_ELEMENTS, ELEMENTS = 1 << 12, 1 << 15
"""From how many elements on compiled loops are faster than NumPy: for expressions with elementary functions, and for others."""

_COSTLY = frozenset(
    "exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh cbrt "
    "erf erfc normal_cdf power hypot logaddexp".split()
)
_WEIGHT = 6
"""How many bytes are moved in the time that one costly operation takes for one element."""

BOOLEAN = numpy.dtype(bool)
_UNUSED = (0,) * 8


def smallest(tree: Tree) -> int:
    """From how many elements on compiled loops repay their call."""
    operations = [node.operation for leaf in leaves(tree) for node in leaf.nodes() if node.operands]
    if not _COSTLY.isdisjoint(operations):
        return COSTLY_ELEMENTS
    return ELEMENTS if len(operations) <= 2 else ELEMENTS // 2


class _Variant:
    """One expression in one dtype, and what has been compiled of it."""

    address: Callable[[ndarray], int]
    """Where the elements of an array begin; there once something has been compiled."""

    def __init__(self, expression: Expression) -> None:
        self.expression = expression
        self.scalars = _scalars(expression)
        operations = [node.operation for node in expression.nodes() if node.operands and node.kind != SCALAR]
        self.weight = _WEIGHT * sum(name in _COSTLY for name in operations) + len(operations) // 2
        self.truths = [node.kind == BOOL for node in expression.outputs]
        self.functions: dict[Any, Callable[..., Any]] = {}
        self.dense: dict[Any, Callable[..., Any]] = {}


class CompiledPointwise:
    """The compiled forms of one tree of expressions. `inputs` names its arrays in order, `parameters` its scalars."""

    def __init__(self, name: str, tree: Tree, inputs: Sequence[str], parameters: Sequence[str]) -> None:
        self.name = name
        self.tree = tree
        self.inputs = list(inputs)
        self.parameters = list(parameters)
        operations = {node.operation for leaf in leaves(tree) for node in leaf.nodes()}
        self.of_arrays = not operations.isdisjoint(FUNCTIONS.keys() - _COSTLY)
        """Whether it has a function that is written for NumPy's arrays alone, such as `digamma`."""
        self._dtypes: dict[str, tuple[Callable[..., Any], list[_Variant]]] = {}

    def _of_dtype(self, char: str) -> tuple[Callable[..., Any], list[_Variant]]:
        found = self._dtypes.get(char)
        if found is None:
            variants: list[_Variant] = []
            lines = _choice(self.tree, char, variants)
            source = "\n".join([f"def choose({', '.join(self.parameters)}):", *("    " + line for line in lines)])
            namespace: dict[str, Any] = {}
            exec(compile(source, f"<adjoint scalars of {self.name}>", "exec"), namespace)
            found = self._dtypes[char] = (namespace["choose"], variants)
        return found

    def run(
        self,
        operands: Sequence[ndarray],
        scalars: Sequence[Any],
        dtype: numpy.dtype[Any],
        compute: numpy.dtype[Any],
        out: ndarray | None = None,
        contiguous: bool = False,
    ) -> Any:
        """The outputs for arrays of `dtype`; NotImplemented if NumPy is to compute."""
        if self.name in LOOPS.failures:
            return NotImplemented
        if compute.kind not in "fiu" or self.of_arrays:
            return NotImplemented
        choose, variants = self._dtypes.get(compute.char) or self._of_dtype(compute.char)
        chosen = choose(*scalars)
        if chosen is None:
            return NotImplemented
        number, values = chosen
        for value in values:
            if not isinstance(value, int | float if compute.kind == "f" else int):
                return NotImplemented
        variant = variants[number]
        if out is not None:
            return self._walk(variant, operands, values, dtype, compute, out, contiguous)
        shape = operands[0].shape or operands[-1].shape
        strides = []
        for item in operands:
            flags = item.flags
            if not (flags.c_contiguous and flags.aligned and item.dtype.isnative and item.shape in (shape, ())):
                return self._walk(variant, operands, values, dtype, compute, out, contiguous)
            strides.append(item.itemsize if item.ndim else 0)
        outs = [numpy.empty(shape, BOOLEAN if truth else dtype) for truth in variant.truths]
        size = outs[0].size
        if size:
            if not shape:
                strides = [item.itemsize for item in operands]
            key = dtype if all(strides) else (dtype, *map(bool, strides))
            function = variant.dense.get(key)
            if function is None:
                modes = [*("dense" if stride else "repeated" for stride in strides), *("dense" for _ in outs)]
                function = self._function(variant, dtype, compute, tuple(modes))
                if function is None:
                    return NotImplemented
                variant.dense[key] = function
            numbers = [size, 0, *_UNUSED]
            for item, stride in zip(operands, strides, strict=True):
                numbers += (variant.address(item), stride, *_UNUSED)
            for item in outs:
                numbers += (variant.address(item), item.itemsize, *_UNUSED)
            self._launch(function, variant, size, [*operands, *outs], numbers, values, compute)
        return outs[0] if len(outs) == 1 else tuple(outs)

    def _launch(
        self,
        function: Callable[..., Any],
        variant: _Variant,
        size: int,
        arrays: Sequence[ndarray],
        numbers: list[int],
        scalars: Sequence[Any],
        compute: numpy.dtype[Any],
    ) -> None:
        if scalars:
            numbers += unpack(
                f"{len(scalars)}q", pack(f"{len(scalars)}{'d' if compute.kind == 'f' else 'q'}", *scalars)
            )
        table = array("q", numbers)
        row_bytes = variant.weight
        for item in arrays:
            row_bytes += item.itemsize
        launch(function, size, row_bytes, table.buffer_info()[0])

    def _walk(
        self,
        variant: _Variant,
        operands: Sequence[ndarray],
        scalars: Sequence[Any],
        dtype: numpy.dtype[Any],
        compute: numpy.dtype[Any],
        out: ndarray | None,
        contiguous: bool,
    ) -> Any:
        """The outputs for arrays that are broadcast, or lie in memory in any way."""
        if not all(item.dtype.isnative and item.flags.aligned for item in operands):
            return NotImplemented
        if out is None:
            outs = [result_like(operands, BOOLEAN if truth else dtype, contiguous) for truth in variant.truths]
        elif (
            variant.truths != [False]
            or out.dtype != dtype
            or any(numpy.may_share_memory(out, item) and not _same_place(out, item) for item in operands)
        ):  # NumPy writes truth values as numbers, and copies what it is going to write over
            return NotImplemented
        else:
            outs = [out]
        size = outs[0].size
        if size:
            shape, views = walked(list(operands), outs)
            if len(shape) > 9 or (shape[-1] < SHORTEST_ROW and len(shape) > 1 and not LOOPS.every_size):
                return NotImplemented
            function = self._function(variant, dtype, compute, tuple([_mode(view) for view in views]))
            if function is None:
                return NotImplemented
            self._launch(function, variant, size, views, _table(shape, views, variant.address), scalars, compute)
        return outs[0] if len(outs) == 1 else tuple(outs)

    def _function(
        self, variant: _Variant, dtype: numpy.dtype[Any], compute: numpy.dtype[Any], modes: tuple[str, ...]
    ) -> Callable[..., Any] | None:
        """The compiled loops; None if they cannot be compiled, which is noted."""
        found = variant.functions.get((dtype, modes))
        if found is None and self.name not in LOOPS.failures:
            from .llvm.host import HOST
            from .llvm.values import CompilationError

            with HOST.lock:
                found = variant.functions.get((dtype, modes))
                if found is None:
                    try:
                        found = variant.functions[dtype, modes] = self._compile(variant, dtype, compute, modes)
                    except CompilationError as error:
                        LOOPS.failures[self.name] = str(error)
        return found

    def _compile(
        self, variant: _Variant, dtype: numpy.dtype[Any], compute: numpy.dtype[Any], modes: tuple[str, ...]
    ) -> Callable[..., Any]:
        from .llvm.element_types import type_of
        from .llvm.language import address
        from .llvm.pointwise_loops import Plan, operand_of, pointwise_kernel

        variant.address = address
        memory, number = type_of(dtype), type_of(compute)
        nodes = {node.value: node for node in variant.expression.nodes() if node.operation == "input"}
        inputs = []
        for name, mode in zip(self.inputs, modes, strict=False):
            node = nodes.get(name) or Node("input", (), "number", name)
            inputs.append((node, operand_of(node, memory, mode)))
        outputs = [
            operand_of(node, memory, mode)
            for node, mode in zip(variant.expression.outputs, modes[len(inputs) :], strict=True)
        ]
        plan = Plan(variant.expression, number, inputs, outputs, variant.scalars)
        return pointwise_kernel(f"{self.name}_{dtype.name}", plan, str(variant.expression))


def _same_place(first: ndarray, second: ndarray) -> bool:
    """Whether two arrays have each element at one address: then it is read before it is written."""
    return (
        first.__array_interface__["data"] == second.__array_interface__["data"]
        and first.shape == second.shape
        and first.strides == second.strides
    )


def _mode(view: ndarray) -> str:
    stride = view.strides[-1]
    if stride == view.itemsize or view.shape[-1] == 1:
        return "dense"
    return "repeated" if stride == 0 else "spaced"


def _table(shape: tuple[int, ...], views: Sequence[ndarray], address: Callable[[ndarray], int]) -> list[int]:
    """What `llvm.pointwise_loops` reads before the scalars."""
    outer = len(shape) - 1
    padding = [0] * (8 - outer)
    numbers = [shape[-1], outer, *shape[-2::-1], *padding]
    for view in views:
        strides = view.strides
        numbers += [address(view), strides[-1], *strides[-2::-1], *padding]
    return numbers


def _scalars(expression: Expression) -> list[Node]:
    """The scalars that operations on elements need, but for constants."""
    found: dict[Node, None] = {}
    for node in expression.nodes():
        if node.kind != SCALAR:
            found.update((item, None) for item in node.operands if item.kind == SCALAR and item.operation != CONSTANT)
    found.update((node, None) for node in expression.outputs if node.kind == SCALAR and node.operation != CONSTANT)
    return list(found)


def _choice(tree: Tree, char: str, variants: list[_Variant]) -> list[str]:
    """Python's code that returns the number of a variant and its scalars; None where the function refuses its parameters."""
    if isinstance(tree, Choice):
        return [
            f"if {scalar_source(tree.condition)}:",
            *("    " + line for line in _choice(tree.if_true, char, variants)),
            "else:",
            *("    " + line for line in _choice(tree.if_false, char, variants)),
        ]
    if isinstance(tree, Refusal):
        return ["return None"]
    variant = _Variant(lowered(tree, char, decomposed=False))
    variants.append(variant)
    scalars = "".join(f"{scalar_source(node)}, " for node in variant.scalars)
    return [f"return {len(variants) - 1}, ({scalars})"]


def computed_in(dtype: numpy.dtype[Any]) -> numpy.dtype[Any]:
    """The dtype that numbers of `dtype` are computed in."""
    return FLOAT32 if dtype.itemsize == 2 and dtype.kind in "fV" else dtype
