"""Steps of optimizers in compiled code: one pass over all parameters of a list, their gradients and their state.

The formula of an optimizer is traced with one cell in place of each list of arrays. The traced expression becomes the
body of a loop. Conditions on options are decided, and become conditions under which the same loop is reused. The numbers
of the formula are passed to the loop.

    def update(table, sizes, count, s0, s1, start, stop):
        ...
        for i in vectorized(first, last):
            v0 = C(p0[i])
            v1 = C(p1[i])
            v2 = v1 * s0
            v3 = v0 + v2
            p0[i] = T(v3)
"""

from __future__ import annotations

import itertools
import operator

from ....codegen.expression import *
from ....codegen.llvm import language
from ....codegen.llvm.calls import addresses
from ....codegen.llvm.element_types import TypeVariable
from ....codegen.llvm.kernels import *
from ....codegen.tracing import Symbol, Trace, xp
from ...nn.optimization import Methods, RoundingOnce

Formula = Callable[..., None]


class Decisions(Trace):
    """A trace that decides conditions by the options of an optimizer."""

    def __init__(self, options: Any) -> None:
        super().__init__({})
        self.options = options
        self.conditions: dict[str, Any] = {}

    def decide(self, condition: Node) -> bool:
        """Return the outcome of a condition on options, which is kept."""
        source = scalar_source(condition)
        answer: bool = eval(f"bool({source})", {"o": self.options})
        self.conditions[f"bool({source})"] = answer
        return answer


class Options:
    """The options of a trace. The type of a number is a condition, and so is the value of any other option."""

    def __init__(self, trace: Decisions) -> None:
        self._trace = trace

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._trace.options, name)
        if value is None or isinstance(value, bool):
            self._trace.conditions[f"o.{name}"] = value
            return value
        self._trace.conditions[f"o.{name} is None"] = False
        return Cell(self._trace.graph.node(PARAMETER, (), SCALAR, f"o.{name}"), self._trace)


class Cell(Symbol):
    """One element of each parameter, gradient or state during the update. The node of a cell is its current value."""

    __slots__ = ()
    shape = ()


def _install_operators() -> None:
    for function in (operator.add, operator.sub, operator.mul, operator.truediv):

        def in_place(self: Cell, other: Any, compute: Any = function) -> Cell:
            self.node = compute(self, other).node
            return self

        setattr(Cell, f"__i{function.__name__}__", in_place)


_install_operators()


class CellMethods(Methods):
    """The `Methods` of cells."""

    sqrt, abs, maximum, minimum, sign = map(staticmethod, (xp.sqrt, xp.abs, xp.maximum, xp.minimum, xp.sign))

    @staticmethod
    def clone(cell: Cell) -> Cell:
        """Return a separate cell with the same value."""
        return Cell(cell.node, cell.trace)

    @staticmethod
    def copy_(cell: Cell, other: Cell) -> None:
        """Replace the value with the value of `other`."""
        cell.node = other.node

    @staticmethod
    def new_ones(cell: Cell, shape: Any) -> Cell:
        """Return a cell that holds 1."""
        del shape
        return Cell(xp.ones_like(cell).node, cell.trace)

    @staticmethod
    def masked_fill(cell: Cell, mask: Cell, value: Any) -> Any:
        """Return `value` where `mask` is true."""
        return xp.where(mask, value, cell)


class FusedCellMethods(RoundingOnce, CellMethods):
    """`CellMethods` with the rounding of PyTorch's fused optimizers."""


_TEXTS = {
    "absolute": "fabs({})",
    "where": "{1} if {0} else {2}",
    "as_number": "C(1) if {} else C(0)",
    "square": "{0} * {0}",
}
"""The notation of the language of kernels for operations that have no symbol and a different name there."""


def _lines(cells: Sequence[Cell], before: Sequence[Node]) -> tuple[list[str], list[str]]:
    """Return the lines that compute the cells that have changed, and the sources of the numbers in them."""
    numbers: dict[str, int] = {}
    names: dict[Node, str] = {}
    lines: list[str] = []
    changed = [number for number, cell in enumerate(cells) if number != 1 and cell.node is not before[number]]

    def name(node: Node) -> str:
        if node.operation == CONSTANT:
            return f"C({float(node.value)!r})"
        return f"s{numbers.setdefault(scalar_source(node), len(numbers))}" if node.kind == SCALAR else names[node]

    for node in Expression((*before, *(cells[number].node for number in changed))).nodes():
        if node.kind == SCALAR:
            continue
        operands = list(map(name, node.operands))
        if node.operation == INPUT:
            text = f"C({node.value}[i])"
        elif symbol := OPERATIONS[node.operation].symbol:
            text = f" {symbol} ".join(operands if len(operands) > 1 else ["", *operands])
        else:
            text = _TEXTS.get(node.operation, f"{node.operation}({', '.join(operands)})").format(*operands)
        names[node] = f"v{len(lines)}"
        lines.append(f"{names[node]} = {text}")
    return [*lines, *(f"p{number}[i] = T({name(cells[number].node)})" for number in changed)], list(numbers)


class Loop:
    """The loop of one formula under certain conditions on its options."""

    def __init__(self, formula: Formula, options: Any, count: int, fused: bool) -> None:
        trace = Decisions(options)
        before = [trace.graph.node(INPUT, (), NUMBER, f"p{number}", ELEMENT) for number in range(count)]
        cells = [Cell(node, trace) for node in before]
        formula(FusedCellMethods if fused else CellMethods, Options(trace), *cells)
        lines, numbers = _lines(cells, before)
        self._answers = tuple(trace.conditions.values())
        self._ask = eval(f"lambda o: ({''.join(f'{source}, ' for source in trace.conditions)})")
        self.numbers = eval(f"lambda o: ({''.join(f'{source}, ' for source in numbers)})")
        given = "".join(f"s{index}: C, " for index in range(len(numbers)))
        pointers = [f"p{number} = cast_pointer(table[{number} * count + k], T)" for number in range(count)]
        source = "\n".join([
            f"def update(table: Pointer[Pointer[u8]], bounds: Pointer[i64], count: Int, {given}start: Int, stop: Int):",
            "    for k in range(count):",
            "        first = maximum(start, bounds[k]) - bounds[k]",
            "        last = minimum(stop, bounds[k + 1]) - bounds[k]",
            "        if first < last:",
            *(f"            {line}" for line in pointers),
            "            for i in vectorized(first, last):",
            *(f"                {line}" for line in lines),
            "",
        ])  # fmt: skip
        self.kernel = WrittenLoops("update", source, {**vars(language), "C": TypeVariable("C")}, noalias=False)

    def serves(self, options: Any) -> bool:
        """Return whether the formula performs the same computation under these options."""
        return bool(self._ask(options) == self._answers)


_loops: dict[Any, list[Loop]] = {}


def loop_of(formula: Formula, options: Any, count: int, fused: bool) -> Loop:
    """Return the loop of a formula for `count` lists of arrays under these options, from a cache if possible."""
    known = _loops.setdefault((formula, count, fused), [])
    for loop in known:
        if loop.serves(options):
            return loop
    loop = Loop(formula, options, count, fused)
    known.append(loop)
    return loop


def update(lists: Sequence[list[ndarray]], formula: Formula, options: Any, fused: bool) -> Any:
    """Apply a formula to each of the parameters. Return NotImplemented for arrays that are not row-major, and for scalars."""
    params = lists[0]
    dtype = params[0].dtype
    arrays: list[Any] = list(itertools.chain.from_iterable(lists))
    if not all(isinstance(array, ndarray) and array.flags.c_contiguous for array in arrays):
        return NotImplemented
    loop = loop_of(formula, options, len(lists), fused)
    table = addresses(arrays)
    bounds = numpy.array([0, *itertools.accumulate([param.size for param in params])])
    kernel = loop.kernel.compiled(T=type_of(dtype), C=f64 if dtype.itemsize == 8 else f32)
    row_bytes = dtype.itemsize * (len(lists) + 1)
    numbers = loop.numbers(options)
    launch(kernel, int(bounds[-1]), row_bytes, address(table), address(bounds), len(params), *numbers)
    return True
