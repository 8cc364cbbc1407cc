"""Compiled loops of pointwise operators and ufuncs against NumPy: layouts, dtypes, special values, random expressions."""

from __future__ import annotations

import os
import threading
import tracemalloc

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.compiled_pointwise import CompiledPointwise
from adjoint.codegen.compiled_ufuncs import LargeUfunc
from adjoint.codegen.elementary import PIECEWISE_OPERATIONS
from adjoint.codegen.expression import BOOL, CONSTANT, INPUT, NUMBER, PARAMETER, SCALAR, Expression, Graph
from adjoint.codegen.llvm.host import HOST
from adjoint.codegen.plans import Plans
from adjoint.codegen.pointwise import Program
from adjoint.dtypes import bfloat16
from adjoint.kernels.math import pointwise as elementwise
from adjoint.kernels.math import special
from adjoint.kernels.nn import activation
from adjoint.kernels.runtime.layout import laid_out

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy warns of overflow and nan


@pytest.fixture
def at_every_size(monkeypatch):
    monkeypatch.setattr(LOOPS, "every_size", True)
    monkeypatch.setattr(LOOPS, "_enabled", True)
    monkeypatch.setattr(LOOPS, "failures", {})


def both(program, arrays, scalars=(), out=None):
    """Return the results of NumPy and of the compiled loops. The compilation must have succeeded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LOOPS, "_enabled", False)
        expected = program.run(arrays, scalars)
    dtype = arrays[0].dtype
    compute = numpy.dtype(numpy.float32) if dtype.itemsize == 2 else dtype
    found = program.compiled.run(arrays, scalars, dtype, compute, out)
    assert found is not NotImplemented, LOOPS.failures
    return expected, found


def layouts(dtype):
    random = numpy.random.default_rng(0)
    x = random.standard_normal((12, 40, 36)).astype(dtype)
    column, row = random.standard_normal((40, 1)).astype(dtype), random.standard_normal(36).astype(dtype)
    return {
        "dense": (x, x[::-1].copy()),
        "a row for each": (x, row),
        "a number for each row": (x, column),
        "one number": (x, random.standard_normal(()).astype(dtype)),
        "transposed": (x.transpose(2, 0, 1), random.standard_normal((36, 12, 40)).astype(dtype)),
        "in steps": (x[:, ::2, ::-1], x[:, 1::2, :]),
        "between": (x[:, :1], x[:, :, :1]),
        "a narrow row for each": (x.reshape(-1, 3), row[:3]),
        "a number for each narrow row": (x.reshape(-1, 5), x.reshape(-1, 5)[:, 1:2]),
        "narrow rows in steps": (x.reshape(-1, 9)[:, ::2], x.reshape(-1, 9)[:, :5]),
        "narrow rows in several parts": (x.reshape(5, -1, 3)[:, :500], x.reshape(5, -1, 3)[:, 3:503, 1:2]),
        "few narrow rows in many parts": (x.reshape(-1, 9, 5)[:, :7], x.reshape(-1, 9, 5)[:, 1:8, 2:3]),
        "short": (x[0, :3, :5], x[1, :3, :5]),
        "none": (x[:0], x[:0]),
    }


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", layouts("f4"))
def test_every_layout_is_walked(layout, dtype, at_every_size):
    x, y = layouts(dtype)[layout]
    expected, found = both(activation.prelu.expression, (x, y))
    numpy.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    assert found.strides == laid_out(expected, (x, y)).strides


@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float64, numpy.float16, bfloat16.numpy])
@pytest.mark.parametrize(
    ("kernel", "count", "scalars"),
    [
        (activation.gelu, 1, ("none",)), (activation.gelu, 1, ("tanh",)), (activation.gelu_backward, 2, ("none",)),
        (activation.silu_double_backward, 2, ()), (activation.elu, 1, (0.7, 1.2, 1.0)), (activation.softplus, 1, (1.5, 20.0)),
        (activation.hardswish_double_backward, 2, ()), (activation.threshold, 1, (0.1, -2.0)), (activation.mish, 1, ()),
        (elementwise.logit, 1, (1e-3,)), (elementwise.sinc, 1, ()), (elementwise.sigmoid, 1, ()),
    ],
)  # fmt: skip
def test_operators_compute_what_numpy_computes(kernel, count, scalars, dtype, at_every_size):
    random = numpy.random.default_rng(1)
    arrays = [random.uniform(-3, 3, 1003).astype(dtype) for _ in range(count)]
    arrays[0][:5] = [0.0, -0.0, numpy.inf, -numpy.inf, numpy.nan]
    expected, found = both(kernel.expression, arrays, scalars)
    tolerance = {8: 1e-12, 4: 3e-6, 2: 1e-2}[numpy.dtype(dtype).itemsize]
    numpy.testing.assert_allclose(
        found.astype(numpy.float64), expected.astype(numpy.float64), rtol=tolerance, atol=tolerance
    )
    assert found.dtype == expected.dtype


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_integers_are_computed_as_integers(dtype, at_every_size):
    x = (numpy.arange(1000) % 17).astype(dtype)
    expected, found = both(activation.relu.expression, (x,))
    assert found.dtype == x.dtype
    assert (found == expected).all()
    assert numpy.array_equal(LargeUfunc(numpy.multiply, False)(x, x), x * x)


@pytest.mark.parametrize("name", ["add", "divide", "maximum", "less", "not_equal", "exp", "isnan", "floor", "square"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_ufuncs_of_large_arrays(name, dtype, at_every_size):
    ufunc = getattr(numpy, name)
    random = numpy.random.default_rng(2)
    x, y = random.standard_normal((2, 30, 101)).astype(dtype)
    x[0, :4] = y[0, 2:6] = [numpy.nan, numpy.inf, -numpy.inf, -0.0]
    operands = (x, y)[: ufunc.nin]
    found = LargeUfunc(ufunc, False)(*operands)
    assert found.dtype == ufunc(*operands).dtype
    numpy.testing.assert_allclose(found, ufunc(*operands), rtol=1e-6)
    if ufunc.nin == 2 and found.dtype != bool:
        number = LargeUfunc(ufunc, True)(x, 1.7)
        numpy.testing.assert_allclose(number, ufunc(x, x.dtype.type(1.7)), rtol=1e-6)


def test_an_array_is_written_over(at_every_size):
    x = numpy.random.default_rng(3).standard_normal((50, 33)).astype("f4")
    y = x.copy()
    _, found = both(activation.silu.expression, (y,), out=y)
    assert found is y
    numpy.testing.assert_allclose(y, x / (1 + numpy.exp(-x)), rtol=1e-6)
    shifted = numpy.arange(100, dtype="f4")
    assert activation.relu.expression.compiled.run(
        (shifted[:-1],), (), shifted.dtype, shifted.dtype, shifted[1:]
    ) is NotImplemented  # fmt: skip
    LargeUfunc(numpy.add, False)(shifted[1:], shifted[:-1], out=shifted[1:])
    assert (shifted[1:] == 2 * numpy.arange(1, 100) - 1).all()


CHANGES = {
    "add_": lambda x, y, z: x.add_(y, alpha=0.3),
    "sub_": lambda x, y, z: x.sub_(y, alpha=2),
    "sub_ of a row": lambda x, y, z: x.sub_(y[:1], alpha=2),
    "addcmul_": lambda x, y, z: x.addcmul_(y, z, value=0.3),
    "addcdiv_": lambda x, y, z: x.addcdiv_(y, z, value=0.3),
    "addcdiv_ of itself": lambda x, y, z: x.addcdiv_(x, z),
    "lerp_": lambda x, y, z: x.lerp_(y, 0.7),
    "lerp_ by a tensor": lambda x, y, z: x.lerp_(y, z),
    "copy_": lambda x, y, z: x.copy_(y.double() if x.dtype is adjoint.float32 else y.float()),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_large_changes_are_those_of_small_ones(name, dtype):
    change, numbers = CHANGES[name], numpy.random.default_rng(0)
    x, y, z = (adjoint.tensor(numbers.uniform(0.1, 2, (300, 200))).to(getattr(adjoint, dtype)) for _ in range(3))
    parts = [
        change(x[row : row + 1].clone(), y if "row" in name else y[row : row + 1], z[row : row + 1]) for row in range(3)
    ]
    version = x._version
    assert change(x, y, z) is x
    assert x._version == version + 1
    adjoint.testing.assert_close(x[:3], adjoint.cat(parts), rtol=0 if "16" in dtype else 2e-7, atol=2e-7)


def test_large_changes_need_no_memory():
    x, y, z = (adjoint.rand(300, 400) + 0.5 for _ in range(3))
    for name, change in CHANGES.items():
        if name != "copy_":
            change(x, y, z)  # compiles
            tracemalloc.start()
            change(x, y, z)
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert most < x.nbytes, name


@pytest.mark.parametrize("shape", [(), (3,), (200, 300)])
@pytest.mark.long_cases
def test_results_of_numbers_are_written_to_out_and_nowhere_else(shape):
    x, out = adjoint.randn(shape), adjoint.empty(shape)
    for name in ("add", "sub", "mul", "div", "maximum", "minimum", "atan2"):
        function = getattr(adjoint, name)
        for number in (1.5, adjoint.tensor(2.5)) if name in ("add", "sub", "mul", "div") else (adjoint.tensor(0.5),):
            function(x, number, out=out)  # compiles
            tracemalloc.start()
            assert function(x, number, out=out) is out
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert adjoint.equal(out, function(x, number))
            assert x.numel() < 1000 or most < x.nbytes, name


def test_truth_values_are_written_over_numbers_as_numbers(at_every_size):
    x = numpy.arange(100, dtype="f4")
    assert LargeUfunc(numpy.equal, False)(x, x[:1] + 3, out=x) is x
    assert (x == (numpy.arange(100) == 3)).all()


@pytest.mark.parametrize("vector_bytes", [16, 32])
def test_other_vectors_compute_the_same(vector_bytes, monkeypatch, at_every_size):
    monkeypatch.setattr(HOST, "vector_bytes", vector_bytes)
    kernel = activation.gelu.expression
    program = Program(kernel.function, kernel.refusal, kernel.kinds, kernel.contiguous)
    x, y = layouts("f4")["a row for each"]
    numpy.testing.assert_allclose(*both(program, (x + y,), ("none",)), rtol=1e-6, atol=1e-6)
    numpy.testing.assert_allclose(*both(program, ((x + y)[:, :, ::2],), ("none",)), rtol=1e-6, atol=1e-6)


def test_complex_numbers_without_compiled_functions_stay_with_numpy(at_every_size):
    x = numpy.linspace(0.5, 3, 100)
    assert activation.silu.expression.compiled.run((x + 1j,), (), numpy.dtype("D"), numpy.dtype("D")) is NotImplemented
    assert not LOOPS.failures


@pytest.mark.parametrize("name", ["digamma", "erf", "erfinv", "zeta"])
def test_few_elements_are_compiled_after_many_calls(name, monkeypatch):
    """If NumPy needs many calls to compute a function, one element takes as long as a hundred elements."""
    if LOOPS.every_size:
        pytest.skip("everything is compiled")
    monkeypatch.setattr("adjoint.codegen.compiled_pointwise.CALLS", 3 * PIECEWISE_OPERATIONS[name])
    kernel = getattr(special, name).expression
    program = Program(kernel.function, kernel.refusal, kernel.kinds, kernel.contiguous)
    arrays = [numpy.array([0.25 + number, 0.5 + number]) for number in range(len(program.parameters.arrays), 0, -1)]
    arrays = [each - (name == "erfinv") for each in arrays]
    by_numpy = [program.run(arrays, ()) for _ in range(3)]
    assert not program.compiled._dtypes
    compiled = program.run(arrays, ())
    assert program.compiled._dtypes
    for each in by_numpy:
        numpy.testing.assert_allclose(compiled, each, rtol=1e-14)
    numpy.testing.assert_allclose(program.run([each.repeat(50) for each in arrays], ())[::50], compiled)


def test_many_threads_compile_one_kernel_once(at_every_size):
    kernel = activation.mish.expression
    program = Program(kernel.function, kernel.refusal, kernel.kinds, kernel.contiguous)
    x = numpy.linspace(-3, 3, 10000, dtype="f4")
    results = []
    threads = [threading.Thread(target=lambda: results.append(program.run((x,), ()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all((item == results[0]).all() for item in results)
    (variant,) = program.compiled._dtypes["f"][1]
    assert len(variant.functions) == 1


def test_the_text_of_a_kernel_shows_its_expression(at_every_size):
    x = numpy.linspace(-3, 3, 100, dtype="f4")
    both(activation.silu.expression, (x,))
    text = adjoint.backends.llvm.source("silu_float32")
    assert "exp(" in text
    assert "define" in text
    assert text in adjoint.backends.llvm.source("silu")
    with pytest.raises(LookupError, match="no kernel 'sil' has been compiled"):
        adjoint.backends.llvm.source("sil")


# --- random expressions -----------------------------------------------------------------------------------------------

UNARY = (
    "negative absolute exp expm1 log1p sqrt square reciprocal sin cos tan arctan tanh arcsinh erf floor rint log cbrt exp2 isnan"
).split()
BINARY = "add subtract multiply divide maximum minimum power arctan2 hypot less greater_equal equal fmax".split()


def random_expression(random, size):
    """Return a graph of `size` operations on two inputs, a parameter and constants."""
    graph = Graph()
    numbers = [graph.node(INPUT, (), NUMBER, name) for name in ("x", "y")]
    conditions = []
    scalars = [
        graph.node(PARAMETER, (), SCALAR, "alpha"),
        *(graph.node(CONSTANT, (), SCALAR, value) for value in (2, -0.5, 0)),
    ]

    def operand():
        return scalars[random.integers(4)] if random.random() < 0.2 else numbers[random.integers(len(numbers))]

    while len(numbers) < size + 2:
        choice = random.random()
        if choice < 0.15 and conditions:
            condition = conditions[random.integers(len(conditions))]
            numbers.append(graph.node("where", (condition, operand(), operand()), NUMBER))
        elif choice < 0.55:
            name = UNARY[random.integers(len(UNARY))]
            node = graph.node(name, (numbers[random.integers(len(numbers))],), BOOL if name == "isnan" else NUMBER)
            (conditions if node.kind == BOOL else numbers).append(node)
        else:
            name = BINARY[random.integers(len(BINARY))]
            first, second = numbers[random.integers(len(numbers))], operand()
            node = graph.node(name, (first, second), BOOL if name in ("less", "greater_equal", "equal") else NUMBER)
            (conditions if node.kind == BOOL else numbers).append(node)
    return Expression((numbers[-1],))


def evaluated(expression, arrays, alpha, rounding=0.0):
    """Return NumPy's value of an expression, with each step changed at random by up to `rounding` times its value."""
    import math

    random = numpy.random.default_rng(0)
    values = {}
    for node in expression.nodes():
        if node.operation == INPUT:
            values[node] = arrays[node.value]
        elif node.operation == PARAMETER:
            values[node] = numpy.float64(alpha)
        elif node.operation == CONSTANT:
            values[node] = numpy.float64(node.value)
        else:
            operands = [values[item] for item in node.operands]
            function = (
                numpy.vectorize(math.erf, otypes=[float]) if node.operation == "erf" else getattr(numpy, node.operation)
            )
            values[node] = function(*operands)
            if rounding and values[node].dtype == float:
                values[node] = values[node] * (1 + rounding * random.uniform(-1, 1, values[node].shape))
    return numpy.broadcast_to(values[expression.outputs[0]], arrays["x"].shape)


@pytest.mark.thorough
def test_random_expressions_agree_with_numpy_in_float64():
    count = int(os.environ.get("ADJOINT_RANDOM_EXPRESSIONS", "60"))
    random = numpy.random.default_rng(int(os.environ.get("ADJOINT_RANDOM_SEED", "0")))
    compared = 0
    for number in range(count):
        expression = random_expression(random, int(random.integers(1, 7)))
        x, y = random.standard_normal((2, 67)) * 2
        alpha = float(random.uniform(-2, 2))
        compiled = CompiledPointwise(f"random{number}", expression, ["x", "y"], ["alpha"])
        found = compiled.run((x, y), (alpha,), x.dtype, x.dtype)
        assert found is not NotImplemented, (LOOPS.failures, str(expression))
        expected = evaluated(expression, {"x": x, "y": y}, alpha)
        # Ignore elements that change if the inputs or the results of steps change in their last bits.
        moved = [
            evaluated(expression, {"x": x * (1 + a), "y": y * (1 + b)}, alpha * (1 + a), rounding)
            for a, b, rounding in (
                (1e-14, -2e-14, 0),
                (-3e-14, 1e-14, 0),
                (2e-14, 3e-14, 0),
                (0, 0, 1e-14),
                (0, 0, -1e-14),
            )
        ]
        steady = numpy.logical_and.reduce(
            [numpy.isclose(expected, other, rtol=1e-9, atol=1e-300, equal_nan=True) for other in moved]
        )
        numpy.testing.assert_allclose(
            found[steady], expected[steady], rtol=1e-8, atol=1e-300, err_msg=str(expression), equal_nan=True
        )
        compared += int(steady.sum())
    assert compared > 40 * count


def test_a_plan_is_followed_only_while_loops_are_enabled_and_for_numbers(monkeypatch):
    x = numpy.random.default_rng(5).standard_normal(1 << 17).astype("f4")
    threshold = activation.threshold.general
    assert numpy.array_equal(
        threshold(x, 0.1, -2.0), threshold(x, 0.1, -2.0)
    )  # the second call follows the plan of the first
    assert activation.threshold.expression.compiled.direct
    expected = numpy.where(x <= numpy.float32(0.3), numpy.float32(1), x)
    assert numpy.array_equal(threshold(x, 0.3, 1.0), expected)
    monkeypatch.setattr(LOOPS, "_enabled", False)
    assert numpy.array_equal(threshold(x, 0.3, 1.0), expected)


def test_plans_do_not_grow_without_end(at_every_size):
    add = LargeUfunc(numpy.add, False)
    for length in range(1, 2 * Plans.most):
        x = numpy.arange(length, dtype="f4")
        assert numpy.array_equal(add.direct(x, x), x + x)
    assert len(add.compiled.direct) <= Plans.most


def test_arrays_may_begin_anywhere(at_every_size):
    x = numpy.frombuffer(b"\0" + numpy.arange(999, dtype="f8").tobytes(), numpy.uint8)[1:].view("f8")
    assert not x.flags.aligned
    assert numpy.array_equal(LargeUfunc(numpy.add, False).direct(x, x), x + x)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_many_numbers_are_computed_as_few_are(dtype):
    generator = numpy.random.default_rng(7)
    x, y, z = (adjoint.tensor(generator.standard_normal((90, 100)) * 2).to(getattr(adjoint, dtype)) for _ in range(3))
    x[0, :4] = adjoint.tensor([numpy.nan, numpy.inf, -numpy.inf, -0.0])
    calls = {
        "clamp": lambda x, y, z: x.clamp(-0.5, 1),
        "clamp_min": lambda x, y, z: x.clamp_min(0.25),
        "clamp_max": lambda x, y, z: x.clamp_max(0.25),
        "crossed": lambda x, y, z: x.clamp(1, -1),
        "addcmul": lambda x, y, z: adjoint.addcmul(x, y, z, value=0.5),
        "addcdiv": lambda x, y, z: adjoint.addcdiv(x, y, z, value=-2),
        "lerp": lambda x, y, z: adjoint.lerp(x, y, 0.25),
        "lerp far": lambda x, y, z: adjoint.lerp(x, y, 0.75),
        "lerp by tensor": adjoint.lerp,
        **{f"power {number}": lambda x, y, z, number=number: x**number for number in (0, 1, 2, 3, -1, -2, 0.5, 1.7)},
    }
    tolerance = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-6, "float64": 1e-14}[dtype]
    for name, call in calls.items():
        large = call(x, y, z)
        rows = adjoint.stack([call(*few) for few in zip(x, y, z, strict=True)])
        assert large.dtype == rows.dtype == x.dtype
        numpy.testing.assert_allclose(
            large.double().numpy(), rows.double().numpy(), rtol=tolerance, atol=tolerance, err_msg=name
        )


@pytest.mark.parametrize("number", [0, 1, 2, 3, 2.5, -1])
@pytest.mark.long_cases
def test_gradients_of_powers_of_many_numbers(number):
    def gradients(x):
        x = x.clone().requires_grad_()
        (first,) = adjoint.autograd.grad((x**number).sum(), x, create_graph=True)
        if not first.requires_grad:
            return first, adjoint.zeros_like(first)
        return first.detach(), adjoint.autograd.grad((first * first).sum(), x)[0]

    x = adjoint.tensor(numpy.random.default_rng(3).random((90, 100)) + 0.5)
    rows = [gradients(row) for row in x]
    for order, large in enumerate(gradients(x)):
        numpy.testing.assert_allclose(large.numpy(), numpy.stack([row[order].numpy() for row in rows]), rtol=1e-12)


@pytest.mark.parametrize("shapes", [((600, 1), (600,)), ((40, 1, 8), (40, 8)), ((700,), (300, 700)), ((1,), (40000,))])
def test_small_arrays_that_are_broadcast_to_a_large_one_are_computed_by_loops(shapes):
    random = numpy.random.default_rng(4)
    x, y = (adjoint.tensor(random.standard_normal(shape).astype("f4")) for shape in shapes)
    with adjoint.autograd.profiler.profile() as prof:
        found = x * y
    numpy.testing.assert_array_equal(found.numpy(), x.numpy() * y.numpy())
    loops = [event.name for event in prof.function_events if event.name.startswith("compiled::")]
    assert bool(loops) == (found.numel() >= 1 << 15)


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(RuntimeError, match="size of tensor a"):
        adjoint.ones(400, 300) * adjoint.ones(300, 400)
