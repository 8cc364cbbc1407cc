"""All kinds of indexing that NumPy and PyTorch support, with reads, writes, derivatives and views."""

import os
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("hypothesis")

import numpy
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.parity.candidate import candidate
from tests.parity.comparison import errors_differ, graphs_differ, results_differ
from tests.parity.conversion import from_array, to_array

pytestmark = pytest.mark.computed

_EXAMPLES = os.environ.get("ADJOINT_FUZZ_EXAMPLES")
EXAMPLES = settings(
    max_examples=int(_EXAMPLES or 150),
    derandomize=_EXAMPLES is None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

# Tuples (kind, value) describe indices. Each library's indices are built from these tuples.
Part = tuple[str, Any]


def build(module: Any, parts: tuple[Part, ...], bare: bool) -> Any:
    """Return the index for `module`. `bare` omits the tuple around a single part."""
    built = tuple(_build(module, kind, value) for kind, value in parts)
    return built[0] if bare and len(built) == 1 else built


def _build(module: Any, kind: str, value: Any) -> Any:
    match kind:
        case "tensor":
            return from_array(module, numpy.array(value))
        case "list":
            return value.tolist()
        case "zero-dim":
            return module.tensor(value)
        case "numpy scalar":
            return numpy.int64(value)
        case _:
            return value


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 0]), min_size=0, max_size=4)))


def _slices(size: int) -> st.SearchStrategy[Part]:
    bound = st.none() | st.integers(-size - 2, size + 2)
    step = st.sampled_from([None, None, 1, 1, 1, 2, 2, 3, 3, 1, 2, -1, 0])
    return st.builds(lambda a, b, c: ("slice", slice(a, b, c)), bound, bound, step)


@st.composite
def _integers(draw: st.DrawFn, size: int, broadcast: tuple[int, ...]) -> Part:
    beyond = draw(st.sampled_from([0, 0, 0, 0, 0, 1]))
    shape = draw(st.sampled_from([broadcast, broadcast, broadcast[-1:], (1,), (0,), (3, 1)]))
    low, high = -size - beyond, max(size - 1 + beyond, -size - beyond)
    count = int(numpy.prod(shape))
    values = draw(st.lists(st.integers(low, high), min_size=count, max_size=count))
    dtype = draw(st.sampled_from(["int64", "int64", "int32", "uint8", "int16"]))
    array = numpy.array(values, dtype="int64").reshape(shape)
    if dtype == "uint8":
        array = numpy.abs(array) if draw(st.booleans()) else array % 2
    return draw(st.sampled_from(["tensor", "list", "tensor", "numpy"])), array.astype(dtype)


@st.composite
def _masks(draw: st.DrawFn, sizes: tuple[int, ...]) -> Part:
    wrong = draw(st.sampled_from([0, 0, 0, 0, 0, 0, 1]))
    shape = tuple(size + wrong for size in sizes)
    count = int(numpy.prod(shape))
    array = numpy.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), dtype=bool).reshape(shape)
    kind = draw(st.sampled_from(["tensor", "tensor", "list", "numpy", "byte"]))
    return ("tensor", array.astype("uint8")) if kind == "byte" else (kind, array)


@st.composite
def indices(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Part, ...]:
    """Draw parts for the dimensions of `shape` from left to right, with None, Ellipsis and bool in between."""
    parts: list[Part] = []
    broadcast = draw(st.sampled_from([(2,), (3,), (2, 3), (1,), ()]))
    dim, ellipsis = 0, draw(st.booleans())
    while dim < len(shape) and len(parts) < 6:
        size = shape[dim]
        kind = draw(
            st.sampled_from(
                [
                    "int",
                    "slice",
                    "slice",
                    "none",
                    "bool",
                    "zero-dim",
                    "ints",
                    "ints",
                    "mask",
                    "ellipsis",
                    "range",
                    "stop",
                ]
            )
        )
        if kind == "int":
            parts.append((draw(st.sampled_from(["int", "int", "numpy scalar"])), draw(st.integers(-size - 1, size))))
        elif kind == "slice":
            parts.append(draw(_slices(size)))
        elif kind == "none":
            parts.append(("none", None))
            continue
        elif kind == "bool":
            parts.append((draw(st.sampled_from(["bool", "zero-dim"])), draw(st.booleans())))
            continue
        elif kind == "zero-dim":
            parts.append(("zero-dim", draw(st.integers(-size - 1, size))))
        elif kind == "ints":
            parts.append(draw(_integers(size, broadcast)))
        elif kind == "mask":
            dims = draw(st.integers(1, min(2, len(shape) - dim)))
            parts.append(draw(_masks(shape[dim : dim + dims])))
            dim += dims
            continue
        elif kind == "range":
            parts.append(("range", range(draw(st.integers(0, max(size, 1))))))
        elif kind == "ellipsis":
            if not ellipsis:
                continue
            ellipsis = False
            parts.append(("ellipsis", Ellipsis))
            dim += draw(st.integers(0, len(shape) - dim))
            continue
        else:
            break
        dim += 1
    if draw(st.sampled_from([False] * 15 + [True])):
        parts.append(("int", 0))
    return tuple(parts) or (("ellipsis", Ellipsis),)


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[Part, ...], bool]:
    shape = draw(shapes())
    return shape, draw(indices(shape)), draw(st.booleans())


def _leaf(module: Any, shape: tuple[int, ...]) -> Any:
    values = numpy.arange(1.0, 1 + numpy.prod(shape), dtype="float64").reshape(shape)
    return from_array(module, values).requires_grad_()


def _wave(shape: tuple[int, ...]) -> numpy.ndarray:
    return numpy.cos(numpy.arange(float(numpy.prod(shape)))).reshape(shape)


def _attempt(run: Any, module: Any) -> tuple[Any, Exception | None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return run(module), None
    except Exception as error:  # all exceptions are compared
        return None, error


def _agree(run: Any, case: Any) -> tuple[Any, Any] | None:
    """Run a function with both libraries. Return both results, or None if both raise the same type of exception."""
    actual, error = _attempt(run, candidate)
    expected, expected_error = _attempt(run, torch)
    if expected_error is not None:
        difference = errors_differ(error, expected_error)
        assert difference is None, f"{case}: {difference}"
        return None
    assert error is None, f"{case}: raised {type(error).__name__}: {error}"
    difference = results_differ(actual, expected)
    assert difference is None, f"{case}: {difference}"
    return actual, expected


@EXAMPLES
@given(cases())
def test_reading(case: tuple[tuple[int, ...], tuple[Part, ...], bool]) -> None:
    shape, parts, bare = case

    def read(module: Any) -> list[Any]:
        x = _leaf(module, shape)
        y = x[build(module, parts, bare)]
        cotangent = from_array(module, _wave(tuple(y.shape)))
        return [x, y, *module.autograd.grad(y, x, cotangent)]

    both = _agree(read, case)
    if both is not None:
        (x, y, _), (expected_x, expected_y, _) = both
        assert y._is_view() == expected_y._is_view(), case
        if expected_y._is_view() and expected_y.numel():
            assert tuple(y.stride()) == tuple(expected_y.stride()), case
            shared = numpy.may_share_memory(to_array(x), to_array(y))
            assert shared == numpy.may_share_memory(to_array(expected_x), to_array(expected_y)), case
        assert graphs_differ(y, expected_y) is None, f"{case}: {graphs_differ(y, expected_y)}"


@EXAMPLES
@given(cases(), st.sampled_from(["number", "zero-dim", "tensor", "row", "float32"]))
def test_writing(case: tuple[tuple[int, ...], tuple[Part, ...], bool], kind: str) -> None:
    shape, parts, bare = case

    def write(module: Any) -> list[Any]:
        leaf = _leaf(module, shape)
        x = leaf * 1
        index = build(module, parts, bare)
        target = tuple(x.detach()[index].shape)
        value = _value(module, kind, target)
        x[index] = value
        wanted = [leaf, value] if kind == "tensor" else [leaf]
        cotangent = from_array(module, _wave(shape))
        return [x, x._version, *module.autograd.grad(x, wanted, cotangent)]

    both = _agree(write, (case, kind))
    if both is not None:
        difference = graphs_differ(both[0][0], both[1][0])
        assert difference is None, f"{case}: {difference}"


def _value(module: Any, kind: str, shape: tuple[int, ...]) -> Any:
    if kind == "number":
        return -7
    if kind == "zero-dim":
        return module.tensor(-7.5)
    if kind == "row":
        shape = shape[-1:]
    values = numpy.arange(-numpy.prod(shape), 0.0, dtype="float32" if kind == "float32" else "float64")
    tensor = from_array(module, values.reshape(shape))
    return tensor.requires_grad_() if kind == "tensor" else tensor


@pytest.mark.thorough
@EXAMPLES
@given(
    cases(), st.sampled_from(["transpose", "slice", "flatten", "row", "expand"]), st.sampled_from(["=", "+=", "mul_"])
)
def test_writing_through_a_view(case: tuple[tuple[int, ...], tuple[Part, ...], bool], view: str, how: str) -> None:
    shape, parts, bare = case

    def write(module: Any) -> list[Any]:
        leaf, base = _viewed(module, view, shape)
        base = base * 1
        x = _take_view(base, view)
        index = build(module, parts, bare)
        if how == "=":
            x[index] = 3.0
        elif how == "+=":
            x[index] += 3.0
        else:
            x[index].mul_(3.0)
        cotangent = from_array(module, _wave(tuple(base.shape)))
        return [base, x, base._version, x._version, *module.autograd.grad(base, [leaf], cotangent)]

    _agree(write, (case, view, how))


def _viewed(module: Any, view: str, shape: tuple[int, ...]) -> tuple[Any, Any]:
    if view == "transpose":
        shape = shape[::-1]
    elif view == "slice":
        shape = tuple(2 * size for size in shape)
    elif view == "row":
        shape = (2, *shape)
    elif view == "flatten":
        shape = (1, *shape)
    leaf = _leaf(module, shape)
    return leaf, leaf


def _take_view(base: Any, view: str) -> Any:
    if view == "transpose":
        return base.permute(tuple(range(base.dim()))[::-1])
    if view == "slice":
        return base[tuple(slice(None, None, 2) for _ in base.shape)]
    if view == "row":
        return base[1]
    if view == "flatten":
        return base.squeeze(0)
    return base.expand(tuple(base.shape))


@pytest.mark.thorough
@EXAMPLES
@given(cases(), st.sampled_from(["index_put_", "accumulate"]))
def test_index_put(case: tuple[tuple[int, ...], tuple[Part, ...], bool], how: str) -> None:
    shape, parts, _ = case
    assume(any(kind in ("tensor", "zero-dim") for kind, _ in parts))

    def write(module: Any) -> list[Any]:
        leaf = _leaf(module, shape)
        x = leaf * 1
        index = tuple(
            part for part in build(module, parts, False) if hasattr(part, "dtype") and hasattr(part, "grad_fn")
        )
        target = tuple(x.detach()[index].shape)
        value = _value(module, "tensor", target)
        x.index_put_(index, value, accumulate=how == "accumulate")
        cotangent = from_array(module, _wave(shape))
        return [x, *module.autograd.grad(x, [leaf, value], cotangent)]

    _agree(write, (case, how))


@pytest.mark.thorough
@EXAMPLES
@given(cases())
def test_second_derivative(case: tuple[tuple[int, ...], tuple[Part, ...], bool]) -> None:
    shape, parts, bare = case

    def run(module: Any) -> Any:
        x = _leaf(module, shape)
        y = (x * x)[build(module, parts, bare)]
        (first,) = module.autograd.grad((y * y).sum(), x, create_graph=True)
        return module.autograd.grad(first.sum(), x)

    _agree(run, case)


@pytest.mark.thorough
@EXAMPLES
@given(cases(), st.sampled_from(["int64", "bool", "complex128", "bfloat16", "float16"]))
def test_other_dtypes(case: tuple[tuple[int, ...], tuple[Part, ...], bool], dtype: str) -> None:
    shape, parts, bare = case

    def run(module: Any) -> list[Any]:
        x = _leaf(module, shape).detach().to(getattr(module, dtype))
        index = build(module, parts, bare)
        read = x[index].clone()
        x[index] = 1
        return [read, x]

    _agree(run, (case, dtype))
