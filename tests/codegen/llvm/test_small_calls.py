"""Small calls give the same bits in NumPy and in compiled loops, which run after many calls."""

from __future__ import annotations

from types import BuiltinFunctionType

import numpy
import pytest

import adjoint as torch
from adjoint.nn import functional as F

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.compiled_ufuncs import large
from adjoint.codegen.llvm.calls import NativeCall
from adjoint.codegen.llvm.language import Int, Pointer, T, address, f32, f64, i64, loops
from adjoint.codegen.llvm.launch import launch
from adjoint.codegen.plans import Memory
from adjoint.kernels.math import arithmetic
from adjoint.kernels.runtime.costs import CALLS

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64]
ENDS = [(0, 1), (-3, 7.5), (2.5, 2.5), (1e-30, 1e10), (0.1, -1000), (-1e-3, 1e-3), (5, 1)]


def ranges(dtype):
    for start, end in ENDS:
        for steps in (1, 2, 3, 10, 50, 333):
            yield torch.linspace(start, end, steps, dtype=dtype)
            if abs(end) < 100:
                yield torch.logspace(start, end, steps, dtype=dtype)
        if abs(end) < 100 and int(end - start):
            for step in (1, 1.25) if dtype is torch.int64 else (0.1, 0.5, 1, 3):
                yield torch.arange(start, end, step if end > start else -step, dtype=dtype)


def drawn(dtype):
    torch.manual_seed(0)
    for size in (1, 2, 3, 10, 15, 16, 17, 40):
        for limits in ((), (7,), (-5, 100)):
            yield torch.empty(size, dtype=dtype).random_(*limits)
        if dtype is torch.int64:
            yield torch.randint(-5, 100, (size,))
            yield torch.randperm(size)
        else:
            yield torch.randn(size, dtype=dtype)
            yield torch.empty(size, dtype=dtype).normal_(2.0, 3.0)
            yield torch.empty(size, dtype=dtype).exponential_(0.7)
            yield torch.rand(size, dtype=dtype)


def selected(dtype):
    generator = torch.Generator().manual_seed(1)
    for shape in ((7,), (3, 5), (16, 32), (4, 100), (2, 500), (900,)):
        x = (torch.randn(shape, generator=generator) * 3).round().to(dtype)
        if dtype is not torch.int64:
            x.view(-1)[::5] = -0.0
            x.view(-1)[::7] = torch.nan
        yield from (*x.topk(2), *x.topk(1, largest=False), *x.sort(0), *x.sort(descending=True))
        yield from (*x.median(0), *x.median(-1), *x.kthvalue(2), x.median(), x.unique())


def placed(dtype):
    x, index = torch.arange(12).view(3, 4).to(dtype), torch.tensor([[0, 2, 1], [2, 2, 0]])
    for dim in (0, 1, -1):
        yield x.gather(dim, index)
        yield x.scatter(dim, index, 7)
        yield x.scatter(dim, index, x[:2, :3] * 2)
        yield x.scatter_add(dim, index, x * 3)
        yield x.t().scatter_add(dim, index.t(), x.t())
        yield x.index_add(dim, index[0], x[:, :3] if dim else x)
        yield x.take_along_dim(torch.tensor([[1, 0, -1, 2]] if dim == 0 else [[1], [0], [-1]]), dim)


def bounded(dtype):
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.0]).to(dtype)
    if dtype is not torch.int64:
        x[2] = torch.nan
    for low, high in ((0, 0), (0, 2), (-1, 0), (2, -2), (None, 1), (-1, None)):
        yield x.clamp(low, high)
        yield x.clone().clamp_(low, high)
    if dtype is not torch.float64:
        yield from (x.cumsum(0), x.cumprod(0), x.view(1, 7).cumsum(0))


def scanned(dtype):
    x = torch.tensor([[0, -0.0, 3, 3, -2], [5, 5, -1, 0, -0.0]]).to(dtype)
    for dim in (0, 1):
        yield from (*x.cummax(dim), *x.cummin(dim), *x.t().cummax(dim))
        if dtype is torch.int64:
            yield x.cumsum(dim)


def rounded_at_each_step(dtype):
    """Expressions without elementary functions. Compiled loops round each operation of these expressions as NumPy does."""
    x = torch.tensor([[0.0, -0.0, torch.inf, -torch.inf, torch.nan], [0.7, -0.5, 3.25, -4, 1e-30]], dtype=torch.float64)
    x = (x.nan_to_num() if dtype is torch.int64 else x).to(dtype)
    y = x.flip(1)
    yield from (
        x.addcmul(y, x[0], value=3),
        x.nan_to_num(),
        F.threshold(x, 1, 2),
        x.clamp(x[1], y),
        x.t().clamp(-1, 2).t(),
    )
    yield from (x.clamp(min=-1), x.clamp(max=y))
    if dtype is not torch.int64:
        yield from (x.lerp(y, y), x.lerp(y[1], 0.3), x.addcdiv(y, x, value=0.5), x[1].remainder(y[1]), x.frac())
        yield from (F.hardswish(x), F.hardsigmoid(x), F.hardshrink(x), F.softshrink(x), F.softsign(x), F.hardtanh(x))
        yield from (F.smooth_l1_loss(x, y, reduction="none"), F.huber_loss(x, y, reduction="none"))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("calls", [ranges, drawn, selected, placed, bounded, scanned, rounded_at_each_step])
def test_bits(calls, dtype, monkeypatch):
    found = []
    for every_size in (False, True):
        monkeypatch.setattr(LOOPS, "every_size", every_size)
        found.append(
            [tensor.view(torch.uint8).numpy().tobytes() if tensor.dim() else tensor.tolist() for tensor in calls(dtype)]
        )
    assert len(found[0]) > 5
    for position, (one, other) in enumerate(zip(*found, strict=True)):
        assert one == other or (one != one and other != other), position
    assert not LOOPS.failures


@loops(noalias=False)
def shift(out: Pointer[T], x: Pointer[T], by: f64, narrow: f32, start: Int, stop: Int) -> None:
    for i in range(start, stop):
        out[i] = x[i] + T(by) + T(narrow)


def test_a_kernel_of_many_calls_becomes_a_built_in_function_that_takes_arrays():
    x, out = numpy.arange(6.0), numpy.zeros(6)
    function = shift.compiled(T=f64)
    for call in range(CALLS + 2):
        out[:] = 0
        launch(function, 5, 8, out, address(x) if call % 2 else x, 2, 0.5)
        assert out.tolist() == [2.5, 3.5, 4.5, 5.5, 6.5, 0.0]
    assert type(function.quick) is BuiltinFunctionType
    for wrong in ((out, x, "2", 0.5, 0, 5), (out, x, 2, None, 0, 5), (out, x, 2, 0.5, 0, 5.0)):
        with pytest.raises(TypeError):
            function.quick(*wrong)
    assert out.tolist() == [2.5, 3.5, 4.5, 5.5, 6.5, 0.0]


def test_scalars_that_are_no_numbers_are_left_to_numpy_by_built_in_functions():
    x = torch.linspace(-2, 2, 512)
    expected = torch.nn.functional.elu(x, 0.5)
    for _ in range(3):
        assert torch.nn.functional.elu(x, 0.5).equal(expected)
        with pytest.raises(TypeError):
            torch.nn.functional.elu(x, "0.5")


def test_small_arrays_of_an_exact_expression_become_compiled():
    x, y, weight = torch.randn(3, 4), torch.randn(4), torch.rand(3, 1)
    first = x.lerp(y, weight)
    for _ in range(CALLS):
        x.lerp(y, weight)
    compiled = arithmetic._between_arrays.expression.compiled
    signature = [
        part for item in (x, y, weight) for part in (item._array.dtype, item._array.shape, item._array.strides)
    ]
    assert (0, *signature) in compiled.direct, LOOPS.failures
    assert x.lerp(y, weight).equal(first)


def test_small_arrays_of_float16_become_compiled():
    x = torch.linspace(-70000, 70000, 512).half()
    x[:4] = torch.tensor([torch.nan, -torch.nan, 1e-7, -0.0])

    def results():
        made = [x + x.flip(0), x * x, torch.sub(x, x.flip(0), out=x * 0), x.float(), (x.float() / 3).half()]
        return [each.view(torch.uint8).tolist() for each in made]

    first = results()
    for _ in range(CALLS):
        results()
    signature = x._array.dtype, x._array.shape, x._array.strides
    assert (0, *signature, *signature) in large(numpy.multiply).compiled.direct, LOOPS.failures
    assert results() == first


@loops
def divided(out: Pointer[T], x: Pointer[T], flag: Pointer[i64], divisors: Pointer[T], factor: T, start: Int, stop: Int):
    """Write quotients times a factor. Write 1 to the flag if a number is negative."""
    for i in range(start, stop):
        if x[i] < T(0):
            flag[0] = 1
        out[i] = x[i] / divisors[i] * factor


@pytest.mark.parametrize("row_bytes", [4, 1 << 18])
def test_a_plan_calls_a_kernel_with_constants_and_returns_nothing_if_the_flag_is_set(row_bytes):
    x, divisors = numpy.arange(8, dtype=numpy.float32), numpy.full(8, 4, numpy.float32)
    call = NativeCall(
        divided.compiled(T=f32), 8, row_bytes, [divisors, 0.5], ["x"], [Memory((8,), x.dtype)], flagged=True
    )
    plan = call.plan(["x"])
    del divisors
    numpy.testing.assert_array_equal(plan.run(x), x / 8)
    out = numpy.empty_like(x)
    assert plan.into([out], x) is None
    numpy.testing.assert_array_equal(out, x / 8)
    assert plan.run(-x) is NotImplemented
    assert plan.into([out], -x) is NotImplemented
