"""Lower the Python source of a kernel to LLVM code.

A kernel is a Python function in a small typed subset of the language. Expressions that are known at compile time are
evaluated then, with Python objects: numbers, types, names in CAPITALS, parameters annotated `Static`, and indices of
`unrolled` loops. All other code becomes instructions. Calls of other kernels are inlined. Recursion is not possible.

    assignment      `x = T(0)`, `x += y`, `p[i] = x`, `a, b = f(x)`; a variable keeps its first type
    loops           `for i in range(n)`, `for i in vectorized(n)`, `for I in unrolled(4)`, `while`, `break`, `continue`
    conditions      `if` with a condition known at compile time compiles one branch; `a if c else b` evaluates both and selects;
                    `and`, `or` evaluate their second operand if needed, `&` and `|` always
    arithmetic      of two equal types; a number adapts to the other operand; `f64(x)` converts
    memory          `p[i]`, `p + i` on pointers; `local(T, 16)` on the stack, in registers if all indices are known

Loops over vectors either use `vector(T, 16)`, `load`, `store` and the other built-in functions, or are vectorized by
LLVM. The iterations of a loop over `vectorized(n)` must not depend on one another.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .element_types import NumberType, Pointer, PointerType, Static, TypeVariable, VectorType, boolean, f32, f64, i64
from .functions import Builtin, Frame, LoopKernel, LoopRange, Variable
from .half_types import convert_half
from .values import CompilationError, Value, alignment, constant, is_number, weak_type

STATIC_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
    ast.USub: operator.neg, ast.Not: operator.not_, ast.Invert: operator.invert, ast.UAdd: operator.pos,
}  # fmt: skip

_FLOAT_INSTRUCTIONS = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv", ast.Mod: "frem"}
_INTEGER_INSTRUCTIONS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl",
}  # fmt: skip
_COMPARISONS = {
    ast.Lt: ("olt", "slt", "ult"), ast.LtE: ("ole", "sle", "ule"), ast.Gt: ("ogt", "sgt", "ugt"),
    ast.GtE: ("oge", "sge", "uge"), ast.Eq: ("oeq", "eq", "eq"), ast.NotEq: ("une", "ne", "ne"),
}  # fmt: skip


class Lowering:
    """The code of one LLVM function during lowering. `metadata`: the metadata of the module that contains the function."""

    def __init__(self, statements: dict[type[ast.stmt], Callable[..., None]], metadata: list[str]) -> None:
        self._statements = statements
        self.lines: list[str] = []
        self.allocations: list[str] = []
        self.declarations: set[str] = set()
        self.metadata = metadata
        self.access_groups: list[str] = []
        self.frames: list[Frame] = []
        self._count = 0
        self.terminated = False

    # -- instructions -----------------------------------------------------------------------------------------------------

    @property
    def frame(self) -> Frame:
        """The innermost call."""
        return self.frames[-1]

    def fresh(self, prefix: str = "v") -> str:
        """Return an unused name."""
        self._count += 1
        return f"%{prefix}{self._count}"

    def emit(self, line: str) -> None:
        """Append an instruction, unless it is unreachable."""
        if not self.terminated:
            self.lines.append("  " + line)

    def value(self, instruction: str, type_: Any) -> Value:
        """Append an instruction that has a result, and return the result."""
        self._count += 1
        name = f"%v{self._count}"
        if not self.terminated:
            self.lines.append(f"  {name} = {instruction}")
        return Value(type_, name)

    def label(self, name: str) -> None:
        """Begin a block. If no instruction has ended the previous block, it continues with this block."""
        if not self.terminated:
            self.lines.append(f"  br label {name}")
        self.terminated = False
        self.lines.append(f"{name[1:]}:")

    def branch(self, target: str, suffix: str = "") -> None:
        """End the block with an unconditional jump."""
        self.emit(f"br label {target}{suffix}")
        self.terminated = True

    def branch_if(self, condition: Value, if_true: str, if_false: str) -> None:
        """End the block with a conditional jump."""
        self.emit(f"br i1 {condition.name}, label {if_true}, label {if_false}")
        self.terminated = True

    def intrinsic(self, name: str, result: Any, *arguments: Value | str) -> Value:
        """Call one of LLVM's intrinsic functions. A string is an argument with its type, such as "i1 false"."""
        types = ", ".join(
            argument.split()[0] if isinstance(argument, str) else argument.type.text for argument in arguments
        )
        returned = "void" if result is None else result.text
        self.declarations.add(f"declare {returned} @{name}({types})")
        flags = (
            self.frame.kernel.flags
            if result is not None and not isinstance(result, PointerType) and result.kind == "f"
            else ""
        )
        call = f"call {flags}{returned} @{name}({', '.join(map(str, arguments))})"
        if result is None:
            self.emit(call)
            return Value(i64, "0")
        return self.value(call, result)

    def allocate(self, type_: Any, count: int = 1) -> str:
        """Allocate memory on the stack."""
        name = self.fresh("a")
        shape = type_.text if count == 1 else f"[{count} x {type_.text}]"
        self.allocations.append(f"  {name} = alloca {shape}, align 64")
        return name

    def load(self, pointer: Value) -> Value:
        """Return the value at an address."""
        target = pointer.type.target
        return self.value(f"load {target.text}, ptr {pointer.name}, align {alignment(target)}{self._access()}", target)

    def store(self, pointer: Value, value: Any) -> None:
        """Write the value at an address."""
        target = pointer.type.target
        written = self.as_type(value, target)
        self.emit(f"store {written}, ptr {pointer.name}, align {alignment(target)}{self._access()}")

    def _access(self) -> str:
        return f", !llvm.access.group {self.access_groups[-1]}" if self.access_groups else ""

    def offset(self, pointer: Value, index: Any) -> Value:
        """Return the address of element `index`."""
        if is_number(index) and index == 0:
            return pointer
        at = self.as_index(index)
        return self.value(f"getelementptr inbounds {pointer.type.target.text}, ptr {pointer.name}, {at}", pointer.type)

    def as_index(self, index: Any) -> Value:
        """Return an integer of any type as i64."""
        if is_number(index):
            return constant(index, i64)
        if not isinstance(index, Value) or not isinstance(index.type, NumberType) or index.type.kind not in "iu":
            raise CompilationError("an index must be an integer")
        return index if index.type.bits == 64 else self.convert(index, i64)

    # -- types ------------------------------------------------------------------------------------------------------------

    def as_type(self, value: Any, type_: Any) -> Value:
        """Convert a number to this type, or repeat it in a vector. Other values must already have this type."""
        if is_number(value):
            if isinstance(type_, PointerType):
                raise CompilationError(f"a number was given where {type_} is expected")
            return constant(value, type_)
        if not isinstance(value, Value):
            raise CompilationError(f"{value!r} was given where {type_} is expected")
        if value.type is type_ or value.type == type_:
            return value
        if isinstance(type_, VectorType) and value.type == type_.element:
            return self.broadcast(value, type_.width)
        raise CompilationError(f"{value.type} was given where {type_} is expected; convert it")

    def broadcast(self, value: Value, width: int) -> Value:
        """Return a vector that contains the number in each element."""
        type_ = VectorType(value.type, width)
        text = type_.text
        first = self.value(f"insertelement {text} poison, {value}, i64 0", type_)
        return self.value(f"shufflevector {first}, {text} poison, <{width} x i32> zeroinitializer", type_)

    def convert(self, value: Any, type_: Any) -> Value:
        """Convert a number to another type as in C. Conversion to bfloat16 and float16 rounds to nearest even."""
        if is_number(value):
            return constant(value, type_)
        if not isinstance(value, Value) or isinstance(value.type, PointerType):
            raise CompilationError(f"there is no conversion to {type_}")
        if isinstance(value.type, VectorType) and not isinstance(type_, VectorType):
            type_ = VectorType(type_, value.type.width)
        if isinstance(type_, VectorType) and not isinstance(value.type, VectorType):
            return self.broadcast(self.convert(value, type_.element), type_.width)
        if value.type == type_:
            return value
        source, target = value.type.element, type_.element
        if source.storage_only or target.storage_only:
            return convert_half(self, value, type_)
        if target is boolean:
            comparison = "fcmp une" if source.kind == "f" else "icmp ne"
            return self.value(f"{comparison} {value}, {constant(0, value.type).name}", type_)
        instruction = _conversion(source, target)
        if instruction is None:
            return Value(type_, value.name)
        return self.value(f"{instruction} {value} to {type_.text}", type_)

    def unify(self, left: Any, right: Any) -> tuple[Value, Value]:
        """Convert two operands to one type."""
        if not isinstance(left, Value):
            return self.as_type(left, right.type), right
        if not isinstance(right, Value):
            return left, self.as_type(right, left.type)
        if left.type is right.type:
            return left, right
        if isinstance(left.type, VectorType) and not isinstance(right.type, VectorType):
            return left, self.as_type(right, left.type)
        if isinstance(right.type, VectorType) and not isinstance(left.type, VectorType):
            return self.as_type(left, right.type), right
        if left.type != right.type:
            raise CompilationError(f"{left.type} and {right.type} do not go together; convert one of them")
        return left, right

    def with_element(self, type_: Any, element: NumberType) -> Any:
        """Return a type with the same width as `type_` and other elements."""
        return VectorType(element, type_.width) if isinstance(type_, VectorType) else element

    # -- expressions ------------------------------------------------------------------------------------------------------

    def expression(self, tree: ast.expr) -> Any:
        """Return the value of an expression, or the Python object if it is known at compile time."""
        method = EXPRESSIONS.get(type(tree))
        if method is None:
            raise CompilationError(f"{type(tree).__name__} is not in the language of kernels")
        return method(self, tree)

    def _Constant(self, tree: ast.Constant) -> Any:
        return tree.value

    def _Name(self, tree: ast.Name) -> Any:
        frame = self.frame
        if tree.id in frame.names:
            found = frame.names[tree.id]
            if isinstance(found, Variable):
                text = found.type.text
                return self.value(f"load {text}, ptr {found.address}", found.type)
            return found
        found = frame.kernel.lookup(tree.id)
        if isinstance(found, TypeVariable):
            try:
                return frame.types[found.name]
            except KeyError:
                raise CompilationError(f"the type {found.name} has not been given") from None
        return found

    def _Tuple(self, tree: ast.Tuple) -> Any:
        return tuple(self._items(tree.elts))

    def _List(self, tree: ast.List) -> Any:
        return self._items(tree.elts)

    def _items(self, trees: list[ast.expr]) -> list[Any]:
        items: list[Any] = []
        for tree in trees:
            if isinstance(tree, ast.Starred):
                items += self.expression(tree.value)
            else:
                items.append(self.expression(tree))
        return items

    def _Slice(self, tree: ast.Slice) -> Any:
        return slice(*[None if part is None else self.expression(part) for part in (tree.lower, tree.upper, tree.step)])

    def _Attribute(self, tree: ast.Attribute) -> Any:
        owner = self.expression(tree.value)
        if isinstance(owner, Value):
            if tree.attr == "type":
                return owner.type
            raise CompilationError(f"a value of a kernel has no attribute {tree.attr!r}")
        return getattr(owner, tree.attr)

    def _Subscript(self, tree: ast.Subscript) -> Any:
        owner = self.expression(tree.value)
        if owner is Pointer:
            return PointerType(self.expression(tree.slice))
        if not isinstance(owner, Value):
            index = self.expression(tree.slice)
            if isinstance(index, Value):
                raise CompilationError("an index into Python's own object has to be known when the kernel is compiled")
            return owner[index]
        if isinstance(owner.type, PointerType):
            return self.load(self.offset(owner, self.expression(tree.slice)))
        if isinstance(owner.type, VectorType):
            at = self.as_index(self.expression(tree.slice))
            return self.value(f"extractelement {owner}, {at}", owner.type.element)
        raise CompilationError(f"{owner.type} has no elements")

    def _UnaryOp(self, tree: ast.UnaryOp) -> Any:
        operand = self.expression(tree.operand)
        if not isinstance(operand, Value):
            return STATIC_OPERATORS[type(tree.op)](operand)
        kind = operand.type.kind
        if isinstance(tree.op, ast.USub):
            if kind == "f":
                return self.value(f"fneg {self.frame.kernel.flags}{operand}", operand.type)
            return self.value(f"sub {operand.type.text} {constant(0, operand.type).name}, {operand.name}", operand.type)
        if isinstance(tree.op, ast.Not) and kind != "b":
            operand = self.convert(operand, boolean)
        if isinstance(tree.op, ast.UAdd):
            return operand
        ones = constant(1 if operand.type.kind == "b" else -1, operand.type)
        return self.value(f"xor {operand}, {ones.name}", operand.type)

    def _BinOp(self, tree: ast.BinOp) -> Any:
        return self.binary(type(tree.op), self.expression(tree.left), self.expression(tree.right))

    def binary(self, operation: type[ast.operator], left: Any, right: Any) -> Any:
        """Apply an arithmetic operation to two operands."""
        if not isinstance(left, Value) and not isinstance(right, Value):
            return STATIC_OPERATORS[operation](left, right)
        if isinstance(left, Value) and isinstance(left.type, PointerType):
            if operation is ast.Add:
                return self.offset(left, right)
            if operation is ast.Sub:
                return self.offset(left, self.binary(ast.Sub, 0, right))
            raise CompilationError("only + and - move a pointer")
        left, right = self.unify(left, right)
        kind, flags, type_ = left.type.kind, self.frame.kernel.flags, left.type
        if left.type.element.storage_only:
            raise CompilationError(f"there is no arithmetic on {left.type}; convert it to f32")
        if kind == "f":
            if operation not in _FLOAT_INSTRUCTIONS:
                raise CompilationError(f"{operation.__name__} is not for {type_}")
            return self.value(f"{_FLOAT_INSTRUCTIONS[operation]} {flags}{left}, {right.name}", type_)
        if operation in _INTEGER_INSTRUCTIONS:
            return self.value(f"{_INTEGER_INSTRUCTIONS[operation]} {left}, {right.name}", type_)
        if operation is ast.RShift:
            return self.value(f"{'ashr' if kind == 'i' else 'lshr'} {left}, {right.name}", type_)
        if operation in (ast.FloorDiv, ast.Mod):
            return self._divide(operation, left, right)
        raise CompilationError(f"{operation.__name__} is not for {type_}; convert to a floating-point type")

    def _divide(self, operation: type[ast.operator], left: Value, right: Value) -> Value:
        """Divide integers as in Python, rounding down. The remainder has the sign of the divisor."""
        type_ = left.type
        if type_.kind != "i":
            return self.value(f"{'udiv' if operation is ast.FloorDiv else 'urem'} {left}, {right.name}", type_)
        zero, bits = constant(0, type_).name, type_.text
        remainder = self.value(f"srem {left}, {right.name}", type_)
        signs = self.value(f"xor {remainder}, {right.name}", type_)
        differ = self.value(f"icmp slt {signs}, {zero}", self.with_element(type_, boolean))
        nonzero = self.value(f"icmp ne {remainder}, {zero}", differ.type)
        adjust = self.value(f"and {differ}, {nonzero.name}", differ.type)
        if operation is ast.Mod:
            moved = self.value(f"add {remainder}, {right.name}", type_)
            return self.value(f"select {adjust}, {moved}, {remainder}", type_)
        quotient = self.value(f"sdiv {left}, {right.name}", type_)
        less = self.value(f"sext {adjust} to {bits}", type_)
        return self.value(f"add {quotient}, {less.name}", type_)

    def _Compare(self, tree: ast.Compare) -> Any:
        left = self.expression(tree.left)
        result: Any = None
        for operation, right_tree in zip(tree.ops, tree.comparators, strict=True):
            right = self.expression(right_tree)
            part = self.compare(type(operation), left, right)
            result = part if result is None else self.binary(ast.BitAnd, result, part)
            left = right
        return result

    def compare(self, operation: type[ast.cmpop], left: Any, right: Any) -> Any:
        """Compare two operands. NaN is unequal to everything."""
        if operation in (ast.Is, ast.IsNot) or (not isinstance(left, Value) and not isinstance(right, Value)):
            return STATIC_OPERATORS[operation](left, right)
        left, right = self.unify(left, right)
        ordered, signed, unsigned = _COMPARISONS[operation]
        kind = left.type.kind
        text = f"fcmp {ordered}" if kind == "f" else f"icmp {signed if kind == 'i' else unsigned}"
        return self.value(f"{text} {left}, {right.name}", self.with_element(left.type, boolean))

    def condition(self, value: Any) -> Any:
        """Return a truth value, or a Python bool if it is known at compile time."""
        if not isinstance(value, Value):
            return bool(value)
        return value if value.type is boolean else self.convert(value, boolean)

    def _BoolOp(self, tree: ast.BoolOp) -> Any:
        conjunction = isinstance(tree.op, ast.And)
        value = self.condition(self.expression(tree.values[0]))
        for item in tree.values[1:]:
            if not isinstance(value, Value):
                if value is not conjunction:
                    return value
                value = self.condition(self.expression(item))
                continue
            place, more, end = self.allocate(boolean), self.fresh("more"), self.fresh("end")
            self.emit(f"store {value}, ptr {place}")
            self.branch_if(value, *((more, end) if conjunction else (end, more)))
            self.label(more)
            following = self.condition(self.expression(item))
            self.emit(f"store {self.as_type(following, boolean)}, ptr {place}")
            self.label(end)
            value = self.value(f"load i1, ptr {place}", boolean)
        return value

    def _IfExp(self, tree: ast.IfExp) -> Any:
        condition = self.expression(tree.test)
        if not isinstance(condition, Value):
            return self.expression(tree.body if condition else tree.orelse)
        return self.select(condition, self.expression(tree.body), self.expression(tree.orelse))

    def select(self, condition: Value, first: Any, second: Any) -> Value:
        """Return one of two values, both of which have been computed."""
        if not isinstance(first, Value) and not isinstance(second, Value):
            type_ = weak_type(first)
            first, second = constant(first, type_), constant(second, type_)
        first, second = self.unify(first, second)
        if isinstance(condition.type, VectorType) and not isinstance(first.type, VectorType):
            width = condition.type.width
            first, second = self.broadcast(first, width), self.broadcast(second, width)
        return self.value(f"select {condition}, {first}, {second}", first.type)

    def _ListComp(self, tree: ast.ListComp) -> Any:
        (generator,) = tree.generators
        results = []
        name = generator.target
        if not isinstance(name, ast.Name):
            raise CompilationError("a comprehension has one variable")
        before = self.frame.names.get(name.id)
        for item in self.expression(generator.iter):
            self.frame.names[name.id] = item
            results.append(self.expression(tree.elt))
        if before is None:
            self.frame.names.pop(name.id, None)
        else:
            self.frame.names[name.id] = before
        return results

    def _Call(self, tree: ast.Call) -> Any:
        function = self.expression(tree.func)
        arguments = self._items(tree.args)
        options = {item.arg: self.expression(item.value) for item in tree.keywords if item.arg is not None}
        return self.call(function, arguments, options)

    def call(self, function: Any, arguments: list[Any], options: dict[str, Any]) -> Any:
        """Call another kernel, a built-in function, a conversion, or a Python function on values known at compile time."""
        if function is range:
            return LoopRange(tuple(arguments))
        if isinstance(function, LoopKernel):
            return self.inline(function, arguments, options)
        if isinstance(function, Builtin):
            return function.lower(self, *arguments, **options)
        if isinstance(function, (NumberType, VectorType)):
            (value,) = arguments
            return self.convert(value, function)
        if any(isinstance(item, Value) for item in (*arguments, *options.values())):
            raise CompilationError(f"{function!r} is not for values of a kernel")
        return function(*arguments, **options)

    # -- calls ------------------------------------------------------------------------------------------------------------

    def inline(self, kernel: LoopKernel, arguments: list[Any], options: dict[str, Any]) -> Any:
        """Insert the body of another kernel in place of a call."""
        if any(frame.kernel is kernel for frame in self.frames):
            raise CompilationError(f"{kernel.name} calls itself")
        if kernel.in_float64 and any(isinstance(item, Value) and item.type.element is f32 for item in arguments):
            wide = [self.convert(item, f64) for item in arguments]
            return self.convert(self.inline(kernel, wide, options), f32)
        frame = Frame(kernel, {})
        parameters = kernel.tree.args.args
        given = dict(zip([item.arg for item in parameters], arguments, strict=False), **options)
        missing = len(parameters) - len(kernel.tree.args.defaults)
        for position, parameter in enumerate(parameters):
            if parameter.arg not in given:
                if position < missing:
                    raise CompilationError(f"{kernel.name} lacks its argument {parameter.arg!r}")
                with self._within(frame):
                    given[parameter.arg] = self.expression(kernel.tree.args.defaults[position - missing])
        if len(arguments) > len(parameters) or len(given) > len(parameters):
            raise CompilationError(f"{kernel.name} takes {len(parameters)} arguments")
        for parameter in parameters:  # values first, because they determine the type of numbers
            _infer(frame, parameter.annotation, given[parameter.arg])
        with self._within(frame):
            for parameter in parameters:
                self._bind(frame, parameter, given[parameter.arg])
            self.body(kernel.tree.body)
            return self.finish_frame(frame)

    @contextmanager
    def _within(self, frame: Frame) -> Iterator[None]:
        self.frames.append(frame)
        try:
            yield
        finally:
            self.frames.pop()

    def _bind(self, frame: Frame, parameter: ast.arg, value: Any) -> None:
        frame.names[parameter.arg] = value
        type_ = Any if parameter.annotation is None else self.expression(parameter.annotation)
        if type_ is Static and isinstance(value, Value):
            raise CompilationError(f"{parameter.arg} has to be known when the kernel is compiled")
        if isinstance(value, Value) or (is_number(value) and type_ is not Any and type_ is not Static):
            self.assign_name(parameter.arg, value if type_ is Any else self.as_type(value, type_))

    def finish_frame(self, frame: Frame) -> Any:
        """Return the result of an inlined call after its body."""
        if frame.exit is None:
            return frame.result
        self.label(frame.exit)
        return self._read_result(frame.result)

    def _read_result(self, result: Any) -> Any:
        if isinstance(result, tuple):
            return tuple([self._read_result(item) for item in result])
        if isinstance(result, Variable):
            return self.value(f"load {result.type.text}, ptr {result.address}", result.type)
        return result

    # -- statements -------------------------------------------------------------------------------------------------------

    def body(self, statements: list[ast.stmt]) -> None:
        """Lower statements one after another until the end or an unreachable statement."""
        for statement in statements:
            if self.terminated or self.frame.returned:
                return
            try:
                self.statement(statement)
            except CompilationError as error:
                if getattr(error, "placed", False):
                    raise
                code = self.frame.kernel.function.__code__
                line = code.co_firstlineno - 1 + statement.lineno
                placed = type(error)(f"{code.co_filename}:{line}: {error}")
                placed.placed = True  # type: ignore[attr-defined]
                raise placed from None

    def statement(self, tree: ast.stmt) -> None:
        """One statement."""
        lower = self._statements.get(type(tree))
        if lower is None:
            raise CompilationError(f"{type(tree).__name__} is not in the language of kernels")
        lower(self, tree)

    def assign_name(self, name: str, value: Any) -> None:
        """Assign a value to a variable. Compile-time values, such as all names in capitals, are bound instead."""
        names = self.frame.names
        known = names.get(name)
        if name.isupper() or (not isinstance(value, Value) and not is_number(value)):
            if isinstance(value, Value):
                raise CompilationError(f"{name} has to be known when the kernel is compiled")
            names[name] = value
            return
        if not isinstance(known, Variable):
            type_ = value.type if isinstance(value, Value) else weak_type(value)
            known = names[name] = Variable(type_, self.allocate(type_))
        self.emit(f"store {self.as_type(value, known.type)}, ptr {known.address}")


EXPRESSIONS: dict[type[ast.expr], Callable[..., Any]] = {
    kind: getattr(Lowering, f"_{kind.__name__}")
    for kind in ast.expr.__subclasses__()
    if hasattr(Lowering, f"_{kind.__name__}")
}
"""The methods that lower expressions, by the class of the syntax node."""


def _infer(frame: Frame, annotation: ast.expr | None, value: Any) -> None:
    """Infer the types of type variables from the given value."""
    if not isinstance(value, Value) or annotation is None:
        return
    type_ = value.type
    if isinstance(annotation, ast.Subscript) and isinstance(type_, PointerType):
        annotation, type_ = annotation.slice, type_.target
    if isinstance(annotation, ast.Name):
        meaning = frame.kernel.lookup(annotation.id)
        if isinstance(meaning, TypeVariable):
            known = frame.types.get(meaning.name)
            if known is None or (isinstance(type_, VectorType) and type_.element == known):
                frame.types[meaning.name] = type_


def _conversion(source: NumberType, target: NumberType) -> str | None:
    """Return LLVM's instruction for a conversion between two types, or None if the bits do not change."""
    if source.kind == "f":
        if target.kind == "f":
            return "fpext" if target.bits > source.bits else "fptrunc"
        return "fptosi" if target.kind == "i" else "fptoui"
    if target.kind == "f":
        return "sitofp" if source.kind == "i" else "uitofp"
    if target.bits == source.bits:
        return None
    if target.bits < source.bits:
        return "trunc"
    return "sext" if source.kind == "i" else "zext"
