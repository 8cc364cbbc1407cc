"""Compiled sorting and selection agree with a stable sort in which a NaN is greater than every number."""

import itertools
import math

import ml_dtypes
import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

from adjoint.codegen.llvm.host import HOST
from adjoint.kernels.compiled.index import searching
from adjoint.kernels.compiled.reduce import selection, sorting

BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)
DTYPES = ["?", "u1", "i1", "i2", "i4", "u4", "i8", "u8", "f2", BFLOAT16, "f4", "f8"]
SHAPES = [(5, 7), (4, 32), (3, 64), (3, 65), (2, 97), (2, 224), (20, 225), (2, 3, 600), (1, 20_000), (300, 1)]


def sample(shape, dtype, seed=0):
    x = numpy.random.default_rng(seed).standard_normal(shape) * 50
    with numpy.errstate(invalid="ignore"):
        x = x.astype(dtype)
    if x.dtype.kind in "fV":
        x.reshape(-1)[::11] = math.nan
        x.reshape(-1)[1::37] = math.inf
        x.reshape(-1)[3::7] = -0.0
        x.reshape(-1)[4::7] = 0.0
    return x


def order(x, descending=False):
    wide = x if x.dtype.kind in "iub" else x.astype("f8")
    if descending:
        return x.shape[-1] - 1 - wide[..., ::-1].argsort(-1, kind="stable")[..., ::-1]
    return wide.argsort(-1, kind="stable")


def check(found, x, expected):
    values, places = found
    assert places.dtype == numpy.int64
    numpy.testing.assert_array_equal(places, expected)
    taken = numpy.take_along_axis(x, expected, -1)
    assert values.dtype == x.dtype
    assert values.tobytes() == taken.tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("descending", [False, True])
def test_sort(dtype, descending):
    for shape in SHAPES:
        x = sample(shape, dtype)
        check(sorting.sort(x, descending).run(x), x, order(x, descending))


@pytest.mark.parametrize("width", [64, 32, 16])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.long_cases
def test_narrow_registers(width, dtype, monkeypatch):
    if width > HOST.vector_bytes:
        pytest.skip("this processor has no such registers")
    monkeypatch.setattr(HOST, "vector_bytes", width)
    for shape in SHAPES:
        x = sample(shape, dtype)
        check(sorting.sort(x, False).run(x), x, order(x))
        k = -(-shape[-1] // 9)
        check(selection.first(x, k, True).run(x), x, order(x, True)[..., :k])
        numpy.testing.assert_array_equal(selection.place_in_order(x, k - 1).run(x)[1], order(x)[..., k - 1 : k])


def test_ranges_of_integers():
    generator = numpy.random.default_rng(1)
    limits = numpy.iinfo(numpy.int64)
    for low, high in [(0, 2), (-5, 5), (limits.min, limits.max), (limits.max - 300, limits.max), (7, 8)]:
        x = generator.integers(low, high, (3, 1000))
        check(sorting.sort(x, False).run(x), x, order(x))
    rising = numpy.arange(5000.0)
    for x in (rising, rising[::-1].copy(), numpy.full(5000, math.nan)):
        check(sorting.sort(x, False).run(x), x, order(x))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.long_cases
def test_first_elements(dtype, descending):
    for shape in SHAPES:
        x = sample(shape, dtype)
        expected = order(x, descending)
        for k in {1, min(2, shape[-1]), min(10, shape[-1]), -(-shape[-1] // 8), shape[-1] // 2 + 1, shape[-1]}:
            check(selection.first(x, k, descending).run(x), x, expected[..., :k])


def test_first_elements_where_each_row_gets_greater_or_smaller():
    for x in (numpy.arange(30_000.0), -numpy.arange(30_000.0), numpy.zeros(30_000)):
        for descending in (False, True):
            check(selection.first(x, 100, descending).run(x), x, order(x, descending)[:100])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_places_in_order(dtype):
    for shape in SHAPES:
        x = sample(shape, dtype)
        expected = order(x)
        for k in {0, shape[-1] // 3, shape[-1] // 2, shape[-1] - 1}:
            numpy.testing.assert_array_equal(selection.place_in_order(x, k).run(x)[1], expected[..., k : k + 1])


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", BFLOAT16], ids=str)
def test_medians_with_nan(dtype):
    for shape in SHAPES:
        x = sample(shape, dtype)
        x[..., : shape[-1] // 2] = numpy.where(
            numpy.isfinite(x[..., : shape[-1] // 2].astype("f4")), x[..., : shape[-1] // 2], numpy.ones((), dtype)
        )
        x[0] = numpy.arange(shape[-1]).astype(dtype) if x.ndim == 2 else x[0]
        expected = order(x)
        nan = numpy.isnan(x.astype("f8")).sum(-1, keepdims=True)
        numbers = shape[-1] - nan
        first_nan = numpy.where(nan > 0, numbers, (shape[-1] - 1) // 2)
        ignored = numpy.maximum(numbers - 1, 0) // 2
        for how, place in (("any", first_nan), ("only", ignored)):
            found = selection.place_in_order(x, 0, how).run(x)[1]
            numpy.testing.assert_array_equal(found, numpy.take_along_axis(expected, place, -1))


@pytest.mark.parametrize("dtype", ["u1", "i4", "i8", "f4", "f8"])
@pytest.mark.parametrize("n", [1, 3, 50])
def test_ends_of_longest_runs(dtype, n):
    with numpy.errstate(invalid="ignore"):
        x = (sample((40, n), dtype) % 3).astype(dtype)
    places = order(x)
    values = numpy.take_along_axis(x, places, -1)
    found, ends = sorting.longest_runs(values, places).run(values, places)
    for line, row, value, end in zip(values, places, found, ends, strict=True):
        lengths = [1]
        for first, second in itertools.pairwise(line):
            lengths.append(lengths[-1] + 1 if first == second else 1)
        place = lengths.index(max(lengths))
        assert end == row[place]
        numpy.testing.assert_equal(value, line[place : place + 1])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("bins", [1, 2, 10, 33])
def test_numbers_of_values_in_bins(dtype, bins):
    edges = numpy.linspace(-1, 1, bins + 1).astype(dtype)
    values = numpy.concatenate([sample((200,), dtype), edges, [numpy.nan, numpy.inf, -2]]).astype(dtype)
    found = searching.histogram(values, edges).run(values, edges)
    inside = values[(values >= edges[0]) & (values <= edges[-1])]
    places = numpy.minimum(edges.searchsorted(inside, "right") - 1, bins - 1)
    assert found.tolist() == numpy.bincount(places, minlength=bins).tolist()
