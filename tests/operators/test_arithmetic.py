"""Arithmetic of two operands: Python's rules, gradients, powers, remainders, dtypes, errors."""

import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import adjoint as torch

INF, NAN = math.inf, math.nan

integers = st.integers(-1000, 1000)
reals = st.floats(-100, 100).filter(lambda value: value == 0 or abs(value) > 1e-3)


def tensor(values, **options):
    return torch.tensor(values, dtype=torch.float64, **options)


def gradients(function, *points):
    """Return the gradient of the sum with respect to each argument."""
    arguments = [tensor(point, requires_grad=True) for point in points]
    return [grad.tolist() for grad in torch.autograd.grad(function(*arguments).sum(), arguments)]


def numeric_gradients(function, *points, step=1e-6):
    found = []
    for index in range(len(points)):
        moved = [
            function(*[tensor(p) + (sign * step if i == index else 0) for i, p in enumerate(points)]).numpy()
            for sign in (1, -1)
        ]
        found.append((moved[0] - moved[1]) / (2 * step))
    return found


@given(integers, integers.filter(bool))
def test_integers_divide_as_pythons_do(a, b):
    x, y = torch.tensor(a), torch.tensor(b)
    assert (x // y).item() == a // b
    assert (x % y).item() == a % b
    assert torch.fmod(x, y).item() == int(math.fmod(a, b))
    assert torch.div(x, y, rounding_mode="trunc").item() == int(a / b)
    assert (x // y * y + x % y).item() == a
    assert (a // y).item() == a // b
    assert (a % y).item() == a % b


@given(reals, reals.filter(bool))
def test_floats_divide_as_pythons_do(a, b):
    x, y = tensor(a), tensor(b)
    assert (x / y).item() == a / b
    assert (x // y).item() == a // b
    assert (x % y).item() == a % b
    assert torch.fmod(x, b).item() == math.fmod(a, b)
    assert (1 / y).item() == pytest.approx(1 / b)


@given(reals, reals)
def test_operators_with_numbers_on_either_side(a, b):
    x = tensor(a)
    assert (x + b).item() == (b + x).item() == a + b
    assert (x - b).item() == a - b
    assert (b - x).item() == b - a
    assert (x * b).item() == (b * x).item() == a * b


@given(st.integers(-9, 9), st.integers(0, 9))
def test_integer_powers(base, exponent):
    assert (torch.tensor(base) ** exponent).item() == base**exponent
    assert (torch.tensor(base) ** torch.tensor(exponent)).item() == base**exponent
    assert (base ** torch.tensor(exponent)).item() == base**exponent


@given(st.floats(0.1, 10), st.floats(-3, 3))
def test_real_powers(base, exponent):
    expected = pytest.approx(base**exponent)
    assert (tensor(base) ** exponent).item() == expected
    assert (tensor(base) ** tensor(exponent)).item() == expected
    assert (base ** tensor(exponent)).item() == expected
    assert torch.float_power(tensor(base), exponent).item() == expected


PAIRS = [[-2.3, -0.4, 0.7, 3.1], [1.1, -2.2, 0.3, 0.9]]
POSITIVE = [[0.3, 1.2, 2.5, 4.0], [1.1, -2.2, 0.3, 0.9]]


@pytest.mark.parametrize(
    ("name", "points"),
    [
        *[
            (name, PAIRS)
            for name in "add sub mul div rsub atan2 hypot copysign remainder fmod logaddexp logaddexp2".split()
        ],
        *[(name, POSITIVE) for name in ("pow", "float_power", "ldexp")],
        ("xlogy", PAIRS[::-1][:1] + POSITIVE[:1]),
        ("addcmul", [*PAIRS, POSITIVE[0]]),
        ("addcdiv", [*PAIRS, POSITIVE[0]]),
        ("lerp", [*PAIRS, POSITIVE[0]]),
    ],
)
def test_gradients(name, points):
    function = getattr(torch, name)
    expected = numeric_gradients(function, *points)
    for actual, wanted in zip(gradients(function, *points), expected, strict=True):
        assert actual == pytest.approx(wanted, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, -0.5, 1.7])
def test_gradients_of_powers(exponent):
    (grad,) = gradients(lambda x: x**exponent, POSITIVE[0])
    assert grad == pytest.approx([exponent * p ** (exponent - 1) for p in POSITIVE[0]])
    (grad,) = gradients(lambda x: 2.5**x, PAIRS[1])
    assert grad == pytest.approx([math.log(2.5) * 2.5**p for p in PAIRS[1]])


@pytest.mark.parametrize(
    ("function", "points", "expected"),
    [
        (lambda x: x**0, [[0.0]], [[0]]),
        (lambda x: x**1, [[0.0]], [[1]]),
        (lambda x: x**0.5, [[0.0]], [[INF]]),
        (torch.pow, [[0.0, 0.0, 2.0], [0.0, 2.0, 0.0]], [[0, 0, 0], [0, 0, math.log(2)]]),
        (lambda x: 0**x, [[0.0, 1.0]], [[0, 0]]),
        (torch.atan2, [[0.0], [0.0]], [[0], [0]]),
        (torch.copysign, [[0.0], [-1.0]], [[0], [0]]),
        (torch.xlogy, [[0.0], [2.0]], [[math.log(2)], [0]]),
    ],
)
def test_gradients_at_edge_points(function, points, expected):
    assert gradients(function, *points) == expected


def test_second_derivatives_of_powers():
    x = tensor([0.7, 1.3], requires_grad=True)
    for exponent in (3, 0.5, -1):
        (first,) = torch.autograd.grad((x**exponent).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        expected = exponent * (exponent - 1) * numpy.array([0.7, 1.3]) ** (exponent - 2)
        assert second.numpy() == pytest.approx(expected)


def test_nodes_of_overloads():
    x = torch.ones(2, requires_grad=True)
    names = {
        "PowBackward0": x**2,
        "PowBackward1": x**x,
        "PowBackward2": 2**x,
        "RsubBackward1": 1 - x,
        "RsubBackward0": torch.rsub(x, x),
        "RemainderBackward0": x % 2,
        "RemainderBackward1": x % x,
        "LerpBackward0": x.lerp(x, 0.5),
        "LerpBackward1": x.lerp(x, x),
        "DivBackward2": x.div(2, rounding_mode="floor"),
        "XlogyBackward2": torch.xlogy(x, 2),
        "torch::autograd::NotImplemented": x // 2,
    }
    assert {name: y.grad_fn.name() for name, y in names.items()} == {name: name for name in names}
    assert (x**2).grad_fn._saved_exponent == 2
    assert +x is x
    with pytest.raises(RuntimeError, match="derivative for aten::floor_divide is not implemented"):
        (x // 2).sum().backward()


def test_dtypes():
    i, f, b = torch.tensor([1, 2]), torch.tensor([0.5, 1.5]), torch.tensor([True, False])
    assert (i / i).dtype is torch.float32
    assert (i**2).dtype is torch.int64
    assert (i**2.0).dtype is torch.float32
    assert (b**2).dtype is torch.int64
    assert (f.half() + 1.0).dtype is torch.float16
    assert (i + torch.tensor(0.5, dtype=torch.float64)).dtype is torch.float64
    assert (f + torch.tensor(0.5, dtype=torch.float64)).dtype is torch.float32
    assert torch.float_power(i, 2).dtype is torch.float64
    assert (f**1j).dtype is torch.complex64
    assert torch.gcd(i, torch.tensor([4, 6])).tolist() == [1, 2]
    assert torch.lcm(i, torch.tensor([4, 6])).tolist() == [4, 6]


def test_broadcasting_in_place_and_out():
    x = torch.ones(2, 3)
    x += torch.tensor([1.0, 2.0, 3.0])
    x *= 2
    x -= 1
    x **= 2
    x /= 3
    x %= 5
    assert x[0].tolist() == pytest.approx([3, 25 / 3 % 5, 49 / 3 % 5])
    out = torch.empty(0)
    assert torch.addcmul(x, x, x, value=2, out=out) is out
    assert torch.allclose(out, x + 2 * x * x)
    with pytest.raises(RuntimeError, match=r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"):
        torch.ones(3).add_(x)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda i, f, b: i**-1, RuntimeError, "Integers to negative integer powers are not allowed."),
        (lambda i, f, b: i // 0, RuntimeError, "ZeroDivisionError"),
        (lambda i, f, b: i % 0, RuntimeError, "ZeroDivisionError"),
        (lambda i, f, b: b - b, RuntimeError, "Subtraction, the `-` operator, with two bool tensors"),
        (lambda i, f, b: 1 - b, RuntimeError, "Subtraction, the `-` operator, with a bool tensor"),
        (lambda i, f, b: i.add(i, alpha=1.5), RuntimeError, "For integral input tensors, argument alpha must not be"),
        (lambda i, f, b: f.add(f, alpha=True), RuntimeError, "Boolean alpha only supported for Boolean results."),
        (lambda i, f, b: f.div(f, rounding_mode="up"), RuntimeError, "div expected rounding_mode to be one of"),
        (lambda i, f, b: f.lerp(i, 0.5), RuntimeError, "expected dtype float for `end` but got dtype long int"),
        (lambda i, f, b: torch.addcdiv(f, i, i), RuntimeError, "Integer division with addcdiv is no longer supported"),
        (lambda i, f, b: torch.pow(2, 3), TypeError, r"pow\(\) received an invalid combination of arguments"),
        (lambda i, f, b: torch.hypot(f, 2), TypeError, r"hypot\(\): argument 'other' \(position 2\) must be Tensor"),
        (lambda i, f, b: torch.gcd(f, f), NotImplementedError, "\"gcd_cpu\" not implemented for 'Float'"),
        (lambda i, f, b: i.div_(2), RuntimeError, "result type Float can't be cast to the desired output type Long"),
        (lambda i, f, b: f + "a", TypeError, r"unsupported operand type\(s\) for \+: 'Tensor' and 'str'"),
        (lambda i, f, b: f ** "a", TypeError, r"unsupported operand type\(s\) for \*\*"),
        (
            lambda i, f, b: f + torch.ones(3),
            RuntimeError,
            r"The size of tensor a \(2\) must match the size of tensor b \(3\)",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(torch.tensor([1, 2]), torch.tensor([0.5, 1.5]), torch.tensor([True, False]))


def test_numpys_names_for_arguments():
    x = torch.tensor([4.0])
    assert torch.pow(x=x, exponent=2).item() == 16
    assert torch.mul(x=x, x2=x).item() == 16
    assert torch.remainder(x=x, x2=3).item() == 1


@pytest.mark.parametrize(
    "other", [torch.tensor([True, False, True]), torch.tensor([1, 2, 3]), torch.tensor(2, dtype=torch.int32)]
)
def test_a_node_saves_operands_of_another_dtype_as_they_were_given(other):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    other = other.clone()
    y = x * other
    assert y.dtype is torch.float32
    assert y.grad_fn._saved_other.dtype is other.dtype
    y.sum().backward()
    assert x.grad.dtype is torch.float32
    assert torch.equal(x.grad, other.float().expand(3))
    y = other * x
    other.fill_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda item: packed.append(item.dtype) or item, lambda item: item):
        x * other
    assert other.dtype in packed


def test_operands_of_mixed_dtypes_are_laid_out_and_refused_as_they_were_given():
    x, n = torch.ones(3, 4), torch.ones(4, 3, dtype=torch.int64).t()
    assert (x * n).stride() == (torch.ones(3, 4) * n.float()).stride()
    assert (n.t()[::2] * 0.5).dtype is torch.float32
    with pytest.raises(RuntimeError, match="size of tensor a"):
        x * torch.ones(5, dtype=torch.int64)
    for number, dtype in ((2, torch.int64), (2.5, torch.float32), (True, torch.bool)):
        assert (torch.tensor([True, False]) * number).dtype is dtype
    assert (torch.tensor([1, 2], dtype=torch.uint8) + 255).tolist() == [0, 1]
    assert (torch.tensor([1, 2], dtype=torch.int8) * 2.5).tolist() == [2.5, 5.0]
    assert (torch.tensor(7) / 2).tolist() == 3.5
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        assert (torch.tensor([1, 2]) * 0.5).dtype is torch.float64
        assert (torch.tensor([1, 2]) / torch.tensor([3, 4])).dtype is torch.float64
    finally:
        torch.set_default_dtype(before)
