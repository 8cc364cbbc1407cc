"""Write expressions as Python source, which calls NumPy functions in straight-line code.

Each step creates a new array or overwrites an array that is no longer needed. The code serves small arrays and tiles of
large arrays. The source is registered with `linecache`, so that tracebacks and debuggers show it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy

from .._runtime import forks
from .elementary import FUNCTIONS
from .expression import *
from .schedule import computed, depends_on, last_uses, lowered

SOURCES: dict[str, str] = {}
"""The source of each generated kernel, by name."""

_REAL_PART = {"F": "f", "D": "d", "G": "g"}
_BOUNDS = {"maximum": "{}, inf", "minimum": "-inf, {}"}
"""The arguments of `clip`, which takes a quarter of the time of NumPy's maximum with a number."""

_COMMUTATIVE = ("add", "multiply", "logical_and", "logical_or", "logical_xor")


def compile_source(source: str, name: str, namespace: dict[str, Any]) -> Any:
    """Execute the source of a kernel, and return the namespace."""
    SOURCES[name] = source
    return forks.compile_source(source, f"<adjoint kernel {name}>", namespace)


def identifier(char: str) -> str:
    """Return the character of a dtype in a form that can be part of names."""
    return char if char.isalpha() else "bool"


class Writer:
    """A writer of the code of one tree for one dtype. Its constants are stored in the namespace of the code."""

    def __init__(
        self,
        char: str,
        first: str,
        namespace: dict[str, Any],
        *,
        alike: bool = False,
        masking: bool = True,
        contiguous: bool = False,
    ) -> None:
        self.char = char
        self.alike = alike
        self.masking = masking
        self.contiguous = contiguous
        self.first = first  # the name of the first array, which gives the shape of a result that depends on no array
        self.namespace = namespace
        self.constants: dict[tuple[str, str], str] = {}

    def dtype_name(self, kind: str) -> str:
        """Return the name, in the code, of the dtype of numbers of this kind."""
        char = _REAL_PART.get(self.char, self.char) if kind == REAL else self.char
        name = f"DTYPE_{identifier(char)}"
        self.namespace[name] = numpy.dtype(char)
        return name

    def scalar(self, node: Node, kind: str, lines: list[str], known: dict[Any, str]) -> str:
        """Return the name of a scalar as a zero-dimensional array in the dtype that matches operands of `kind`."""
        if kind == BOOL:
            return scalar_source(node)
        dtype = self.dtype_name(kind)
        if node.operation == CONSTANT:
            key = (repr(node.value), dtype)
            name = self.constants.get(key)
            if name is None:
                name = self.constants[key] = f"c{len(self.constants)}_{identifier(self.char)}"
                array = numpy.asarray(node.value).astype(self.namespace[dtype])
                array.flags.writeable = False
                self.namespace[name] = array
            return name
        if (node, dtype) not in known:
            name = known[node, dtype] = f"s{len(known)}"
            lines.append(f"{name} = typed({scalar_source(node)}, {dtype})")
        return known[node, dtype]

    def tree(self, tree: Tree) -> list[str]:
        """Return the code of a whole tree."""
        return choice_lines(
            tree, lambda expression: self.straight(lowered(expression, self.char)), partial(_raising, self.namespace)
        )

    def operand_names(self, node: Node, places: dict[Node, str], lines: list[str], known: dict[Any, str]) -> list[str]:
        """Return the names of the operands of a step in the code."""
        values = node.operands[1:] if node.operation == "where" else node.operands
        kinds = {item.kind for item in values if item.kind != SCALAR} or {node.kind}
        kind = kinds.pop() if len(kinds) == 1 else "number"
        return [
            self.scalar(item, kind, lines, known) if item.kind == SCALAR else places.get(item, item.value)
            for item in node.operands
        ]

    def straight(self, expression: Expression) -> list[str]:
        """Return the code of an expression, which ends with `return`.

        A step overwrites an operand only if the operand has the shape of the result. If the arrays are not `alike`, the
        operand must also depend on all inputs of the result, because inputs may be broadcast. (If arrays that should be
        alike are not, NumPy raises ValueError.)
        """
        lines: list[str] = []
        known: dict[Any, str] = {}
        steps = computed(expression)
        last, sources = last_uses(expression, steps), depends_on(expression.nodes())
        places: dict[Node, str] = {}
        free: list[str] = []
        for number, node in enumerate(steps):
            names = self.operand_names(node, places, lines, known)
            dying = [item for item in node.operands if last.get(item) == number and item in places]
            symbol = OPERATIONS[node.operation].symbol
            over = None
            if symbol is not None and len(names) == 2:
                for position in (0, 1) if node.operation in _COMMUTATIVE else (0,):
                    item = node.operands[position]
                    if item not in dying or (item.kind, item.extent) != (node.kind, node.extent):
                        continue
                    if self.alike or sources[item] == sources[node]:
                        over = position
                        break
            if over is not None:
                places[node] = places[node.operands[over]]
                lines.append(f"{places[node]} {symbol}= {names[1 - over]}")
                free += [places[item] for item in set(dying) - {node.operands[over]}]
                continue
            free += sorted({places[item] for item in dying}, reverse=True)
            places[node] = free.pop() if free else f"t{len(set(places.values()))}"
            lines.append(f"{places[node]} = {self.call(node, names)}")
        results = [self.result(output, places, lines, known) for output in expression.outputs]
        if self.contiguous:
            return [*lines, f"return {', '.join(f'row_major({result})' for result in results)}"]
        if len(results) == 1 and lines and lines[-1].startswith(f"{results[0]} = "):
            return [*lines[:-1], f"return {lines[-1].removeprefix(f'{results[0]} = ')}"]
        return [*lines, f"return {', '.join(results)}"]

    def result(self, output: Node, places: dict[Node, str], lines: list[str], known: dict[Any, str]) -> str:
        """Return the expression for an output. Its value is a new array, even if the output is an input or a number."""
        if output in places:
            return places[output]
        if is_absent(output):
            return "None"
        if output.operation == INPUT:
            return f"positive({output.value})"
        return f"full_like({self.first}, {self.scalar(output, 'number', lines, known)})"

    def call(self, node: Node, names: list[str]) -> str:
        """Return one step as an expression that creates a new array."""
        symbol = OPERATIONS[node.operation].symbol
        if symbol is not None:
            return f"{names[0]} {symbol} {names[1]}" if len(names) == 2 else f"{symbol}{names[0]}"
        if node.operation == "as_number":
            return f"{names[0]}.astype({self.dtype_name('number')})"
        if node.operation == "element":
            return f"positive({names[0]})"
        if node.operation in ("real", "imag"):
            return f"positive({names[0]}.{node.operation})"
        if node.operation.startswith(("row_", "column_")):  # of `row_tiles`
            return f"{node.operation}({', '.join(names)})"
        if node.operation == "where" and self.masking:
            is_zero = node.operands[1].operation == CONSTANT and node.operands[1].value == 0
            return f"zero_where({names[2]}, {names[0]})" if is_zero else f"choose({', '.join(names)})"
        if self.masking and self.char in "fd" and node.operation in _BOUNDS and node.operands[1].kind == SCALAR:
            return f"{names[0]}.clip({_BOUNDS[node.operation].format(names[1])})"
        return f"{self.function(node.operation)}({', '.join(names)})"

    def function(self, operation: str) -> str:
        """Return the name of the function for an operation, and add the function to the namespace."""
        if operation in FUNCTIONS:
            name = f"numpy_{operation}"  # the kernel may have the name of the operation
            self.namespace[name] = FUNCTIONS[operation]
            return name
        self.namespace[operation] = getattr(numpy, operation)
        return operation


def straight_source(
    name: str, tree: Tree, signature: str, first: str, namespace: dict[str, Any], contiguous: bool
) -> str:
    """Return the function for small arrays of float32 or float64."""
    single = Writer("f", first, namespace, masking=False, contiguous=contiguous).tree(tree)
    double = Writer("d", first, namespace, masking=False, contiguous=contiguous).tree(tree)
    lines = double
    if single != double:
        namespace["FLOAT32"] = numpy.dtype(numpy.float32)
        lines = [f"if {first}.dtype is FLOAT32:", *("    " + line for line in single), *double]
    return "\n".join([f"def {name}({signature}):", *("    " + line for line in lines)]) + "\n"


def one_dtype_source(
    name: str, tree: Tree, names: list[str], char: str, namespace: dict[str, Any], contiguous: bool
) -> str:
    """Return the function for arrays of one dtype."""
    lines = Writer(char, names[0], namespace, contiguous=contiguous).tree(tree)
    return "\n".join([f"def {name}({', '.join(names)}):", *("    " + line for line in lines)]) + "\n"


def choice_source(name: str, tree: Tree, parameters: list[str], arrays: list[str], namespace: dict[str, Any]) -> str:
    """Return the function that computes the number of the selected variant and the signatures of the arrays."""
    numbers = iter(range(len(list(leaves(tree)))))

    signature = "{0}.dtype, {0}.shape, {0}.strides"
    optional = f"None if {{0}} is None else ({signature})"
    signatures = [(optional if place else signature).format(array) for place, array in enumerate(arrays)]
    lines = choice_lines(
        tree, lambda _: [f"return {', '.join([str(next(numbers)), *signatures])}"], partial(_raising, namespace)
    )
    return "\n".join([f"def {name}({', '.join(parameters)}):", *("    " + line for line in lines)]) + "\n"


def _raising(namespace: dict[str, Any], refusal: Refusal) -> list[str]:
    """Return the code that raises the error of a refusal."""
    name = f"error{len(namespace)}"
    namespace[name] = refusal.error
    return [f"raise type({name})(*{name}.args)"]


def row_source(
    name: str, expression: Expression, parameters: str, first: str, char: str, namespace: dict[str, Any]
) -> str:
    """Return the function for one variant of a row program. The function returns a tuple."""
    lines = Writer(char, first, namespace, alike=True).straight(lowered(expression, char))
    if len(expression.outputs) == 1:
        lines[-1] = f"{lines[-1]},"
    return "\n".join([f"def {name}({parameters}):", *("    " + line for line in lines)]) + "\n"
