"""Operators of `torch.ops.aten` as ONNX nodes: shapes, arithmetic, reductions. Layers are in `layers`."""

from __future__ import annotations

import math
from typing import Any

import numpy

import adjoint as torch

from .builder import Builder, Extent
from .capture import Call
from .rules import RULES, Rule, axes, common, number, operand, reduced, rule

# --- elementwise --------------------------------------------------------------------------------------------------

SAME = {
    "neg": "Neg", "abs": "Abs", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "reciprocal": "Reciprocal", "sin": "Sin",
    "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "tanh": "Tanh",
    "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh", "sigmoid": "Sigmoid", "erf": "Erf", "ceil": "Ceil", "floor": "Floor",
    "round": "Round", "sign": "Sign", "relu": "Relu", "isnan": "IsNaN", "isinf": "IsInf", "logical_not": "Not", "selu": "Selu",
    "hardswish": "HardSwish",
}  # fmt: skip


def _same(kind: str) -> Rule:
    def add(builder: Builder, call: Call, self: Any, *args: Any) -> Any:
        wanted = call.outputs[0].dtype
        given = self if self.dtype == wanted or wanted == torch.bool else builder.cast(self, wanted)
        return builder.op(kind, given)

    return add


RULES.update({name: _same(kind) for name, kind in SAME.items()})

PAIRS = {
    "mul": "Mul", "div": "Div", "maximum": "Max", "minimum": "Min", "eq": "Equal", "gt": "Greater", "lt": "Less",
    "ge": "GreaterOrEqual", "le": "LessOrEqual", "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor",
    "bitwise_and": "And", "bitwise_or": "Or", "pow": "Pow",
}  # fmt: skip


def _pair(kind: str) -> Rule:
    def add(builder: Builder, call: Call, self: Any, other: Any, rounding_mode: str | None = None) -> Any:
        dtype = torch.bool if kind in ("And", "Or", "Xor") else common(self, other)
        if kind in ("Div", "Pow") and call.outputs[0].dtype.is_floating_point:
            dtype = call.outputs[0].dtype
        result = builder.op(kind, operand(builder, self, dtype), operand(builder, other, dtype))
        if rounding_mode == "floor":
            return builder.op("Floor", result)
        return result

    return add


RULES.update({name: _pair(kind) for name, kind in PAIRS.items()})


@rule("ne")
def _not_equal(builder: Builder, call: Call, self: Any, other: Any) -> Any:
    dtype = common(self, other)
    return builder.op("Not", builder.op("Equal", operand(builder, self, dtype), operand(builder, other, dtype)))


def _scaled(builder: Builder, value: Any, alpha: Any, dtype: Any) -> Any:
    given = operand(builder, value, dtype)
    return given if alpha == 1 else builder.op("Mul", given, number(alpha, dtype))


@rule("add")
def _add(builder: Builder, call: Call, self: Any, other: Any, alpha: Any = 1) -> Any:
    dtype = call.outputs[0].dtype
    return builder.op("Add", operand(builder, self, dtype), _scaled(builder, other, alpha, dtype))


@rule("sub")
def _sub(builder: Builder, call: Call, self: Any, other: Any, alpha: Any = 1) -> Any:
    dtype = call.outputs[0].dtype
    return builder.op("Sub", operand(builder, self, dtype), _scaled(builder, other, alpha, dtype))


@rule("rsub")
def _rsub(builder: Builder, call: Call, self: Any, other: Any, alpha: Any = 1) -> Any:
    dtype = call.outputs[0].dtype
    return builder.op("Sub", operand(builder, other, dtype), _scaled(builder, self, alpha, dtype))


@rule("rsqrt")
def _rsqrt(builder: Builder, call: Call, self: Any) -> Any:
    return builder.op("Reciprocal", builder.op("Sqrt", self))


@rule("square")
def _square(builder: Builder, call: Call, self: Any) -> Any:
    return builder.op("Mul", self, self)


@rule("log1p")
def _log1p(builder: Builder, call: Call, self: Any) -> Any:
    return builder.op("Log", builder.op("Add", self, number(1, self.dtype)))


@rule("expm1")
def _expm1(builder: Builder, call: Call, self: Any) -> Any:
    return builder.op("Sub", builder.op("Exp", self), number(1, self.dtype))


@rule("log2 log10")
def _log_of_base(builder: Builder, call: Call, self: Any) -> Any:
    base = 2.0 if call.name == "log2" else 10.0
    return builder.op("Div", builder.op("Log", self), number(math.log(base), self.dtype))


@rule("floor_divide")
def _floor_divide(builder: Builder, call: Call, self: Any, other: Any) -> Any:
    dtype = call.outputs[0].dtype
    wide = dtype if dtype.is_floating_point else torch.float64
    quotient = builder.op("Floor", builder.op("Div", operand(builder, self, wide), operand(builder, other, wide)))
    return quotient if wide == dtype else builder.cast(quotient, dtype)


@rule("remainder")
def _remainder(builder: Builder, call: Call, self: Any, other: Any) -> Any:
    dtype = call.outputs[0].dtype
    first, second = operand(builder, self, dtype), operand(builder, other, dtype)
    if not dtype.is_floating_point:
        return builder.op("Mod", first, second)
    return builder.op("Sub", first, builder.op("Mul", second, builder.op("Floor", builder.op("Div", first, second))))


@rule("where")
def _where(builder: Builder, call: Call, condition: Any, self: Any, other: Any) -> Any:
    dtype = call.outputs[0].dtype
    return builder.op("Where", condition, operand(builder, self, dtype), operand(builder, other, dtype))


@rule("masked_fill")
def _masked_fill(builder: Builder, call: Call, self: Any, mask: Any, value: Any) -> Any:
    return builder.op("Where", mask, operand(builder, value, self.dtype), self)


@rule("clamp clip clamp_min clamp_max")
def _clamp(builder: Builder, call: Call, self: Any, min: Any = None, max: Any = None) -> Any:
    if call.name == "clamp_max":
        min, max = None, min
    dtype = call.outputs[0].dtype
    result = operand(builder, self, dtype)
    for kind, bound in (("Max", min), ("Min", max)):
        if bound is not None:
            result = builder.op(kind, result, operand(builder, bound, dtype))
    return result


@rule("_to_copy")
def _to_copy(builder: Builder, call: Call, self: Any, dtype: Any = None, **others: Any) -> Any:
    return builder.op("Identity", self) if dtype is None or dtype == self.dtype else builder.cast(self, dtype)


@rule("clone detach alias contiguous lift_fresh")
def _clone(builder: Builder, call: Call, self: Any, *args: Any, **others: Any) -> Any:
    return builder.value(self)


@rule("copy_")
def _copy(builder: Builder, call: Call, self: Any, src: Any, non_blocking: bool = False) -> Any:
    result = builder.op("Expand", operand(builder, src, self.dtype), builder.integers(builder.shape(self)))
    builder.names[id(self)] = result
    return result


@rule("zeros_like ones_like full_like fill fill_ zero zero_ new_zeros new_ones")
def _filled(builder: Builder, call: Call, self: Any, *args: Any, **others: Any) -> Any:
    filled = call.outputs[0]
    value = 1 if "ones" in call.name else 0 if "zero" in call.name else args[0]
    if call.name.startswith("new"):
        shape: Any = builder.integers(args[0])
    else:
        shape = builder.op("Shape", self)
    result = builder.op("Expand", number(value, filled.dtype), shape)
    if call.name.endswith("_"):
        builder.names[id(self)] = result
    return result


# --- shapes -------------------------------------------------------------------------------------------------------


@rule("view _unsafe_view reshape")
def _view(builder: Builder, call: Call, self: Any, size: Any) -> Any:
    varying = [place for place, each in enumerate(size) if isinstance(each, Extent)]
    if len(varying) == 1 and -1 not in size:
        size = [-1 if place in varying else each for place, each in enumerate(size)]
    if 0 in size:
        return builder.op("Reshape", self, builder.integers(size), allowzero=1)
    return builder.op("Reshape", self, builder.integers(size))


@rule("expand")
def _expand(builder: Builder, call: Call, self: Any, size: Any, implicit: bool = False) -> Any:
    return builder.op("Expand", self, builder.integers([1 if each == -1 else each for each in size]))


@rule("t")
def _t(builder: Builder, call: Call, self: Any) -> Any:
    return builder.op("Transpose", self, perm=[1, 0]) if self.ndim == 2 else builder.value(self)


@rule("transpose")
def _transpose(builder: Builder, call: Call, self: Any, dim0: int, dim1: int) -> Any:
    order = list(range(self.ndim))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return builder.op("Transpose", self, perm=order)


@rule("permute")
def _permute(builder: Builder, call: Call, self: Any, dims: Any) -> Any:
    return builder.op("Transpose", self, perm=[dim % self.ndim for dim in dims])


@rule("unsqueeze")
def _unsqueeze(builder: Builder, call: Call, self: Any, dim: int) -> Any:
    return builder.op("Unsqueeze", self, axes(builder, [dim]))


@rule("squeeze")
def _squeeze(builder: Builder, call: Call, self: Any, dim: Any = None) -> Any:
    dims = range(self.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    single = [each % self.ndim for each in dims if self.ndim and self.shape[each] == 1]
    return builder.op("Squeeze", self, axes(builder, single)) if single else builder.value(self)


@rule("select")
def _select(builder: Builder, call: Call, self: Any, dim: int, index: int) -> Any:
    return builder.op("Gather", self, numpy.array(int(index), numpy.int64), axis=dim % self.ndim)


@rule("slice")
def _slice(
    builder: Builder, call: Call, self: Any, dim: int = 0, start: Any = 0, end: Any = None, step: int = 1
) -> Any:
    end = 2**63 - 1 if end is None else end
    return builder.op(
        "Slice",
        self,
        builder.integers([start or 0]),
        builder.integers([end]),
        axes(builder, [dim % self.ndim]),
        axes(builder, [step]),
    )


@rule("cat")
def _cat(builder: Builder, call: Call, tensors: Any, dim: int = 0) -> Any:
    dtype = call.outputs[0].dtype
    kept = [each for each in tensors if each.shape != (0,)]
    return builder.op("Concat", *[operand(builder, each, dtype) for each in kept], axis=dim % kept[0].ndim)


@rule("stack")
def _stack(builder: Builder, call: Call, tensors: Any, dim: int = 0) -> Any:
    place = dim % (tensors[0].ndim + 1)
    rows = [
        builder.op("Unsqueeze", operand(builder, each, call.outputs[0].dtype), axes(builder, [place]))
        for each in tensors
    ]
    return builder.op("Concat", *rows, axis=place)


@rule("split split_with_sizes chunk")
def _split(builder: Builder, call: Call, self: Any, sizes: Any, dim: int = 0) -> Any:
    lengths = [builder.shape(each)[dim] for each in call.outputs]
    if isinstance(sizes, Extent):
        raise RuntimeError("split along a dynamic dimension has no form in ONNX")
    parts = builder.op("Split", self, axes(builder, lengths), outputs=len(lengths), axis=dim % self.ndim)
    return [parts] if len(lengths) == 1 else parts


@rule("unbind")
def _unbind(builder: Builder, call: Call, self: Any, dim: int = 0) -> Any:
    return [_select(builder, call, self, dim, index) for index in range(len(call.outputs))]


@rule("repeat")
def _repeat(builder: Builder, call: Call, self: Any, repeats: Any) -> Any:
    given: Any = self
    if len(repeats) > self.ndim:
        given = builder.op("Unsqueeze", self, axes(builder, range(len(repeats) - self.ndim)))
    return builder.op("Tile", given, builder.integers(repeats))


@rule("flip")
def _flip(builder: Builder, call: Call, self: Any, dims: Any) -> Any:
    count = len(dims)
    return builder.op(
        "Slice",
        self,
        axes(builder, [-1] * count),
        axes(builder, [-(2**63)] * count),
        axes(builder, dims),
        axes(builder, [-1] * count),
    )


@rule("roll")
def _roll(builder: Builder, call: Call, self: Any, shifts: Any, dims: Any = ()) -> Any:
    if not dims:
        flat = builder.op("Reshape", self, axes(builder, [-1]))
        return builder.op("Reshape", _rolled(builder, flat, shifts[0], 0), builder.op("Shape", self))
    result: Any = self
    for shift, dim in zip(shifts, dims, strict=True):
        result = _rolled(builder, result, shift, dim)
    return result


def _rolled(builder: Builder, value: Any, shift: int, dim: int) -> Any:
    def part(start: int, end: int) -> Any:
        return builder.op("Slice", value, axes(builder, [start]), axes(builder, [end]), axes(builder, [dim]))

    return builder.op("Concat", part(-shift, 2**63 - 1), part(0, -shift), axis=dim) if shift else value


@rule("tril triu")
def _triangle(builder: Builder, call: Call, self: Any, diagonal: int = 0) -> Any:
    return builder.op("Trilu", self, numpy.array(int(diagonal), numpy.int64), upper=int(call.name == "triu"))


# --- reductions ---------------------------------------------------------------------------------------------------

REDUCTIONS = {"sum": "ReduceSum", "mean": "ReduceMean", "amax": "ReduceMax", "amin": "ReduceMin", "prod": "ReduceProd",
              "logsumexp": "ReduceLogSumExp", "all": "ReduceMin", "any": "ReduceMax"}  # fmt: skip


@rule("sum mean amax amin prod logsumexp all any")
def _reduce(builder: Builder, call: Call, self: Any, dim: Any = (), keepdim: bool = False, dtype: Any = None) -> Any:
    wanted = call.outputs[0].dtype
    inner = torch.int32 if wanted == torch.bool else wanted
    result = reduced(builder, REDUCTIONS[call.name], operand(builder, self, inner), dim, keepdim)
    return builder.cast(result, wanted) if inner != wanted else result


@rule("max min")
def _extreme(builder: Builder, call: Call, self: Any, dim: Any = None, keepdim: bool = False) -> Any:
    kind = "ReduceMax" if call.name == "max" else "ReduceMin"
    if isinstance(dim, torch.Tensor):
        return RULES["maximum" if call.name == "max" else "minimum"](builder, call, self, dim)
    values = reduced(builder, kind, self, () if dim is None else dim, keepdim)
    if dim is None:
        return values
    return [values, builder.op("ArgMax" if call.name == "max" else "ArgMin", self, axis=dim, keepdims=int(keepdim))]


@rule("argmax argmin")
def _argument(builder: Builder, call: Call, self: Any, dim: Any = None, keepdim: bool = False) -> Any:
    kind = "ArgMax" if call.name == "argmax" else "ArgMin"
    if dim is None:
        flat = builder.op("Reshape", self, axes(builder, [-1]))
        return builder.op(kind, flat, axis=0, keepdims=0)
    return builder.op(kind, self, axis=dim, keepdims=int(keepdim))


@rule("var std")
def _variance(
    builder: Builder, call: Call, self: Any, dim: Any = None, correction: Any = 1, keepdim: bool = False, **old: Any
) -> Any:
    dims = [dim] if isinstance(dim, int) else list(dim or range(self.ndim))
    centred = builder.op("Sub", self, reduced(builder, "ReduceMean", self, dims, True))
    squares = builder.op("Mul", centred, centred)
    total = reduced(builder, "ReduceSum", squares, dims, keepdim)
    count = builder.count([builder.shape(self)[each] for each in dims], self.dtype)
    less = number(1 if correction is None else correction, self.dtype)
    result = builder.op("Div", total, builder.op("Sub", count, less))
    return builder.op("Sqrt", result) if call.name == "std" else result


@rule("linalg_vector_norm")
def _vector_norm(
    builder: Builder, call: Call, self: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    if ord not in (1, 2):
        raise RuntimeError(f"a norm of order {ord} has no form in ONNX here")
    return reduced(builder, f"ReduceL{int(ord)}", self, () if dim is None else dim, keepdim)


@rule("cumsum")
def _cumsum(builder: Builder, call: Call, self: Any, dim: int, dtype: Any = None) -> Any:
    given = operand(builder, self, call.outputs[0].dtype)
    return builder.op("CumSum", given, numpy.array(dim, numpy.int64))


@rule("topk")
def _topk(
    builder: Builder, call: Call, self: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Any:
    return builder.op(
        "TopK", self, builder.integers([k]), outputs=2, axis=dim, largest=int(largest), sorted=int(sorted)
    )


@rule("sort")
def _sort(
    builder: Builder, call: Call, self: Any, *args: Any, dim: int = -1, descending: bool = False, stable: Any = None
) -> Any:
    dim, descending = (*args, *(dim, descending)[len(args) :])[:2]
    size = builder.op("Gather", builder.op("Shape", self), numpy.array([dim], numpy.int64), axis=0)
    return builder.op("TopK", self, size, outputs=2, axis=dim, largest=int(descending), sorted=1)
