"""Elementwise instructions on large arrays become one loop, which gives the same bits as separate instructions."""

import random
import tracemalloc

import pytest

import adjoint as torch
from adjoint import inspect

from .comparison import assert_alike, reason_of

F = torch.nn.functional

OPERATIONS = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - 2 * y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / (y.abs() + 1),
    "square": lambda x, y: x**2,
    "number": lambda x, y: 0.5 * x + 1.25,
    "exp": lambda x, y: (-x.abs()).exp(),
    "sin": lambda x, y: x.sin(),
    "tanh": lambda x, y: x.tanh(),
    "sigmoid": lambda x, y: x.sigmoid() * y,
    "gelu": lambda x, y: F.gelu(x),
    "relu": lambda x, y: x.relu(),
    "clamp": lambda x, y: x.clamp(-1, 1) - y.clamp(min=0),
    "where": lambda x, y: torch.where(x > y, x, 0.0),
    "both": lambda x, y: torch.where((x > 0) & (y <= 1), x, y),
    "mask": lambda x, y: (x != y) * 1.0,
    "masked": lambda x, y: torch.where(~(x > 0) | (y > 1) ^ (x < y), y, 0.25),
    "cube": lambda x, y: x**3 - y.abs() ** 0.5,
    "power": lambda x, y: (x * 0.1).clamp(max=3.0) ** 4,
    "sign": lambda x, y: x.sign() + y.sgn(),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3) + torch.lerp(y, x, y.sigmoid()),
    "addcmul": lambda x, y: torch.addcmul(x, y, y, value=0.5),
    "addcdiv": lambda x, y: torch.addcdiv(x, y, y.abs() + 1, value=2),
    "row": lambda x, y: x + y[0],
    "column": lambda x, y: x * y[:, :1],
    "mean": lambda x, y: x - y.mean(),
    "view": lambda x, y: x.reshape(-1).reshape(x.shape) + 1,
    "transposed": lambda x, y: x.t().contiguous().t() + y,
    "part": lambda x, y: x[:, 1:].sum() + y,
    "changed": lambda x, y: (x + 1).mul_(y).add_(x),
    "half written": lambda x, y: written(x * 2, y),
}


def written(x, y):
    """Change one row of `x` through a view."""
    x[1] = y[0]
    return x


def computed(steps, values):
    """Run steps. Each step is a tuple: name, positions of operands, and whether to change the result in place afterwards."""
    values = list(values)
    for name, first, second in steps:
        values.append(OPERATIONS[name](values[first], values[second]))
    return values


def steps_of(seed):
    """Return random steps, and the positions of the values to return."""
    draw = random.Random(seed)
    steps = [
        (draw.choice([*OPERATIONS]), draw.randrange(max(0, count - 4), count), draw.randrange(count))
        for count in range(2, 2 + draw.randint(2, 9))
    ]
    return tuple(steps), tuple(sorted({draw.randrange(2, len(steps) + 2) for _ in range(2)} | {len(steps) + 1}))


SIZES = [(200, 300)] * 2 + [(210, 300)] + [(220, 300)] * 3
"""The sizes of calls. The third call is captured for any size, the fifth call makes a plan, and the last call runs the plan."""


def operands(dtype, size=(200, 300)):
    """Return two arrays."""
    torch.manual_seed(3)
    return torch.randn(*size, dtype=dtype), torch.randn(*size, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.thorough if seed > 1 else ()) for seed in range(60)]
)
def test_random_steps_have_the_same_bits(seed, dtype):
    steps, returned = steps_of(seed)

    def run(x, y):
        values = computed(steps, (x, y))
        return [values[position] for position in returned]

    compiled = torch.compile(run)
    for number, size in enumerate(SIZES):
        x, y = operands(dtype, size)
        x += number
        expected = run(x.clone(), y.clone())
        assert_same_bits(compiled(x, y), expected, steps)
    assert reason_of(compiled) is None


def assert_same_bits(found, expected, name):
    """Compare values, strides and the bits of NaN-free results."""
    for one, other in zip(found, expected, strict=True):
        assert one.stride() == other.stride() and one.dtype == other.dtype, name
        assert torch.equal(one.isnan(), other.isnan()) and torch.equal(one.nan_to_num(), other.nan_to_num()), name
        assert torch.equal(one.signbit() | one.isnan(), other.signbit() | other.isnan()), name


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.thorough if seed > 0 else ()) for seed in range(30)]
)
def test_random_steps_have_the_same_gradients(seed):
    steps, returned = steps_of(1000 + seed)

    def step(x, y):
        loss = sum((computed(steps, (x, y))[position].sum() for position in returned), (x * y).sum())
        return [each for each in torch.autograd.grad(loss, (x, y), allow_unused=True) if each is not None]

    compiled = torch.compile(step)
    for size in SIZES:
        x, y = (each.requires_grad_() for each in operands(torch.float64, size))
        assert_alike(compiled(x, y), step(x, y), str(steps))
    assert reason_of(compiled) is None


UNARY = """
    abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac i0 isfinite isinf
    isnan lgamma log log10 log1p log2 logit neg reciprocal round rsqrt sgn sigmoid sign sin sinc sinh sqrt square tan tanh trunc
""".split()
ACTIVATIONS = """
    celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 selu silu softplus softshrink
    softsign tanhshrink
""".split()
BINARY = """
    add atan2 copysign div eq floor_divide fmax fmin fmod ge gt hypot le logaddexp lt maximum minimum mul ne pow remainder
    sub xlogy
""".split()
FUNCTIONS = {
    **{name: lambda x, y, name=name: getattr(torch, name)(x) for name in UNARY},
    **{name: lambda x, y, name=name: getattr(F, name)(x) for name in ACTIVATIONS},
    **{name: lambda x, y, name=name: getattr(torch, name)(x, y) for name in BINARY},
    **{f"power {number}": lambda x, y, number=number: x**number for number in (3, -1, 0.5, -2, 1.5, 4, 0)},
    "add with alpha": lambda x, y: torch.add(x, y, alpha=0.3),
    "threshold": lambda x, y: F.threshold(x, 0.1, 2.0),
    "masked_fill": lambda x, y: x.masked_fill(x > y, 0.5),
    "from a number": lambda x, y: 1 - x / 2,
}


@pytest.mark.long_cases
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_the_same_bits(name, dtype):
    """The inputs include zeros of both signs, infinities and NaN."""
    x, y = operands(dtype)
    numbers = [0.0, -0.0, 1, -1, float("inf"), float("-inf"), float("nan"), 1e-30, 30]
    x.view(-1)[: len(numbers)] = torch.tensor(numbers, dtype=dtype)

    def run(x, y):
        found = FUNCTIONS[name](x * 2, y)
        return [torch.where(found, x, y) * 2 if found.dtype is torch.bool else found * 0.5 - y]

    compiled = torch.compile(run)
    for _ in range(2):
        assert_same_bits(compiled(x, y), run(x, y), name)


def loops_of(function, *args):
    """Return the loops in the program of a function, as text."""
    compiled = torch.compile(function)
    for _ in range(2):
        compiled(*args)
    return [line.split(": ", 1)[1] for line in str(inspect.compiled(compiled)).splitlines() if "one loop" in line]


def test_the_text_of_a_program_shows_its_loops():
    x, y = operands(torch.float32)
    (loop,) = loops_of(lambda x, y: ((x * 2 + y).sin() - 1).sum(), x, y)
    assert loop.startswith("%5 = fused[mul, add, sin, sub](%0, %1)")


def test_programs_for_any_size_have_loops_too():
    compiled = torch.compile(lambda x, y: ((x * 2 + y).sin() - 1).sum())
    for size in SIZES:
        compiled(*operands(torch.float32, size))
    (loop,) = [line for line in str(inspect.compiled(compiled)).splitlines() if "one loop" in line]
    assert "fused[mul, add, sin, sub]" in loop


def test_what_somebody_else_reads_is_a_result_too():
    x, y = operands(torch.float32)
    (loop,) = loops_of(lambda x, y: ((z := x * y).exp() + 1, z @ z.t()), x, y)
    assert loop.startswith("%2, %4 = fused[mul, exp, add](%0, %1)")


def test_a_change_separates_earlier_reads():
    x, y = operands(torch.float32)

    def run(x, y):
        x = x + 0
        before = x * 2
        x.add_(1)
        return before + y, x * y

    assert_same_bits(torch.compile(run)(x, y), run(x, y), "first")
    compiled = torch.compile(run)
    for _ in range(3):
        assert_same_bits(compiled(x, y), run(x, y), "later")


def test_a_loop_overwrites_values_without_further_use():
    x, y = operands(torch.float32, (1000, 1000))

    def run(x, y):
        return (((x @ y) * 2 + 1).tanh() * y).sum()

    compiled = torch.compile(run)
    for _ in range(2):
        compiled(x, y)
    tracemalloc.start()
    try:
        compiled(x, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * x.nbytes
