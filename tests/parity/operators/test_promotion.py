"""The dtype of every result: all operators for all pairs of dtypes, dimensions and Python numbers."""

import itertools
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.parity.candidate import candidate, lookup
from tests.parity.comparison import dtype_name, tensors_in

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")

DTYPES = """
    bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128 complex32 float8_e4m3fn
""".split()

BINARY = """
    add sub mul div true_divide floor_divide remainder fmod pow float_power atan2 maximum minimum fmax fmin eq ne lt
    le gt ge bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift logical_and logical_or
    logical_xor hypot logaddexp logaddexp2 copysign xlogy heaviside rsub ldexp gcd lcm nextafter matmul dot outer
    isclose
""".split()

UNARY = """
    abs neg positive sign sgn exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos tan asin acos
    atan sinh cosh tanh asinh acosh atanh sigmoid erf erfc erfinv lgamma digamma ceil floor round trunc frac isnan
    isinf isfinite isreal signbit angle real conj logical_not bitwise_not nan_to_num deg2rad rad2deg sinc logit relu
    softmax_ sum mean prod std var norm amax amin max min argmax argmin all any cumsum_ cumprod_ logsumexp_ median
    sort_ topk_ unique count_nonzero nansum nanmean clone view_as_real clamp_ zeros_like ones_like tril_ nonzero
    trace_ rand_like randn_like flip_ mode kthvalue_ cummax_ aminmax isposinf argsort sgn nn.functional.relu
    nn.functional.gelu nn.functional.silu nn.functional.softplus nn.functional.elu nn.functional.leaky_relu
    nn.functional.one_hot nn.functional.hardtanh nn.functional.relu6 nn.functional.softsign nn.functional.logsigmoid
    nn.functional.hardsigmoid nn.functional.tanhshrink
""".split()

# Functions that need arguments besides the tensor.
_MORE: dict[str, tuple[Any, ...]] = {
    "softmax_": (0,),
    "cumsum_": (0,),
    "cumprod_": (0,),
    "logsumexp_": (0,),
    "sort_": (),
    "topk_": (1,),
    "clamp_": (0, 1),
    "flip_": (0,),
    "kthvalue_": (1,),
    "cummax_": (0,),
}
_SQUARE = ("tril_", "trace_")
# For these special cases (the first power, a power of 2, bounds, the norm of one number), PyTorch computes with narrow dtypes, or
# checks arguments in another order.
_BY_CHANCE = re.compile(
    r"(ldexp|pow|clamp|norm|nansum|lerp)\b.*(complex32|float8)|masked_fill .*float8|(complex32|float8).*(\*\* True|\.pow_)"
)
_SCALARS = (True, 3, 2.5, 0.1, 1 + 2j)  # no half type can represent 0.1


def outcome(run: Callable[[], Any]) -> str:
    """Return the dtypes of the results of a call, or the type of its exception."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = run()
    except Exception as error:  # all exceptions are compared
        return type(error).__name__
    tensors = list(tensors_in(result))
    return " ".join(dtype_name(tensor.dtype) for tensor in tensors) if tensors else type(result).__name__


def tensor(module: Any, dtype: str, dims: int) -> Any:
    return module.ones((2,) * dims, dtype=getattr(module, dtype))


def disagreements(calls: list[tuple[str, Callable[[Any], Any]]]) -> list[str]:
    """Return the differences of the two libraries. A call for which PyTorch has no kernel may succeed in adjoint."""
    found = []
    for words, run in calls:
        one, two = outcome(lambda run=run: run(candidate)), outcome(lambda run=run: run(torch))
        lacking = two == "NotImplementedError" and not one.endswith("Error")
        lacking = lacking or (one, two) == (
            "NotImplementedError",
            "RuntimeError",
        )  # `NotImplementedError` is a `RuntimeError`
        if one != two and not lacking:
            found.append(f"{words}: {one}, expected {two}")
    return [words for words in found if not (_BY_CHANCE.search(words) and "Error" in words)]


def report(found: list[str], total: int) -> str:
    return f"{len(found)} of {total} differ:\n" + "\n".join(found[:40])


TURNS = pytest.mark.parametrize(
    "turn", [pytest.param(turn, marks=pytest.mark.thorough) if turn else 0 for turn in range(4)]
)
"""Which dimensions go with which dtypes: in a turn all of both, in four all pairs."""


@TURNS
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.long_cases
def test_binary(name: str, turn: int) -> None:
    calls: list[tuple[str, Callable[[Any], Any]]] = []
    for (i, one), (j, two) in itertools.product(enumerate(DTYPES), repeat=2):
        dims = ((1, 1), (1, 0), (0, 1), (0, 0))[(i + j + turn) % 4]
        words = f"{name}({one} of {dims[0]} dims, {two} of {dims[1]} dims)"
        calls.append((words, lambda m, a=one, b=two, d=dims: lookup(m, name)(tensor(m, a, d[0]), tensor(m, b, d[1]))))
    found = disagreements(calls)
    assert not found, report(found, len(calls))


@TURNS
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.long_cases
def test_binary_with_python_numbers(name: str, turn: int) -> None:
    calls: list[tuple[str, Callable[[Any], Any]]] = []
    for (i, one), (j, number) in itertools.product(enumerate(DTYPES), enumerate(_SCALARS)):
        reflected, dims = divmod((i + j + turn) % 4, 2)
        words = f"{name}({one} of {dims} dims, {number!r})"
        if reflected:
            calls.append((f"{words} reflected", lambda m, a=one, b=number, d=dims: lookup(m, name)(b, tensor(m, a, d))))
        else:
            calls.append((words, lambda m, a=one, b=number, d=dims: lookup(m, name)(tensor(m, a, d), b)))
    found = disagreements(calls)
    assert not found, report(found, len(calls))


@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "==", "<", ">=", "@"])
@pytest.mark.long_cases
def test_operator_signs(sign: str) -> None:
    code = compile(f"a {sign} b", "<sign>", "eval")
    calls: list[tuple[str, Callable[[Any], Any]]] = []
    for one, number, dims in itertools.product(DTYPES, _SCALARS, (0, 1)):
        words = f"{one} of {dims} dims {sign} {number!r}"
        calls.append((words, lambda m, a=one, b=number, d=dims: eval(code, {"a": tensor(m, a, d), "b": b})))
        calls.append(
            (f"{words} reflected", lambda m, a=one, b=number, d=dims: eval(code, {"b": tensor(m, a, d), "a": b}))
        )
    for one, two, dims in itertools.product(DTYPES, DTYPES, ((1, 1), (1, 0))):
        words = f"{one} of {dims[0]} dims {sign} {two} of {dims[1]} dims"
        both = lambda m, a=one, b=two, d=dims: {"a": tensor(m, a, d[0]), "b": tensor(m, b, d[1])}
        calls.append((words, lambda m, both=both: eval(code, both(m))))
    found = disagreements(calls)
    assert not found, report(found, len(calls))


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "div", "floor_divide", "pow", "remainder", "bitwise_and", "eq", "copy"]
)
@pytest.mark.long_cases
def test_in_place(name: str) -> None:
    calls: list[tuple[str, Callable[[Any], Any]]] = []
    for one, two, dims in itertools.product(DTYPES, DTYPES, ((1, 1), (1, 0), (0, 0))):
        words = f"{one} of {dims[0]} dims .{name}_({two} of {dims[1]} dims)"
        calls.append(
            (words, lambda m, a=one, b=two, d=dims: getattr(tensor(m, a, d[0]), f"{name}_")(tensor(m, b, d[1])))
        )
    for one, number in itertools.product(DTYPES, _SCALARS) if name != "copy" else ():
        words = f"{one}.{name}_({number!r})"
        calls.append((words, lambda m, a=one, b=number: getattr(tensor(m, a, 1), f"{name}_")(b)))
    found = disagreements(calls)
    assert not found, report(found, len(calls))


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    more = _MORE.get(name, ())
    plain = name.removesuffix("_") if name in _MORE or name in _SQUARE else name
    dims = 2 if name in _SQUARE else 1
    if plain == "view_as_real":
        dims = 2
    calls: list[tuple[str, Callable[[Any], Any]]] = [
        (f"{plain}({dtype} of {d} dims)", lambda m, a=dtype, d=d: lookup(m, plain)(tensor(m, a, d), *more))
        for dtype in DTYPES
        for d in {dims, 0 if dims == 1 else dims}
    ]
    found = disagreements(calls)
    assert not found, report(found, len(calls))


@pytest.mark.parametrize(
    "name", ["sum", "mean", "prod", "cumsum", "cumprod", "softmax", "log_softmax", "norm", "nansum", "to"]
)
def test_dtype_argument(name: str) -> None:
    first = {"to": ()}.get(name, ("fro",) if name == "norm" else (0,))
    calls: list[tuple[str, Callable[[Any], Any]]] = []
    for one, two in itertools.product(DTYPES, repeat=2):
        run = lambda m, a=one, b=two: getattr(tensor(m, a, 1), name)(*first, dtype=getattr(m, b))
        calls.append((f"{name}({one}, dtype={two})", run))
    found = disagreements(calls)
    assert not found, report(found, len(calls))


@pytest.mark.thorough
def test_where_cat_stack_lerp() -> None:
    calls: list[tuple[str, Callable[[Any], Any]]] = []
    for one, two, dims in itertools.product(DTYPES, DTYPES, ((1, 1), (1, 0), (0, 0))):
        both = lambda m, a=one, b=two, d=dims: (tensor(m, a, d[0]), tensor(m, b, d[1]))
        words = f"{one} of {dims[0]} dims, {two} of {dims[1]} dims"
        calls.append((f"where {words}", lambda m, both=both: m.where(m.ones(2) > 0, *both(m))))
        calls.append(
            (f"stack {words}", lambda m, both=both: m.stack([t.reshape(()) if t.dim() == 0 else t[0] for t in both(m)]))
        )
        calls.append((f"cat {words}", lambda m, both=both: m.cat([t.reshape(-1) for t in both(m)])))
        calls.append((f"lerp {words}", lambda m, both=both: m.lerp(*both(m), 0.5)))
        calls.append((f"addcmul {words}", lambda m, both=both: m.addcmul(both(m)[0], *both(m))))
        calls.append((f"clamp {words}", lambda m, both=both: m.clamp(both(m)[0], both(m)[1])))
        calls.append((f"masked_fill {words}", lambda m, both=both: both(m)[0].masked_fill(m.tensor(True), both(m)[1])))
        calls.append((f"mse_loss {words}", lambda m, both=both: m.nn.functional.mse_loss(*both(m))))
    for one, number in itertools.product(DTYPES, _SCALARS):
        calls.append((f"where {one} {number!r}", lambda m, a=one, b=number: m.where(m.ones(2) > 0, tensor(m, a, 1), b)))
        calls.append((f"where {number!r} {one}", lambda m, a=one, b=number: m.where(m.ones(2) > 0, b, tensor(m, a, 1))))
        calls.append((f"clamp {one} {number!r}", lambda m, a=one, b=number: tensor(m, a, 1).clamp(b)))
        calls.append(
            (f"masked_fill {one} {number!r}", lambda m, a=one, b=number: tensor(m, a, 1).masked_fill(m.tensor(True), b))
        )
        calls.append((f"full {one} {number!r}", lambda m, a=one, b=number: m.full((2,), b, dtype=getattr(m, a))))
        calls.append((f"fill {one} {number!r}", lambda m, a=one, b=number: tensor(m, a, 1).fill_(b)))
        calls.append((f"add alpha {one} {number!r}", lambda m, a=one, b=number: m.add(tensor(m, a, 1), 1, alpha=b)))
        calls.append((f"lerp {one} {number!r}", lambda m, a=one, b=number: m.lerp(tensor(m, a, 1), tensor(m, a, 1), b)))
    for one, two in itertools.product(_SCALARS, repeat=2):
        calls.append((f"where {one!r} {two!r}", lambda m, a=one, b=two: m.where(m.ones(2) > 0, a, b)))
    found = disagreements(calls)
    assert not found, report(found, len(calls))


def rule_outcome(rule: Any, *arguments: Any) -> str:
    try:
        return str(rule(*arguments))
    except RuntimeError as error:
        return str(error)


def test_promotion_and_casting_rules() -> None:
    found = []
    for one, two in itertools.product(DTYPES, repeat=2):
        for rule in ("promote_types", "can_cast"):
            results = [rule_outcome(getattr(m, rule), getattr(m, one), getattr(m, two)) for m in (candidate, torch)]
            if results[0] != results[1]:
                found.append(f"{rule}({one}, {two}): {results[0]}, expected {results[1]}")
        for dims in itertools.product((0, 1), repeat=2):
            results = [
                rule_outcome(m.result_type, tensor(m, one, dims[0]), tensor(m, two, dims[1]))
                for m in (candidate, torch)
            ]
            if results[0] != results[1]:
                found.append(
                    f"result_type({one} of {dims[0]} dims, {two} of {dims[1]}): {results[0]}, expected {results[1]}"
                )
    for one, number, dims in itertools.product(DTYPES, _SCALARS, (0, 1)):
        results = [rule_outcome(m.result_type, tensor(m, one, dims), number) for m in (candidate, torch)]
        if results[0] != results[1]:
            found.append(f"result_type({one} of {dims} dims, {number!r}): {results[0]}, expected {results[1]}")
    for one, two in itertools.product(_SCALARS, repeat=2):
        results = [str(m.result_type(one, two)) for m in (candidate, torch)]
        if results[0] != results[1]:
            found.append(f"result_type({one!r}, {two!r}): {results[0]}, expected {results[1]}")
    assert not found, report(found, 0)


@pytest.mark.parametrize("default", ["float64", "float16", "bfloat16"])
def test_another_default_dtype(default: str) -> None:
    def run(make: Callable[[Any], Any], module: Any) -> str:
        before = module.get_default_dtype()
        module.set_default_dtype(getattr(module, default))
        try:
            return outcome(lambda: make(module))
        finally:
            module.set_default_dtype(before)

    makers: dict[str, Callable[[Any], Any]] = {
        "tensor(1.0)": lambda m: m.tensor(1.0),
        "tensor(1j)": lambda m: m.tensor(1j),
        "tensor(1)": lambda m: m.tensor(1),
        "zeros": lambda m: m.zeros(2),
        "arange": lambda m: m.arange(0, 1, 0.5),
        "linspace": lambda m: m.linspace(0, 1, 3),
        "int / int": lambda m: m.tensor(1) / m.tensor(2),
        "int * 1.5": lambda m: m.tensor(1) * 1.5,
        "float32 * 1.5": lambda m: m.ones(2, dtype=m.float32) * 1.5,
        "sqrt of int": lambda m: m.tensor(4).sqrt(),
        "mean of int": lambda m: m.tensor([1, 2]).sum() / 2,
        "rand": lambda m: m.rand(2),
        "full": lambda m: m.full((2,), 1.5),
        "Tensor": lambda m: m.Tensor(2),
        "where": lambda m: m.where(m.tensor(True), 1.5, 2),
        "complex": lambda m: m.tensor(1) * 1j,
        "eye": lambda m: m.eye(2),
    }
    found = []
    for name, make in makers.items():
        one, two = run(make, candidate), run(make, torch)
        if one != two:
            found.append(f"{name}: {one}, expected {two}")
    assert not found, "\n".join(found)


OF_HALVES = {
    "x * c": lambda _, x, c: x * c,
    "c * x": lambda _, x, c: c * x,
    "x / c": lambda _, x, c: x / c,
    "c / x": lambda _, x, c: c / x,
    "x // c": lambda _, x, c: x // c,
    "div, trunc": lambda torch, x, c: torch.div(x, c, rounding_mode="trunc"),
    "x + c": lambda _, x, c: x + c,
    "c - x": lambda _, x, c: c - x,
    "x % c": lambda _, x, c: x % c,
    "x ** c": lambda _, x, c: x**c,
    "x > c": lambda _, x, c: x > c,
    "mul_": lambda _, x, c: x.clone().mul_(c),
    "div_": lambda _, x, c: x.clone().div_(c),
    "add_": lambda _, x, c: x.clone().add_(c),
    "times a tensor without dimensions": lambda torch, x, c: x * torch.tensor(c),
    "divided by a tensor without dimensions": lambda torch, x, c: x / torch.tensor(c, dtype=torch.float64),
    "plus a tensor without dimensions": lambda torch, x, c: x + torch.tensor(c),
    "lerp": lambda torch, x, c: torch.lerp(x, x * 2, c),
    "_foreach_mul": lambda torch, x, c: torch._foreach_mul([x], c)[0],
}


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("size", [600, 40000])
@pytest.mark.parametrize("case", OF_HALVES)
def test_numbers_with_half_types_to_the_last_bit(case: str, size: int, kind: str) -> None:
    """Summands and exponents are rounded to the half type, but not factors and divisors."""
    results = []
    for library in (torch, candidate):
        x = (library.arange(size, dtype=library.float32) % 599 / 7).to(getattr(library, kind))
        results.append(OF_HALVES[case](library, x, 2.3).float().nan_to_num(-1.0).tolist())
    assert results[0] == results[1]
