"""First and second derivatives of elementwise functions at 0, infinities, nan, large and tiny numbers."""

import math
import re

import pytest

torch = pytest.importorskip("torch")

from torch.testing._internal.common_methods_invocations import UnaryUfuncInfo, op_db

from tests.parity.candidate import candidate

INF, NAN = math.inf, math.nan
POINTS = [0.0, INF, NAN, 1.0, 0.5, 0.7, 2.0, 3.0, 6.0, 30.0, 700.0, 1e5, 1e200, 1e300, 1e-5, 1e-200, 1e-310]
POINTS += [-point for point in POINTS]

ACTIVATIONS = """
    gelu silu mish softplus elu selu celu hardswish hardsigmoid hardtanh relu6 leaky_relu logsigmoid softsign tanhshrink
    softshrink hardshrink relu
""".split()


def _called(path):
    def function(library, x):
        for name in path.split("."):
            library = getattr(library, name)
        return library(x)

    return function


FUNCTIONS = {
    op.name: _called(op.name)
    for op in op_db
    if isinstance(op, UnaryUfuncInfo)
    and op.supports_autograd
    and not hasattr(getattr(torch, op.name, None), "itemsize")
}
for left_out in (
    "fill",
    "frexp",
    "imag",
    "nn.functional.prelu",
    "nn.functional.threshold",
    "clamp",
    "mvlgamma",
    "polygamma",
    "special.polygamma",
):
    FUNCTIONS.pop(left_out, None)
FUNCTIONS |= {f"nn.functional.{name}": _called(f"nn.functional.{name}") for name in ACTIVATIONS} | {
    "gelu tanh": lambda library, x: library.nn.functional.gelu(x, approximate="tanh"),
    "logit eps": lambda library, x: library.logit(x, 1e-6),
    "clamp": lambda library, x: library.clamp(x, -1, 1),
    "threshold": lambda library, x: library.nn.functional.threshold(x, 0.5, 2.0),
    "polygamma 1": lambda library, x: library.polygamma(1, x),
    "polygamma 2": lambda library, x: library.polygamma(2, x),
}

# At these points, PyTorch's results are wrong or lose digits: the function, the orders, the points, and the reason.
WRONG = [
    ("acosh", (1, 2), lambda x: x <= -1, "the function is nan"),
    ("acosh", (1, 2), lambda x: x > 1e100, "a product overflows"),
    ("logit", (2,), lambda x: not 0 < x < 1 or x < 1e-100, "the function is nan, or a quotient of zeros"),
    ("logit eps", (2,), lambda x: abs(x) < 1e-100, "a quotient of zeros"),
    ("i0", (2,), math.isnan, "nan"),
    ("special.i1", (1, 2), lambda x: math.isnan(x) or abs(x) < 1e-4, "nan, and cancellation"),
    ("special.i1e", (1, 2), lambda x: math.isnan(x) or abs(x) < 1e-4 or abs(x) == 1e5, "nan, and cancellation"),
    ("special.i0e", (2,), lambda x: abs(x) == 1e5, "both libraries lose digits by cancellation"),
    ("special.i[01]e", (1, 2), lambda x: abs(x) > 1e100, "on some processors, values that cancel are rounded apart"),
    (
        "(nn.functional.)?(elu|celu|selu)",
        (1, 2),
        math.isnan,
        "nan has a derivative in small tensors only",
    ),
    ("nn.functional.gelu", (0, 1), lambda x: x == -30, "the function should be 0 here"),
    ("special.ndtr", (0,), lambda x: x == -30, "the function should be 0 here"),
    ("special.erfcx", (2,), lambda x: x >= 700, "both libraries lose digits by cancellation"),
    ("gelu tanh", (2,), lambda x: abs(x) == 6, "both libraries lose digits by cancellation"),
    ("nn.functional.hardsigmoid", (1,), lambda x: abs(x) < 3, "1 / 6 has single precision"),
    ("nn.functional.mish", (2,), lambda x: x > 1e4, "a product of infinity and 0"),
    ("sinc", (1, 2), lambda x: True, "quotients of small numbers, and sines of large numbers"),
    ("special.log_ndtr", (1, 2), lambda x: x < -500, "the function overflows, or loses digits by cancellation"),
]


def derivatives(library, function, point):
    """Return the value, and the first and the second derivative if they exist."""
    x = library.tensor([point], dtype=library.float64, requires_grad=True)
    found = [function(library, x)]
    for _ in range(2):
        if not found[-1].requires_grad:
            break
        try:
            grad = library.autograd.grad(found[-1].sum(), x, create_graph=True, materialize_grads=True)[0]
        except RuntimeError:  # the function has no second derivative
            break
        found.append(grad)
    return [each.item() for each in found]


def is_wrong(name, order, point):
    return any(re.fullmatch(pattern, name) and order in orders and at(point) for pattern, orders, at, _ in WRONG)


def is_same(actual, expected):
    if actual != actual or expected != expected:
        return actual != actual and expected != expected
    return actual == expected or abs(actual - expected) <= 1e-9 * abs(expected) + 1e-300


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_derivatives_agree(name):
    function, differences = FUNCTIONS[name], []
    for point in POINTS:
        actual, expected = (derivatives(library, function, point) for library in (candidate, torch))
        for order, (one, two) in enumerate(zip(actual, expected, strict=False)):
            if not is_same(one, two) and not is_wrong(name, order, point):
                differences.append(f"order {order} at {point}: {one}, expected {two}")
    assert not differences


# Limits that PyTorch does not compute, from series (NIST Digital Library of Mathematical Functions, chapters 7 and 10).
LIMITS = {
    "special.i1": {1e-5: (0.5, 3.75e-6), 1e-200: (0.5, 3.75e-201), -1e-200: (0.5, -3.75e-201)},
    "special.i1e": {1e-5: (0.49999000009374946, -0.99998125017499), 1e-200: (0.5, -1.0), -1e-200: (0.5, 1.0)},
    "special.log_ndtr": {
        1e5: (0.0, 0.0),
        30.0: (1.473646134789e-196, -4.420938404e-195),
        -30.0: (30.033259, -0.998893),
    },
    "sinc": {0.0: (0.0, -(math.pi**2) / 3), 1e-200: (-(math.pi**2) / 3 * 1e-200, -(math.pi**2) / 3)},
}


@pytest.mark.parametrize(("name", "point"), [(name, point) for name, points in LIMITS.items() for point in points])
def test_limits(name, point):
    _, *found = derivatives(candidate, FUNCTIONS[name], point)
    assert found == pytest.approx(LIMITS[name][point], rel=1e-5, abs=0)
