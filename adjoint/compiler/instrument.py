"""Rewriting a Python function so that an observer sees which objects it reads, calls and changes.

The rewritten function has the syntax tree of the original function, its globals, closure and line numbers. Four kinds
of expressions become calls of the observer: attributes, calls, iterated objects, and tested or compared objects. The
targets of stores also become calls of the observer. All other parts of the language are unchanged, because they read
only local variables.
"""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import inspect
import linecache
from collections.abc import Iterable
from contextlib import suppress
from types import CellType, CodeType, FunctionType
from typing import Any

from .._runtime.first_use import unwatched

OBSERVER = "__observer__"
"""The name of the free variable that holds the observer."""


FINDING = frozenset("super locals globals vars dir eval exec".split())
"""The functions that inspect the frame of their caller."""

OPERATORS: dict[type, str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.FloorDiv: "floordiv",
    ast.MatMult: "matmul",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitAnd: "and_",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.USub: "neg",
    ast.UAdd: "pos",
    ast.Invert: "invert",
}
"""The functions of the module `operator`, by the operators of a syntax tree."""


SINGLE = (bool, type(None), type(...))
"""The classes of constants that are compared by value instead of identity."""


class NotReadable(Exception):
    """The error for a function without usable source."""


class Rewriter(ast.NodeTransformer):
    """Replaces expressions by calls of the observer. `owner` is the class whose private names are mangled."""

    def __init__(self, owner: str) -> None:
        self.owner = owner.lstrip("_")

    def mangled(self, name: str) -> str:
        """Return the attribute name as the compiler stores it inside a class."""
        private = self.owner and name.startswith("__") and not name.endswith("__")
        return f"_{self.owner}{name}" if private else name

    def kept(self, node: Any) -> Any:
        """Return the node unchanged, because it has no parts to rewrite."""
        return node

    visit_Name = visit_Constant = visit_arg = visit_Load = visit_Store = kept

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Rewrite `a.b` to `observer.attribute(a, "b")`, and a target to `observer.changed(a, "b").b`."""
        value = self.visit(node.value)
        name = self.mangled(node.attr)
        if isinstance(node.ctx, ast.Load):
            return asked("attribute", node, value, ast.Constant(name))
        return located(ast.Attribute(asked("changed", node, value, ast.Constant(name)), name, node.ctx), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Rewrite `a[i]` to `observer.element(a, i)`, and a target to `observer.changed(a, None)[i]`."""
        value, index = self.visit(node.value), self.visit(node.slice)
        if isinstance(node.ctx, ast.Load):
            return asked("element", node, value, index)
        return located(ast.Subscript(asked("changed", node, value, ast.Constant(None)), index, node.ctx), node)

    def visit_Slice(self, node: ast.Slice) -> ast.expr:
        """Rewrite a slice to a call, because it becomes an argument of the observer."""
        parts = [
            self.visit(part) if part is not None else ast.Constant(None) for part in (node.lower, node.upper, node.step)
        ]
        return asked("slice", node, *parts)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Rewrite `f(...)` to `observer.call(f, ...)`, except `super()`, which finds its class through the calling frame."""
        if isinstance(node.func, ast.Name) and node.func.id in FINDING:
            if node.func.id == "super":
                return node
            raise NotReadable(f"{node.func.id}() is called")
        arguments = [self.visit(argument) for argument in node.args]
        keywords = [
            located(ast.keyword(each.arg, self.visit(each.value) if each.arg else self.contents(each.value)), each)
            for each in node.keywords
        ]
        called = asked("call", node, self.visit(node.func), *arguments)
        called.keywords = keywords
        return called

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        """Record that an unpacked object is iterated over."""
        if isinstance(node.ctx, ast.Load):
            return located(ast.Starred(self.contents(node.value), node.ctx), node)
        return self.generic_visit(node)  # type: ignore[return-value]

    def contents(self, node: ast.expr) -> ast.expr:
        """Rewrite an expression so that the observer records reads of the elements of its value."""
        return asked("contents", node, self.visit(node))

    def fixed(self, node: ast.expr) -> ast.expr:
        """Rewrite an expression whose value is compared in a way that the observer does not follow."""
        return asked("fixed", node, self.contents(node))

    def identified(self, node: ast.expr) -> ast.expr:
        """Record that the identity of a value is read. A symbol is not the same object as its number."""
        return asked("identified", node, self.visit(node))

    def tested(self, node: ast.expr) -> ast.expr:
        """Rewrite an expression so that the observer records that the truth of its value is tested."""
        return asked("truth", node, self.visit(node))

    def visit_For(self, node: ast.For) -> ast.stmt:
        """Rewrite `for x in a` to iterate over `observer.contents(a)`."""
        iterated = self.iterated(node)
        node.iter = ast.Constant(None)
        self.generic_visit(node)
        node.iter = iterated
        return node

    def iterated(self, node: ast.For | ast.comprehension) -> ast.expr:
        """Return the iterable of a loop. A loop that unpacks the elements also reads their elements."""
        values = self.contents(node.iter)
        return asked("each", node.iter, values) if isinstance(node.target, (ast.Tuple, ast.List)) else values

    def visit_With(self, node: ast.With) -> ast.stmt:
        """Record that context managers are entered."""
        entered = [asked("entering", each.context_expr, self.visit(each.context_expr)) for each in node.items]
        for item in node.items:
            item.context_expr = ast.Constant(None)
        self.generic_visit(node)
        for item, context in zip(node.items, entered, strict=True):
            item.context_expr = context
        return node

    def visit_Try(self, node: ast.Try | ast.TryStar) -> list[ast.stmt]:
        """Record where the body of a `try` begins and ends."""
        self.generic_visit(node)
        name = f"__try_{node.lineno}_{node.col_offset}"
        begin = ast.Assign([located(ast.Name(name, ast.Store()), node)], asked("trying", node))

        def ended() -> ast.stmt:
            mark = located(ast.Name(name, ast.Load()), node)
            return located(ast.Expr(asked("tried", node, mark)), node)

        for handler in node.handlers:
            handler.body.insert(0, ended())
        if node.handlers:
            node.orelse.insert(0, ended())
        node.finalbody.insert(0, ended())
        return [located(begin, node), node]

    visit_TryStar = visit_Try

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        """Record that the formatted value is read."""
        form = None if node.format_spec is None else self.visit(node.format_spec)
        return located(ast.FormattedValue(self.contents(node.value), node.conversion, form), node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        """Rewrite the iterations of a comprehension, and test its conditions."""
        return ast.comprehension(
            self.visit(node.target), self.iterated(node), [self.tested(each) for each in node.ifs], node.is_async
        )

    def displayed(self, node: Any) -> ast.expr:
        """Record a list, dictionary or set that the function has created by a display or a comprehension."""
        made = self.generic_visit(node)
        return asked("made", node, made) if isinstance(getattr(node, "ctx", ast.Load()), ast.Load) else made  # type: ignore[arg-type, return-value]

    visit_List = visit_Set = visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = displayed

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        """Record that an unpacked dictionary is read."""
        keys = [None if key is None else self.visit(key) for key in node.keys]
        values = [
            self.visit(value) if key is not None else self.contents(value)
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        return asked("made", node, located(ast.Dict(keys, values), node))

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        """Record that a value which is unpacked into several targets is iterated over."""
        unpacked = any(isinstance(target, (ast.Tuple, ast.List)) for target in node.targets)
        value = self.contents(node.value) if unpacked else self.visit(node.value)
        return located(ast.Assign([self.visit(target) for target in node.targets], value), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        """Record that `x += y` may change `x` itself. Rewrite `a.b += y` to `observer.part(a, "b", False).value += y`."""
        operator = ast.Constant(OPERATORS[type(node.op)])
        if isinstance(node.target, ast.Name):
            value = asked("augmenting", node, operator, ast.Name(node.target.id, ast.Load()), self.visit(node.value))
            return located(ast.AugAssign(node.target, node.op, value), node)
        if isinstance(node.target, ast.Attribute):
            key, is_item = ast.Constant(self.mangled(node.target.attr)), False
        else:
            key, is_item = self.visit(node.target.slice), True
        part = asked("part", node, operator, self.visit(node.target.value), key, ast.Constant(is_item))
        target = located(ast.Attribute(part, "value", ast.Store()), node)
        return located(ast.AugAssign(target, node.op, self.contents(node.value)), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Rewrite `a + b` to `observer.arithmetic("add", a, b)`."""
        name = ast.Constant(OPERATORS[type(node.op)])
        return asked("arithmetic", node, name, self.visit(node.left), self.visit(node.right))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Rewrite `a < b` to `observer.comparison("lt", a, b)`. Comparisons read the elements of their operands."""
        identity = all(isinstance(each, (ast.Is, ast.IsNot)) for each in node.ops)
        if len(node.ops) == 1 and type(node.ops[0]) in OPERATORS:
            name, values = ast.Constant(OPERATORS[type(node.ops[0])]), [node.left, *node.comparators]
            return asked("comparison", node, name, *map(self.contents, values))
        constant = any(
            isinstance(each, ast.Constant) and type(each.value) in SINGLE for each in (node.left, *node.comparators)
        )
        read = (self.visit if constant else self.identified) if identity else self.fixed
        return located(ast.Compare(read(node.left), node.ops, [read(each) for each in node.comparators]), node)

    def with_test(self, node: Any) -> Any:
        """Return a statement or an expression with its condition replaced."""
        test = self.tested(node.test)
        node.test = ast.Constant(None)
        self.generic_visit(node)
        node.test = test
        return node

    visit_If = visit_While = visit_IfExp = visit_Assert = with_test

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Test all operands except the last."""
        *tested, last = node.values
        return located(ast.BoolOp(node.op, [*map(self.tested, tested), self.visit(last)]), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """Test `a` in `not a`. Rewrite `-a` to `-observer.operated("neg", a)`."""
        if isinstance(node.op, ast.Not):
            operand = self.tested(node.operand)
        else:
            operand = asked("operated", node, ast.Constant(OPERATORS[type(node.op)]), self.visit(node.operand))
        return located(ast.UnaryOp(node.op, operand), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        """Rewrite a nested function too, without its annotations."""
        node = self.generic_visit(node)  # type: ignore[assignment]
        without_annotations(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """Convert an annotated assignment to an assignment without annotation."""
        if node.value is None:
            return located(ast.Pass(), node)
        return self.visit_Assign(located(ast.Assign([node.target], node.value), node))

    def refuse(self, node: ast.AST) -> Any:
        """Raise an error, because the effects of this statement cannot be observed."""
        raise NotReadable(f"{type(node).__name__} at line {getattr(node, 'lineno', 0)} cannot be observed")

    visit_Global = visit_Nonlocal = visit_ClassDef = visit_Import = visit_ImportFrom = refuse
    visit_AsyncFunctionDef = visit_Await = visit_AsyncFor = visit_AsyncWith = visit_Match = refuse
    visit_Yield = visit_YieldFrom = refuse


def located(node: Any, at: ast.AST) -> Any:
    """Return `node` with the position of the original node."""
    node.lineno, node.col_offset, node.end_lineno, node.end_col_offset = place_of(at)
    return node


def place_of(node: Any) -> tuple[int, int, int, int]:
    """Return the position of a node."""
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def asked(method: str, at: ast.AST, *arguments: ast.expr) -> ast.Call:
    """Return a call of a method of the observer."""
    function = ast.Attribute(ast.Name(OBSERVER, ast.Load()), method, ast.Load())
    call = ast.Call(function, list(arguments), [])
    place = place_of(at)
    for node in (call, function, function.value, *arguments):
        if not hasattr(node, "lineno"):
            node.lineno, node.col_offset, node.end_lineno, node.end_col_offset = place
    return call


def without_annotations(node: ast.FunctionDef) -> None:
    """Remove annotations, because they are evaluated when the function is created."""
    node.returns = None
    arguments = node.args
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if each is not None:
            each.annotation = None


@unwatched
def rewritten(function: FunctionType, observer: Any, rewriter: type[Rewriter] = Rewriter) -> FunctionType:
    """Return the function. Calls of `observer` replace the expressions that `rewriter` selects.

    Raises:
        NotReadable: if there is no source, or if the source contains a statement that cannot be observed.
    """
    code = function.__code__
    definition = definition_of(code)
    owner = code.co_qualname.split(".<locals>.")[-1].rpartition(".")[0].rpartition(".")[2]
    name = "__rewritten__"  # a name that hides no variable
    arguments = definition.args
    absent = located(ast.Constant(None), definition)
    arguments.defaults = [absent for _ in arguments.defaults]
    arguments.kw_defaults = [each and absent for each in arguments.kw_defaults]
    writer = rewriter(owner)
    if isinstance(definition, ast.Lambda):
        body: list[ast.stmt] = [located(ast.Return(writer.visit(definition.body)), definition)]
        inner = located(ast.FunctionDef(name, arguments, body, []), definition)
    else:
        definition.decorator_list = []
        definition.name = name
        inner = writer.visit(definition)
    without_annotations(inner)
    module = ast.parse(f"def outer({', '.join((OBSERVER, *code.co_freevars))}):\n return {name}")
    module.body[0].body.insert(0, inner)  # type: ignore[attr-defined]
    flags = code.co_flags & __future__.annotations.compiler_flag
    outer_code = code_named("outer", compile(module, code.co_filename, "exec", flags, dont_inherit=True))
    inner_code = code_named(name, outer_code).replace(co_name=code.co_name, co_qualname=code.co_qualname)
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells[OBSERVER] = CellType(observer)
    closure = tuple([cells[each] for each in inner_code.co_freevars])
    made = FunctionType(inner_code, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def code_named(name: str, code: CodeType) -> CodeType:
    """Return the code of the function that is defined in other code."""
    return next(each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == name)


def definition_of(code: CodeType) -> ast.FunctionDef | ast.Lambda:
    """Return the syntax tree of a function, with the positions in its file."""
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise NotReadable("generators cannot be observed")
    lines = linecache.getlines(code.co_filename) or lines_by_source(code)
    found = [] if code.co_name == "<lambda>" else definitions_in(block(lines, code.co_firstlineno), code)
    if len(found) != 1:
        found = copy.deepcopy(definitions_in(ast.walk(parsed(tuple(lines))), code))
    if len(found) != 1:
        raise NotReadable(f"the source of {code.co_name} is not available")
    return found[0]


def definitions_in(nodes: Iterable[ast.AST], code: CodeType) -> list[Any]:
    """Return the definitions among nodes from which `code` can have been compiled."""
    wanted = ast.Lambda if code.co_name == "<lambda>" else ast.FunctionDef
    return [node for node in nodes if isinstance(node, wanted) and is_definition(node, code)]


def block(lines: list[str], first: int) -> list[ast.stmt]:
    """Return the statements of the definition that begins in a line of a file. The rest of the file is not parsed.

    The block ends before a line that is not indented more than the first line. Such a line may also continue a
    signature or a string.
    """
    indent = indent_of(lines[first - 1]) if first <= len(lines) else 0
    head = "\n" * (first - 2) + "if True:\n" if indent else "\n" * (first - 1)
    for end in range(first, len(lines) + 1):
        if end < len(lines) and (lines[end].strip()[:1] in ("", "#") or indent_of(lines[end]) > indent):
            continue
        with suppress(SyntaxError):
            body = ast.parse(head + "".join(lines[first - 1 : end])).body
            return body[0].body if indent else body  # type: ignore[attr-defined]
    return []


def indent_of(line: str) -> int:
    """Return the number of spaces at the beginning of a line."""
    return len(line) - len(line.lstrip())


@functools.lru_cache(16)
def parsed(lines: tuple[str, ...]) -> ast.Module:
    """Return the syntax tree of the lines of a file."""
    try:
        return ast.parse("".join(lines))
    except SyntaxError:
        return ast.Module([], [])


def lines_by_source(code: CodeType) -> list[str]:
    """Return the lines of a file that `inspect` finds and `linecache` does not, such as the lines of notebook cells."""
    try:
        return inspect.findsource(code)[0]
    except (OSError, TypeError, IndexError):
        return []


def is_definition(node: ast.FunctionDef | ast.Lambda, code: CodeType) -> bool:
    """Return whether `code` was compiled from a definition: both begin in the same line, and the instructions fill the body."""
    if isinstance(node, ast.FunctionDef):
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        return node.name == code.co_name and first == code.co_firstlineno
    body = node.body
    places = [(place[0::2], place[1::2]) for place in code.co_positions() if None not in place and any(place[2:])]
    begin, end = min(each for each, _ in places), max(each for _, each in places)
    same = begin == (body.lineno, body.col_offset) and end == (body.end_lineno, body.end_col_offset)
    return same and node.lineno == code.co_firstlineno
