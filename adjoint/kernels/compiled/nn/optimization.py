"""Steps of optimizers in compiled code: one pass over all parameters of a list, their gradients and their state.

The formula of an optimizer is called once with cells in place of arrays. The operations of the formula are recorded as
the body of a loop. Its conditions on options become conditions under which the same loop is reused. Its numbers are
passed to the loop.

    def update(table, sizes, count, s0, s1, start, stop):
        ...
        for i in vectorized(first, last):
            v0 = C(p0[i])
            v1 = C(p1[i])
            v2 = v1 * C(s0)
            v3 = v0 + v2
            p0[i] = T(v3)
"""

from __future__ import annotations

import itertools
import operator

from ....codegen.llvm import language
from ....codegen.llvm.calls import addresses
from ....codegen.llvm.element_types import TypeVariable
from ....codegen.llvm.kernels import *
from ...nn.optimization import Methods, RoundingOnce

Formula = Callable[..., None]


class Recorder:
    """Records the operations of a formula as lines of a loop."""

    def __init__(self, options: Any, count: int) -> None:
        self.options = options
        self.conditions: dict[str, Any] = {}
        self.uniforms: dict[str, None] = {}
        self.lines: list[str] = []
        self._fresh = itertools.count()
        self.cells = [Cell(self, self.line(f"C(p{number}[i])")) for number in range(count)]

    def line(self, text: str) -> str:
        """Add a line that computes a value, and return the value's name."""
        name = f"v{next(self._fresh)}"
        self.lines.append(f"{name} = {text}")
        return name

    def number(self, value: Any) -> str:
        """Return a number of the formula in the loop, which is either a parameter or a constant."""
        if isinstance(value, Number):
            index = list(self.uniforms).index(value.source) if value.source in self.uniforms else len(self.uniforms)
            self.uniforms.setdefault(value.source)
            return f"s{index}"
        return f"C({float(value)!r})"

    def operand(self, value: Any) -> str:
        """Return a cell or a number in the loop."""
        return value.text if isinstance(value, Cell) else self.number(value)

    def __getattr__(self, name: str) -> Any:
        """Return an option.

        If it is a number, a condition of the loop is that it is not None. Otherwise its value is a condition.
        """
        value = getattr(self.options, name)
        if value is None or isinstance(value, bool):
            self.conditions[f"o.{name}"] = value
            return value
        self.conditions[f"o.{name} is None"] = False
        return Number(self, value, f"o.{name}")


def _source_of(value: Any) -> str:
    return value.source if isinstance(value, Number) else repr(value)


def _value_of(value: Any) -> Any:
    return value.value if isinstance(value, Number) else value


class Number:
    """A number among the options, or the result of arithmetic on such numbers. A comparison of a number becomes a condition."""

    def __init__(self, recorder: Recorder, value: Any, source: str) -> None:
        self.recorder, self.value, self.source = recorder, value, source

    def __bool__(self) -> bool:
        return self.decide(bool(self.value), f"bool({self.source})")

    def __neg__(self) -> Number:
        return Number(self.recorder, -self.value, f"(-{self.source})")

    def decide(self, answer: bool, source: str) -> bool:
        """Record a condition and return its value."""
        self.recorder.conditions[source] = answer
        return answer


class Cell:
    """One element of each parameter, gradient or state during the update. `text` is the name of its current value."""

    __hash__ = None  # type: ignore[assignment]
    shape = ()

    def __init__(self, recorder: Recorder, text: str) -> None:
        self.recorder, self.text = recorder, text

    def new(self, text: str) -> Cell:
        """Compute a value in a separate line."""
        return Cell(self.recorder, self.recorder.line(text))

    def __neg__(self) -> Cell:
        return self.new(f"-{self.text}")


def _install_operators() -> None:
    symbols = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "pow": "**"}
    comparisons = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
    for name, symbol in {**symbols, **comparisons}.items():
        compute = getattr(operator, name)

        def of_numbers(self: Number, other: Any, compute: Any = compute, symbol: str = symbol) -> Any:
            if isinstance(other, Cell):
                return NotImplemented
            source = f"({self.source} {symbol} {_source_of(other)})"
            value = compute(self.value, _value_of(other))
            return self.decide(value, source) if isinstance(value, bool) else Number(self.recorder, value, source)

        def of_cells(self: Cell, other: Any, symbol: str = symbol) -> Cell:
            return self.new(f"{self.text} {symbol} {self.recorder.operand(other)}")

        setattr(Number, f"__{name}__", of_numbers)
        setattr(Cell, f"__{name}__", of_cells)
        if name in symbols:

            def number_last(self: Number, other: Any, compute: Any = compute, symbol: str = symbol) -> Number:
                source = f"({_source_of(other)} {symbol} {self.source})"
                return Number(self.recorder, compute(other, self.value), source)

            def in_place(self: Cell, other: Any, symbol: str = symbol) -> Cell:
                self.text = of_cells(self, other, symbol).text
                return self

            def cell_last(self: Cell, other: Any, symbol: str = symbol) -> Cell:
                return self.new(f"{self.recorder.operand(other)} {symbol} {self.text}")

            setattr(Number, f"__r{name}__", number_last)
            setattr(Cell, f"__r{name}__", cell_last)
            setattr(Cell, f"__i{name}__", in_place)


_install_operators()


class CellMethods(Methods):
    """The `Methods` of cells."""

    @staticmethod
    def sqrt(cell: Cell) -> Cell:
        """Return the square root."""
        return cell.new(f"sqrt({cell.text})")

    @staticmethod
    def abs(cell: Cell) -> Cell:
        """Return the magnitude."""
        return cell.new(f"fabs({cell.text})")

    @staticmethod
    def maximum(cell: Cell, other: Any) -> Cell:
        """Return the larger number, or NaN if one is NaN."""
        return cell.new(f"maximum({cell.text}, {cell.recorder.operand(other)})")

    @staticmethod
    def minimum(cell: Cell, other: Any) -> Cell:
        """Return the smaller number, or NaN if one is NaN."""
        return cell.new(f"minimum({cell.text}, {cell.recorder.operand(other)})")

    @staticmethod
    def sign(cell: Cell) -> Cell:
        """Return -1, 0 or 1; the result is 0 for NaN."""
        return cell.new(f"(C(1) if {cell.text} > 0 else C(0)) - (C(1) if {cell.text} < 0 else C(0))")

    @staticmethod
    def clone(cell: Cell) -> Cell:
        """Return a separate cell with the same value."""
        return Cell(cell.recorder, cell.text)

    @staticmethod
    def copy_(cell: Cell, other: Cell) -> None:
        """Replace the value with the value of `other`."""
        cell.text = other.text

    @staticmethod
    def new_ones(cell: Cell, shape: Any) -> Cell:
        """Return a cell that holds 1."""
        del shape
        return Cell(cell.recorder, "C(1)")

    @staticmethod
    def masked_fill(cell: Cell, mask: Cell, value: Any) -> Cell:
        """Return `value` where `mask` is true."""
        return cell.new(f"{cell.recorder.operand(value)} if {mask.text} else {cell.text}")


class FusedCellMethods(RoundingOnce, CellMethods):
    """`CellMethods` with the rounding of PyTorch's fused optimizers."""


class Loop:
    """The loop of one formula under certain conditions on its options."""

    def __init__(self, formula: Formula, options: Any, count: int, fused: bool) -> None:
        recorder = Recorder(options, count)
        before = [cell.text for cell in recorder.cells]
        formula(FusedCellMethods if fused else CellMethods, recorder, *recorder.cells)
        for number, (cell, was) in enumerate(zip(recorder.cells, before, strict=True)):
            if number != 1 and cell.text != was:
                recorder.lines.append(f"p{number}[i] = T({cell.text})")
        conditions, uniforms = recorder.conditions, recorder.uniforms
        self._answers = tuple(conditions.values())
        self._ask = eval(f"lambda o: ({''.join(f'{source}, ' for source in conditions)})")
        self.numbers = eval(f"lambda o: ({''.join(f'{source}, ' for source in uniforms)})")
        given = "".join(f"s{index}: C, " for index in range(len(uniforms)))
        pointers = [f"p{number} = cast_pointer(table[{number} * count + k], T)" for number in range(count)]
        source = "\n".join(
            [
                f"def update(table: Pointer[Pointer[u8]], bounds: Pointer[i64], count: Int, {given}start: Int, stop: Int):",
                "    for k in range(count):",
                "        first = maximum(start, bounds[k]) - bounds[k]",
                "        last = minimum(stop, bounds[k + 1]) - bounds[k]",
                "        if first < last:",
                *(f"            {line}" for line in pointers),
                "            for i in vectorized(first, last):",
                *(f"                {line}" for line in recorder.lines),
                "",
            ]
        )
        self.kernel = WrittenLoops("update", source, {**vars(language), "C": TypeVariable("C")}, noalias=False)

    def serves(self, options: Any) -> bool:
        """Return whether the formula performs the same computation under these options."""
        answers: bool = self._ask(options) == self._answers
        return answers


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
    """Apply a formula to each of the parameters. Return NotImplemented for arrays that are not row-major."""
    params = lists[0]
    dtype = params[0].dtype
    arrays = list(itertools.chain.from_iterable(lists))
    if not all(array.flags.c_contiguous for array in arrays):
        return NotImplemented
    loop = loop_of(formula, options, len(lists), fused)
    table = addresses(arrays)
    bounds = numpy.array([0, *itertools.accumulate([param.size for param in params])])
    kernel = loop.kernel.compiled(T=type_of(dtype), C=f64 if dtype.itemsize == 8 else f32)
    row_bytes = dtype.itemsize * (len(lists) + 1)
    numbers = loop.numbers(options)
    launch(kernel, int(bounds[-1]), row_bytes, address(table), address(bounds), len(params), *numbers)
    return True
