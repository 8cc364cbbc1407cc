import math

import ml_dtypes
import numpy
import pytest

import adjoint
from adjoint.kernels.reduce import counting, sorting

BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)
DTYPES = ["?", "u1", "i4", "i8", "f2", BFLOAT16, "f4", "f8"]


@pytest.fixture(autouse=True)
def quiet():
    with numpy.errstate(all="ignore"):
        yield


def sample(shape, dtype):
    x = numpy.random.default_rng(3).integers(0, 20, shape)
    if numpy.dtype(dtype).kind not in "?iu":
        x = x - 10.0
        x.reshape(-1)[::11] = math.nan
        x.reshape(-1)[1::13] = math.inf
        x.reshape(-1)[2::13] = -math.inf
        x.reshape(-1)[3::7] = -0.0
    return x.astype(dtype)


def python_order(row, descending):
    key = [(math.isnan(v), 0 if math.isnan(v) else v) for v in row.tolist()]
    return sorted(range(len(key)), key=key.__getitem__, reverse=descending) if not descending else [
        i for _, i in sorted(((k, i) for i, k in enumerate(key)), key=lambda pair: (
            -pair[0][0], -pair[0][1] if pair[0][1] else 0, pair[1]))
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(9,), (4, 30), (3, 700), (0, 3), (2, 0)])
@pytest.mark.parametrize("descending", [False, True])
def test_sort_is_stable_and_nan_is_greatest(dtype, shape, descending):
    x = sample(shape, dtype)
    values, indices = sorting.sort(x, -1, descending)
    assert values.dtype == x.dtype
    assert indices.dtype == numpy.int64
    if x.size == 0:
        assert values.shape == indices.shape == shape
        return
    wide = x.astype("f8").reshape(-1, shape[-1])
    for row, order, ordered in zip(wide, indices.reshape(wide.shape), values.reshape(wide.shape), strict=True):
        assert order.tolist() == python_order(row, descending)
        numpy.testing.assert_array_equal(ordered.astype("f8"), row[order])
        numpy.testing.assert_array_equal(numpy.signbit(ordered.astype("f8")), numpy.signbit(row[order]))
    if len(shape) > 1:
        along_first = sorting.sort(numpy.ascontiguousarray(x.T), 0, descending)
        numpy.testing.assert_array_equal(along_first[1], indices.T)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "?"], ids=str)
@pytest.mark.parametrize("length", [10, 600])
def test_selection_agrees_with_sorting(dtype, length):
    x = sample((3, length), dtype)
    ordered = sorting.sort(x, 1)[0].astype("f8")
    wide = x.astype("f8")
    for k in (0, 1, 3, length):
        for largest in (True, False):
            values, indices = sorting.topk(x, k, 1, largest)
            expected = ordered[:, ::-1][:, :k] if largest else ordered[:, :k]
            numpy.testing.assert_array_equal(values.astype("f8"), expected)
            numpy.testing.assert_array_equal(numpy.take_along_axis(wide, indices, 1), expected)
    for k in (1, 4, length):
        values, indices = sorting.kthvalue(x, k, 1)
        numpy.testing.assert_array_equal(values.astype("f8"), ordered[:, k - 1])
        numpy.testing.assert_array_equal(numpy.take_along_axis(wide, indices[:, None], 1)[:, 0], ordered[:, k - 1])


def test_median_is_the_lower_one_and_nan_wins():
    assert sorting.median(numpy.array([3.0, 1.0, 2.0, 4.0]))[0] == 2
    values, indices = sorting.median(numpy.array([[3.0, math.nan, 2.0, math.nan], [5.0, 1.0, 9.0, 2.0]]), 1)
    assert numpy.isnan(values[0])
    assert values[1] == 2
    assert indices.tolist() == [1, 3]
    values, indices = sorting.nanmedian(numpy.array([[3.0, math.nan, 2.0, 4.0], [math.nan] * 4]), 1, True)
    assert values[0, 0] == 3
    assert numpy.isnan(values[1, 0])
    assert indices.tolist() == [[0], [0]]


def test_mode_is_the_smallest_of_the_most_frequent():
    values, indices = sorting.mode(numpy.array([[2, 1, 1, 2, 3], [3, 2, 3, 1, 1]]), 1)
    assert values.tolist() == [1, 1]
    assert indices.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda x: sorting.sort(x * 1j), RuntimeError, " Sort does not support complex dtypes on CPU"),
        (lambda x: sorting.topk(x, 5), RuntimeError, "selected index k out of range"),
        (lambda x: sorting.kthvalue(x, 0), RuntimeError, r"kthvalue\(\): selected number k out of range for dim"),
        (lambda x: counting.bincount(x), NotImplementedError, "\"bincount_cpu\" not implemented for 'Double'"),
        (lambda x: counting.bincount(numpy.array([-1])), RuntimeError, "bincount only supports 1-d"),
        (lambda x: counting.histc(x, 0), RuntimeError, "bins must be > 0, but got 0 for dimension"),
        (lambda x: adjoint.bucketize(*map(adjoint.tensor, (x, x[None]))), RuntimeError, "boundaries tensor must be"),
        (lambda x: counting.searchsorted(x, x, side="up"), RuntimeError, "side can only be 'left' or 'right'"),
    ],
)  # fmt: skip
def test_errors(call, kind, words):
    with pytest.raises(kind, match=words):
        call(numpy.array([3.0, 1.0, 2.0]))


def test_distinct_values():
    x = numpy.array([[3, 1, 3], [2, 1, 1]])
    values, inverse, counts = counting.unique(x)
    assert (values[inverse] == x).all()
    assert values.tolist() == [1, 2, 3]
    assert counts.tolist() == [3, 1, 2]
    rows = numpy.array([[2, 5], [1, 7], [2, 5], [1, 3]])
    values, inverse, counts = counting.unique(rows, dim=0)
    assert values.tolist() == [[1, 3], [1, 7], [2, 5]]
    assert (values[inverse] == rows).all()
    assert counts.tolist() == [1, 1, 2]
    values, inverse, counts = counting.unique_consecutive(numpy.array([1, 1, 2, 1]))
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 1], [0, 0, 1, 2], [2, 1, 1])
    assert len(counting.unique(numpy.array([math.nan, 1.0, math.nan]))[0]) == 3


def test_histograms():
    x = numpy.random.default_rng(0).standard_normal(1000)
    expected, _ = numpy.histogram(x, 7, (-1.5, 2))
    assert counting.histc(x, 7, -1.5, 2).tolist() == expected.tolist()
    assert counting.histc(numpy.array([1.0, math.nan, 2.0, 7.0]), 4, 0, 4).tolist() == [0, 1, 1, 0]
    for number in (2.0, 1e8, 3e38):  # the range of equal numbers is extended by 1, but rounding removes the extension
        assert counting.histc(numpy.full(3, number, numpy.float32), 4).tolist() == [0, 0, 3, 0]
    assert counting.bincount(numpy.array([1, 2, 2]), minlength=5).tolist() == [0, 1, 2, 0, 0]
    weighted = counting.bincount(numpy.array([1, 2, 2]), numpy.array([1, 2, 3], "f4"))
    assert weighted.dtype == numpy.float32
    assert weighted.tolist() == [0, 1, 5]


@pytest.mark.parametrize("right", [False, True])
def test_search(right):
    rng = numpy.random.default_rng(0)
    rows = rng.integers(0, 9, (5, 12)).astype("f8")
    values = rng.integers(-1, 11, (5, 4)).astype("f8")
    side = "right" if right else "left"
    ordered, order = sorting.sort(rows)
    expected = numpy.stack([numpy.searchsorted(r, v, side) for r, v in zip(ordered, values, strict=True)])
    assert (counting.searchsorted(ordered, values, right=right) == expected).all()
    assert (counting.searchsorted(rows, values, side=side, sorter=order) == expected).all()
    found = counting.searchsorted(ordered[0], values, right=right, out_int32=True)
    assert found.dtype == numpy.int32
    assert (found == numpy.searchsorted(ordered[0], values, side)).all()


def test_bytes_that_are_all_true_are_equal():
    booleans = numpy.array([2, 254, 1, 0, 0, 3], numpy.uint8).view(numpy.bool_)
    values, order = sorting.sort(booleans)
    assert values.view(numpy.uint8).tolist() == [0, 0, 1, 1, 1, 1] and order.tolist() == [3, 4, 0, 1, 2, 5]
    assert sorting.mode(booleans)[1] == 5
