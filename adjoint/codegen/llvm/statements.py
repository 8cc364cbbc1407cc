"""Statements of the kernel language: assignments, loops, conditions, and return."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from .element_types import PointerType, i64
from .functions import LoopRange, Variable
from .lowering import Lowering
from .values import CompilationError, Value, constant, is_number, weak_type


def _assign(lowering: Lowering, tree: ast.Assign) -> None:
    value = lowering.expression(tree.value)
    for target in tree.targets:
        _assign_to(lowering, target, value)


def _assign_to(lowering: Lowering, target: ast.expr, value: Any) -> None:
    if isinstance(target, ast.Name):
        lowering.assign_name(target.id, value)
    elif isinstance(target, ast.Tuple):
        if not isinstance(value, Sequence) or len(value) != len(target.elts):
            raise CompilationError("what is unpacked has another number of parts")
        for item, part in zip(target.elts, value, strict=True):
            _assign_to(lowering, item, part)
    elif isinstance(target, ast.Subscript):
        owner = lowering.expression(target.value)
        index = lowering.expression(target.slice)
        if isinstance(owner, Value) and isinstance(owner.type, PointerType):
            lowering.store(lowering.offset(owner, index), value)
        else:
            raise CompilationError("only memory is assigned to by index")
    else:
        raise CompilationError(f"{type(target).__name__} cannot be assigned to")


def _update(lowering: Lowering, tree: ast.AugAssign) -> None:
    operation = type(tree.op)
    if isinstance(tree.target, ast.Subscript):
        owner = lowering.expression(tree.target.value)
        if not isinstance(owner, Value) or not isinstance(owner.type, PointerType):
            raise CompilationError("only memory is assigned to by index")
        place = lowering.offset(owner, lowering.expression(tree.target.slice))
        amount = lowering.expression(tree.value)
        lowering.store(place, lowering.binary(operation, lowering.load(place), amount))
    elif isinstance(tree.target, ast.Name):
        amount = lowering.expression(tree.value)
        current = lowering.expression(ast.Name(tree.target.id, ast.Load()))
        lowering.assign_name(tree.target.id, lowering.binary(operation, current, amount))
    else:
        raise CompilationError(f"{type(tree.target).__name__} cannot be assigned to")


def _if(lowering: Lowering, tree: ast.If) -> None:
    condition = lowering.condition(lowering.expression(tree.test))
    if not isinstance(condition, Value):
        lowering.body(tree.body if condition else tree.orelse)
        return
    then, other, end = lowering.fresh("then"), lowering.fresh("else"), lowering.fresh("end")
    lowering.branch_if(condition, then, other if tree.orelse else end)
    frame = lowering.frame
    frame.depth += 1
    lowering.label(then)
    lowering.body(tree.body)
    reached = not lowering.terminated
    if reached:
        lowering.branch(end)
    if tree.orelse:
        lowering.label(other)
        lowering.body(tree.orelse)
        if not lowering.terminated:
            reached = True
            lowering.branch(end)
    else:
        reached = True
    frame.depth -= 1
    if reached:
        lowering.label(end)


def _for(lowering: Lowering, tree: ast.For) -> None:
    if tree.orelse:
        raise CompilationError("a loop has no else")
    source = lowering.expression(tree.iter)
    if not isinstance(source, LoopRange):
        for item in source:
            _assign_static(lowering, tree.target, item)
            lowering.body(tree.body)
        return
    if not isinstance(tree.target, ast.Name):
        raise CompilationError("a loop has one variable")
    start, stop = (
        lowering.unify(source.start, source.stop)
        if not is_number(source.stop) or not is_number(source.start)
        else (constant(source.start, i64), constant(source.stop, i64))
    )
    if not isinstance(source.step, int) or source.step == 0:
        raise CompilationError("the step of a loop has to be known when the kernel is compiled")
    frame = lowering.frame
    frame.names.pop(tree.target.id, None)
    lowering.assign_name(tree.target.id, start)
    head, body, following, end = (lowering.fresh(name) for name in ("head", "body", "next", "end"))
    lowering.label(head)
    variable = lowering.expression(ast.Name(tree.target.id, ast.Load()))
    order: type[ast.cmpop] = ast.Lt if source.step > 0 else ast.Gt
    lowering.branch_if(lowering.compare(order, variable, stop), body, end)
    lowering.label(body)
    suffix = ""
    if source.vectorized:
        suffix = _parallel(lowering)
    elif source.rolled:
        suffix = _marked(lowering, '"llvm.loop.unroll.disable"', '"llvm.loop.vectorize.enable", i1 false')
    _loop_body(lowering, tree.body, end, following)
    lowering.label(following)
    moved = lowering.binary(ast.Add, lowering.expression(ast.Name(tree.target.id, ast.Load())), source.step)
    lowering.assign_name(tree.target.id, moved)
    lowering.branch(head, suffix)
    if source.vectorized:
        lowering.access_groups.pop()
    lowering.label(end)


def _parallel(lowering: Lowering) -> str:
    """Record that the iterations of a loop may run in parallel, and request vectorization."""
    group = f"!{len(lowering.metadata)}"
    lowering.metadata.append(f"{group} = distinct !{{}}")
    lowering.access_groups.append(group)
    return _marked(lowering, f'"llvm.loop.parallel_accesses", {group}', '"llvm.loop.vectorize.enable", i1 true')


def _marked(lowering: Lowering, *properties: str) -> str:
    """Return the metadata that the last jump of a loop with these properties has."""
    first = len(lowering.metadata)
    names = [f"!{first + position}" for position in range(len(properties) + 1)]
    lowering.metadata.append(f"{names[0]} = distinct !{{{', '.join(names)}}}")
    lowering.metadata += [f"{name} = !{{!{text}}}" for name, text in zip(names[1:], properties, strict=True)]
    return f", !llvm.loop {names[0]}"


def _assign_static(lowering: Lowering, target: ast.expr, item: Any) -> None:
    if isinstance(target, ast.Name):
        lowering.frame.names[target.id] = item
    elif isinstance(target, ast.Tuple):
        for name, part in zip(target.elts, item, strict=True):
            _assign_static(lowering, name, part)
    else:
        raise CompilationError("a loop has names for variables")


def _loop_body(lowering: Lowering, statements: list[ast.stmt], end: str, following: str) -> None:
    frame = lowering.frame
    frame.depth += 1
    frame.loops.append((end, following))
    lowering.body(statements)
    frame.loops.pop()
    frame.depth -= 1


def _while(lowering: Lowering, tree: ast.While) -> None:
    head, body, end = (lowering.fresh(name) for name in ("head", "body", "end"))
    lowering.label(head)
    condition = lowering.condition(lowering.expression(tree.test))
    if isinstance(condition, Value):
        lowering.branch_if(condition, body, end)
    elif not condition:
        lowering.branch(end)
    lowering.label(body)
    _loop_body(lowering, tree.body, end, head)
    if not lowering.terminated:
        lowering.branch(head)
    lowering.label(end)


def _return(lowering: Lowering, tree: ast.Return) -> None:
    frame = lowering.frame
    result = None if tree.value is None else lowering.expression(tree.value)
    if frame.depth == 0 and frame.exit is None:
        frame.result = result
        frame.returned = True
        return
    if frame.exit is None:
        frame.exit = lowering.fresh("exit")
        frame.result = _places(lowering, result)
    _fill(lowering, frame.result, result)
    lowering.branch(frame.exit)


def _places(lowering: Lowering, result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple([_places(lowering, item) for item in result])
    if result is None:
        return None
    type_ = result.type if isinstance(result, Value) else weak_type(result)
    return Variable(type_, lowering.allocate(type_))


def _fill(lowering: Lowering, places: Any, result: Any) -> None:
    if isinstance(places, tuple):
        for place, item in zip(places, result, strict=True):
            _fill(lowering, place, item)
    elif places is not None:
        lowering.emit(f"store {lowering.as_type(result, places.type)}, ptr {places.address}")


def _call_statement(lowering: Lowering, tree: ast.Expr) -> None:
    if not isinstance(tree.value, ast.Constant):  # a docstring
        lowering.expression(tree.value)


STATEMENTS: dict[type[ast.stmt], Callable[..., None]] = {
    ast.Assign: _assign, ast.AugAssign: _update, ast.If: _if, ast.For: _for, ast.While: _while,
    ast.Break: lambda lowering, _tree: lowering.branch(lowering.frame.loops[-1][0]),
    ast.Continue: lambda lowering, _tree: lowering.branch(lowering.frame.loops[-1][1]),
    ast.Return: _return, ast.Expr: _call_statement,
}  # fmt: skip
