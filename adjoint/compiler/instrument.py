"""Rewriting a Python function so that an observer sees what it reads, calls and changes.

The rewritten function has the syntax tree of the original one, its globals, closure and line numbers. Four kinds of expressions
become calls of the observer: attributes, calls, what is iterated over, what is tested or compared; so do the targets of stores.
Everything else of the language stays as it is, because it reads nothing but local variables.
"""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import inspect
import linecache
from types import CellType, CodeType, FunctionType
from typing import Any

OBSERVER = "__observer__"
"""The name of the free variable that holds the observer."""


FINDING = frozenset("super locals globals vars dir eval exec".split())
"""The functions that look at the frame which calls them."""

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
}
"""The functions of the module `operator`, by the operators that a syntax tree has."""


class NotReadable(Exception):
    """There is no source from which a function can be rewritten."""


class Rewriter(ast.NodeTransformer):
    """Replaces expressions by calls of the observer; `owner`: the class whose private names are mangled."""

    def __init__(self, owner: str) -> None:
        self.owner = owner.lstrip("_")

    def mangled(self, name: str) -> str:
        """The attribute name as the compiler stores it inside a class."""
        private = self.owner and name.startswith("__") and not name.endswith("__")
        return f"_{self.owner}{name}" if private else name

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """`a.b` becomes `observer.attribute(a, "b")`; a target becomes `observer.changed(a, "b").b`."""
        value = self.visit(node.value)
        name = self.mangled(node.attr)
        if isinstance(node.ctx, ast.Load):
            return asked("attribute", node, value, ast.Constant(name))
        return located(ast.Attribute(asked("changed", node, value, ast.Constant(name)), name, node.ctx), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """`a[i]` becomes `observer.element(a, i)`; a target becomes `observer.changed(a, None)[i]`."""
        value, index = self.visit(node.value), self.visit(node.slice)
        if isinstance(node.ctx, ast.Load):
            return asked("element", node, value, index)
        return located(ast.Subscript(asked("changed", node, value, ast.Constant(None)), index, node.ctx), node)

    def visit_Slice(self, node: ast.Slice) -> ast.expr:
        """A slice is an argument of the observer, so it is written as a call."""
        parts = [
            self.visit(part) if part is not None else ast.Constant(None) for part in (node.lower, node.upper, node.step)
        ]
        return asked("slice", node, *parts)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """`f(...)` becomes `observer.call(f, ...)`, but for `super()`, which finds its class by the frame it is called from."""
        if isinstance(node.func, ast.Name) and node.func.id in FINDING:
            if node.func.id == "super":
                return node
            raise NotReadable(f"{node.func.id}() is called")
        arguments = [self.visit(argument) for argument in node.args]
        keywords = [
            ast.keyword(each.arg, self.visit(each.value) if each.arg else self.contents(each.value))
            for each in node.keywords
        ]
        called = asked("call", node, self.visit(node.func), *arguments)
        called.keywords = keywords
        return called

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        """What is unpacked is iterated over."""
        if isinstance(node.ctx, ast.Load):
            return located(ast.Starred(self.contents(node.value), node.ctx), node)
        return self.generic_visit(node)  # type: ignore[return-value]

    def contents(self, node: ast.expr) -> ast.expr:
        """An expression whose elements are read."""
        return asked("contents", node, self.visit(node))

    def fixed(self, node: ast.expr) -> ast.expr:
        """An expression whose value is compared in a way that the observer does not follow."""
        return asked("fixed", node, self.contents(node))

    def tested(self, node: ast.expr) -> ast.expr:
        """An expression whose truth is asked."""
        return asked("truth", node, self.visit(node))

    def visit_For(self, node: ast.For) -> ast.stmt:
        """`for x in a` iterates over `observer.contents(a)`."""
        iterated = self.contents(node.iter)
        node.iter = ast.Constant(None)
        self.generic_visit(node)
        node.iter = iterated
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        """The same in a comprehension, whose conditions are tested."""
        return ast.comprehension(
            self.visit(node.target), self.contents(node.iter), [self.tested(each) for each in node.ifs], node.is_async
        )

    def displayed(self, node: Any) -> ast.expr:
        """A list, dictionary or set that is written out, or comprehended, is one that the function has made."""
        made = self.generic_visit(node)
        return asked("made", node, made) if isinstance(getattr(node, "ctx", ast.Load()), ast.Load) else made  # type: ignore[arg-type, return-value]

    visit_List = visit_Set = visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = displayed

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        """What is unpacked is read."""
        keys = [None if key is None else self.visit(key) for key in node.keys]
        values = [
            self.visit(value) if key is not None else self.contents(value)
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        return asked("made", node, located(ast.Dict(keys, values), node))

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        """What is unpacked into several targets is iterated over."""
        unpacked = any(isinstance(target, (ast.Tuple, ast.List)) for target in node.targets)
        value = self.contents(node.value) if unpacked else self.visit(node.value)
        return located(ast.Assign([self.visit(target) for target in node.targets], value), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        """`x += y` may change `x` itself."""
        if isinstance(node.target, ast.Name):
            value = asked("augmenting", node, ast.Name(node.target.id, ast.Load()), self.visit(node.value))
            return located(ast.AugAssign(node.target, node.op, value), node)
        return located(ast.AugAssign(self.visit(node.target), node.op, self.visit(node.value)), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """`a + b` becomes `observer.arithmetic("add", a, b)`."""
        name = ast.Constant(OPERATORS[type(node.op)])
        return asked("arithmetic", node, name, self.visit(node.left), self.visit(node.right))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Comparisons read the elements of what they compare; `a < b` becomes `observer.comparison("lt", a, b)`."""
        identity = all(isinstance(each, (ast.Is, ast.IsNot)) for each in node.ops)
        if len(node.ops) == 1 and type(node.ops[0]) in OPERATORS:
            name, values = ast.Constant(OPERATORS[type(node.ops[0])]), [node.left, *node.comparators]
            return asked("comparison", node, name, *map(self.contents, values))
        read = self.visit if identity else self.fixed
        return located(ast.Compare(read(node.left), node.ops, [read(each) for each in node.comparators]), node)

    def visit_If(self, node: ast.If) -> ast.stmt:
        """The condition is tested."""
        return self.with_test(node)

    def visit_While(self, node: ast.While) -> ast.stmt:
        """The condition is tested."""
        return self.with_test(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """The condition is tested."""
        return self.with_test(node)

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        """The condition is tested."""
        return self.with_test(node)

    def with_test(self, node: Any) -> Any:
        """A statement or an expression with its condition replaced."""
        test = self.tested(node.test)
        node.test = ast.Constant(None)
        self.generic_visit(node)
        node.test = test
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """All operands but the last are tested."""
        *tested, last = node.values
        return located(ast.BoolOp(node.op, [*map(self.tested, tested), self.visit(last)]), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """`not a` tests `a`."""
        operand = self.tested(node.operand) if isinstance(node.op, ast.Not) else self.visit(node.operand)
        return located(ast.UnaryOp(node.op, operand), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        """A nested function is rewritten too, without its annotations."""
        node = self.generic_visit(node)  # type: ignore[assignment]
        without_annotations(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """An annotated assignment is one without annotation."""
        if node.value is None:
            return located(ast.Pass(), node)
        return self.visit_Assign(located(ast.Assign([node.target], node.value), node))

    def refuse(self, node: ast.AST) -> Any:
        """Raise: what this statement does is not seen."""
        raise NotReadable(f"{type(node).__name__} at line {getattr(node, 'lineno', 0)} cannot be observed")

    visit_Global = visit_Nonlocal = visit_ClassDef = visit_Import = visit_ImportFrom = refuse
    visit_AsyncFunctionDef = visit_Await = visit_AsyncFor = visit_AsyncWith = visit_Match = refuse
    visit_Yield = visit_YieldFrom = refuse


def located(node: Any, at: ast.AST) -> Any:
    """`node` at the place of the original one."""
    return ast.copy_location(node, at)


def asked(method: str, at: ast.AST, *arguments: ast.expr) -> ast.Call:
    """A call of a method of the observer."""
    function = ast.Attribute(ast.Name(OBSERVER, ast.Load()), method, ast.Load())
    call = ast.Call(function, list(arguments), [])
    for node in (call, function, function.value):
        located(node, at)
    return call


def without_annotations(node: ast.FunctionDef) -> None:
    """Take away annotations, which are evaluated when the function is made."""
    node.returns = None
    arguments = node.args
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if each is not None:
            each.annotation = None


def rewritten(function: FunctionType, observer: Any, rewriter: type[Rewriter] = Rewriter) -> FunctionType:
    """The function that tells `observer` what it does, as far as `rewriter` has it do so.

    Raises:
        NotReadable: if there is no source, or the source does something that cannot be seen.
    """
    code = function.__code__
    definition = definition_of(code)
    owner = code.co_qualname.split(".<locals>.")[-1].rpartition(".")[0].rpartition(".")[2]
    name = "__rewritten__"  # which hides no variable
    arguments = definition.args
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [None if each is None else ast.Constant(None) for each in arguments.kw_defaults]
    writer = rewriter(owner)
    if isinstance(definition, ast.Lambda):
        body: list[ast.stmt] = [located(ast.Return(writer.visit(definition.body)), definition)]
        inner = located(ast.FunctionDef(name, arguments, body, []), definition)
    else:
        definition.decorator_list = []
        definition.name = name
        inner = writer.visit(definition)
    without_annotations(inner)
    outer_arguments = ast.arguments(
        [], [ast.arg(each) for each in (OBSERVER, *code.co_freevars)], None, [], [], None, []
    )
    returned = ast.Return(ast.Name(name, ast.Load()))
    outer = ast.FunctionDef("outer", outer_arguments, [inner, returned], [])
    module = ast.fix_missing_locations(ast.Module([outer], []))
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
    """The code of the function that is defined in other code."""
    return next(each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == name)


def definition_of(code: CodeType) -> ast.FunctionDef | ast.Lambda:
    """The syntax tree of a function, a copy of that of its file."""
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise NotReadable("generators cannot be observed")
    lines = tuple(linecache.getlines(code.co_filename)) or lines_by_source(code)
    wanted = ast.Lambda if code.co_name == "<lambda>" else ast.FunctionDef
    found = [node for node in ast.walk(parsed(lines)) if isinstance(node, wanted) and is_definition(node, code)]
    if len(found) != 1:
        raise NotReadable(f"the source of {code.co_name} is not available")
    return copy.deepcopy(found[0])


@functools.lru_cache(16)
def parsed(lines: tuple[str, ...]) -> ast.Module:
    """The syntax tree of the lines of a file."""
    try:
        return ast.parse("".join(lines))
    except SyntaxError:
        return ast.Module([], [])


def lines_by_source(code: CodeType) -> tuple[str, ...]:
    """The lines of a file that `inspect` finds and `linecache` does not, such as the lines of notebook cells."""
    try:
        return tuple(inspect.findsource(code)[0])
    except (OSError, TypeError, IndexError):
        return ()


def is_definition(node: ast.FunctionDef | ast.Lambda, code: CodeType) -> bool:
    """Whether `code` was compiled from a definition: it begins in its line, and its instructions are in its body."""
    if isinstance(node, ast.FunctionDef):
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        return node.name == code.co_name and first == code.co_firstlineno
    body = node.body
    places = [place for place in code.co_positions() if place[0] is not None and place[2] is not None]
    whole = (body.lineno, body.end_lineno, body.col_offset, body.end_col_offset)
    return node.lineno == code.co_firstlineno and whole in places
