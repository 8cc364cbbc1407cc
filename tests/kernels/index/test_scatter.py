import itertools
import math
import tracemalloc

import ml_dtypes
import numpy
import pytest

from adjoint.codegen.acceleration import LOOPS
from adjoint.kernels.index import flattened, indexing, scatter

BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)


@pytest.fixture(autouse=True)
def quiet():
    with numpy.errstate(all="ignore"):
        yield


def sample(shape, dtype="f8", seed=0):
    return numpy.asarray(numpy.random.default_rng(seed).integers(-4, 5, shape)).astype(dtype)


def indices(limit, shape, seed=1):
    return numpy.asarray(numpy.random.default_rng(seed).integers(0, limit, shape))


SHAPES = [
    ((5,), (3,), 0),
    ((4, 5), (4, 9), 1),
    ((4, 5), (2, 3), 0),
    ((3, 4, 5), (3, 2, 5), 1),
    ((3, 4, 5), (2, 4, 3), -1),
    ((3, 4, 5), (2, 6, 3), 1),
    ((3, 4, 5), (2, 3, 3), 2),
    ((1500, 3), (1500, 3), 1),  # more indices than are checked at once
]


def targets(index, dim):
    """Return the target position of each element of `index`."""
    for place in itertools.product(*map(range, index.shape)):
        target = list(place)
        target[dim] = int(index[place])
        yield place, tuple(target)


@pytest.mark.parametrize(("shape", "index_shape", "dim"), SHAPES)
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", BFLOAT16, "i8", "u1", "c16"], ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_gather_and_scatter(shape, index_shape, dim, dtype, transposed):
    x = sample(shape, dtype)
    if transposed:
        x = numpy.ascontiguousarray(x.T).T
    index = indices(shape[dim], index_shape)
    source = sample(index_shape, dtype, 2)
    gathered = numpy.empty(index_shape, x.dtype)
    written, added, multiplied = x.copy(), x.copy(), x.copy()
    for place, target in targets(index, dim):
        gathered[place] = x[target]
        written[target] = source[place]
        added[target] += source[place]
        multiplied[target] *= source[place]
    numpy.testing.assert_array_equal(scatter.gather(x, dim, index), gathered)
    numpy.testing.assert_array_equal(scatter.scatter(x, dim, index, source), written)
    numpy.testing.assert_array_equal(scatter.scatter_add(x, dim, index, source), added)
    numpy.testing.assert_array_equal(scatter.scatter(x, dim, index, source, "multiply"), multiplied)
    in_place = x.copy(order="A")
    assert scatter.scatter_add_(in_place, dim, index, source) is in_place
    numpy.testing.assert_array_equal(in_place, added)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("dtype", ["f8", "i8"])
def test_scatter_reduce(reduce, include_self, dtype):
    x, index, source = sample((4, 6), dtype), indices(6, (4, 9)), sample((4, 9), dtype, 2)
    collected = {}
    for place, target in targets(index, 1):
        collected.setdefault(target, [x[target]] if include_self else []).append(source[place])
    expected = x.copy()
    for target, values in collected.items():
        total = {"sum": sum, "prod": math.prod, "amax": max, "amin": min, "mean": sum}[reduce](values)
        if reduce == "mean":
            total = total / len(values) if dtype == "f8" else total // len(values)
        expected[target] = total
    numpy.testing.assert_allclose(scatter.scatter_reduce(x, 1, index, source, reduce, include_self), expected)


EXPANDED = [
    ((9, 6), 0, (0,)),
    ((9, 6), 1, (1,)),
    ((9, 6), 1, (0, 1)),
    ((3, 9, 6), 1, (1,)),
    ((3, 9, 6), 1, (0, 1)),
    ((3, 9, 6), 2, (1, 2)),
    ((3, 9, 2, 5), -1, (3,)),
    ((3, 9, 2, 5), 1, (0, 1)),
]
"""Shapes, a dimension, and in which dimensions an index is not expanded."""


def expanded(shape, dim, kept, times=1):
    """Return an array, an expanded index, and values to write."""
    shape = tuple(size * times for size in shape)
    sizes = [length + 2 if axis == dim % len(shape) else length for axis, length in enumerate(shape)]
    index = indices(shape[dim], [size if axis in kept else 1 for axis, size in enumerate(sizes)])
    return sample(shape), numpy.broadcast_to(index, sizes), sample(sizes, seed=2)


@pytest.mark.parametrize("dtype", ["f4", "i8", BFLOAT16], ids=str)
@pytest.mark.parametrize("times", [1, 8], ids=["small", "large"])
@pytest.mark.parametrize(("shape", "dim", "kept"), EXPANDED)
@pytest.mark.one_each("shape", "times")
@pytest.mark.long_cases
def test_an_expanded_index_is_the_same_as_its_copy(shape, dim, kept, times, dtype):
    x, index, src = expanded(shape, dim, kept, times)
    x, src, copy = x.astype(dtype), src.astype(dtype), index.copy()
    same = numpy.testing.assert_array_equal
    same(scatter.gather(x, dim, index), scatter.gather(x, dim, copy))
    same(scatter.gather(x.T.copy().T, dim, index), scatter.gather(x, dim, copy))
    for reduce in (None, "add", "multiply"):
        same(scatter.scatter(x, dim, index, src, reduce), scatter.scatter(x, dim, copy, src, reduce))
        same(scatter.scatter(x, dim, index, 2, reduce), scatter.scatter(x, dim, copy, 2, reduce))
    scattered = x.T.copy().T
    same(scatter.scatter_(scattered, dim, index, src, "add"), scatter.scatter(x, dim, copy, src, "add"))
    for reduce, include_self in itertools.product(("sum", "prod", "mean", "amax", "amin"), (True, False)):
        found = scatter.scatter_reduce(x, dim, index, src, reduce, include_self)
        same(found, scatter.scatter_reduce(x, dim, copy, src, reduce, include_self))


@pytest.mark.parametrize(("shape", "dim", "kept"), EXPANDED)
def test_an_expanded_index_is_checked(shape, dim, kept):
    x, index, src = expanded(shape, dim, kept)
    with pytest.raises(RuntimeError, match="is out of bounds for dimension"):
        scatter.gather(x, dim, numpy.broadcast_to(index[(slice(0, 1),) * index.ndim] + 99, index.shape))
    before = x.copy()
    with pytest.raises(RuntimeError, match="is out of bounds for dimension"):
        scatter.scatter_(x, dim, numpy.broadcast_to(index - 99, index.shape), src, "add")
    numpy.testing.assert_array_equal(x, before)


@pytest.mark.parametrize(("shape", "dim", "kept"), [case for case in EXPANDED if len(case[0]) == 3 and case[1] == 1])
def test_an_expanded_index_is_not_copied(shape, dim, kept):
    x, index, src = expanded(shape, dim, kept, times=20)
    x, src = x.astype("f4"), src.astype("f4")
    for call in (
        lambda: scatter.scatter_(x, dim, index, src, "add"),
        lambda: scatter.scatter_reduce_(x, dim, index, src, "amax"),
    ):
        call()  # kernels are compiled
        tracemalloc.start()
        call()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < src.nbytes / 2 or not LOOPS.enabled


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_slices(dim):
    x = sample((4, 5, 6))
    index = indices(x.shape[dim], (7,))
    source = sample([7 if d == dim % 3 else n for d, n in enumerate(x.shape)], seed=2)
    numpy.testing.assert_array_equal(scatter.index_select(x, dim, index), numpy.take(x, index, dim))
    key = (slice(None),) * (dim % 3)
    added, copied, filled = x.copy(), x.copy(), x.copy()
    for i, target in enumerate(index):
        added[(*key, target)] += 2 * source[(*key, i)]
        copied[(*key, target)] = source[(*key, i)]
        filled[(*key, target)] = 7
    numpy.testing.assert_array_equal(scatter.index_add(x, dim, index, source, 2), added)
    numpy.testing.assert_array_equal(indexing.index_copy(x, dim, index, source), copied)
    numpy.testing.assert_array_equal(scatter.index_fill(x, dim, index, 7), filled)


@pytest.mark.parametrize(("rows", "width", "count"), [(3, 40, 900), (500, 64, 400), (1, 20, 1000), (50, 3, 6000)])
def test_sums_of_rows_have_every_repetition(rows, width, count):
    index, source = indices(rows, (count,)), sample((count, width))
    out = numpy.zeros((rows, width))
    scatter.combine(out, out.shape, 0, index, source, numpy.add)
    expected = numpy.stack([source[index == row].sum(0) for row in range(rows)])
    numpy.testing.assert_array_equal(out, expected)


def test_flat_positions():
    x = sample((3, 4))
    index = numpy.array([[0, -1], [5, 0]])
    numpy.testing.assert_array_equal(flattened.take(x, index), x.reshape(-1)[index])
    source = numpy.array([[1.0, 2.0], [3.0, 4.0]])
    expected = x.copy().reshape(-1)
    numpy.add.at(expected, index, source)
    numpy.testing.assert_array_equal(flattened.put(x, index, source, True).reshape(-1), expected)
    assert flattened.put(x, index, source)[0, 0] == 4


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda x: scatter.gather(x, 1, numpy.array([[0, 3]])), RuntimeError, "index 3 is out of bounds"),
        (lambda x: scatter.gather(x, 1, numpy.array([[-1]])), RuntimeError, "index -1 is out of bounds"),
        (lambda x: scatter.gather(x, 1, numpy.array([0])), RuntimeError, "must have the same number of dimensions"),
        (lambda x: scatter.scatter_add_(x, 0, numpy.array([[0], [2]]), x), RuntimeError, "index 2 is out of bounds"),
        (lambda x: scatter.index_select(x, 0, numpy.array([2])), IndexError, "index out of range in self"),
        (lambda x: scatter.index_add_(x, 1, numpy.array([0, 5, 1]), x), RuntimeError, "index 5 is out of bounds"),
        (lambda x: indexing.index_copy_(x, 1, numpy.array([0, 5, 1]), x), IndexError, "index 5 is out of bounds"),
        (lambda x: scatter.index_fill_(x, 0, numpy.array([-3]), 1), IndexError, "index -3 is out of bounds"),
        (lambda x: scatter.index_fill_(x, 0, numpy.array([-3]), 1j), RuntimeError, "Converting complex Scalar"),
        (lambda x: flattened.take(x, numpy.array([6])), IndexError, "tried to access index 6 on a tensor of 6 elements"),
        (lambda x: flattened.put_(x, numpy.array([0, 7]), x[0, :2]), IndexError, "tried to access index 7"),
        (lambda x: indexing.index_put_(x, (numpy.array([0, 2]),), x), IndexError, "index 2 is out of bounds"),
        (lambda x: indexing.index_put_(x, (numpy.array([0, 1]),), x[:, :2]), RuntimeError, "shape mismatch: value"),
        (lambda x: indexing.masked_scatter_(x, x > -9, x[0]), RuntimeError, "source < number of ones in mask"),
        (lambda x: indexing.embedding(x, numpy.array([2])), IndexError, "index out of range in self"),
        (lambda x: indexing.embedding(x, numpy.array([0.5])), RuntimeError, "Long, Int; but got torch.Double"),
    ],
)  # fmt: skip
def test_bad_input_changes_nothing(call, kind, words):
    x = sample((2, 3))
    before = x.copy()
    with pytest.raises(kind, match=words):
        call(x)
    numpy.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize(
    "keys",
    [
        (numpy.array([1, 0, 1, -1]),),
        (numpy.array([[1, 0], [1, 2]]), numpy.array([0, -1])),
        (None, numpy.array([0, 3, 3])),
        (numpy.array([0, 1]), None, numpy.array([4, 4])),
        (numpy.array([True, False, True]),),
        (numpy.arange(12).reshape(3, 4) % 2 == 0, numpy.array(3)),
        (numpy.array(1), numpy.array(2), numpy.array(0)),
    ],
)
@pytest.mark.parametrize("dtype", ["f8", BFLOAT16], ids=str)
def test_index_put(keys, accumulate, dtype):
    x = sample((3, 4, 5), dtype)
    key = tuple(slice(None) if k is None else k for k in keys)
    values = sample(x[key].shape, dtype, 5)
    expected = x.astype("f8")
    places = numpy.arange(x.size).reshape(x.shape)[key].reshape(-1).tolist()
    for place, value in zip(places, values.astype("f8").reshape(-1).tolist(), strict=True):
        expected.reshape(-1)[place] = value + (expected.reshape(-1)[place] if accumulate else 0)
    result = indexing.index_put(x, keys, values, accumulate)
    numpy.testing.assert_array_equal(result.astype("f8"), expected)


def test_masks():
    x = sample((3, 4))
    mask = numpy.array([True, False, True, False])
    numpy.testing.assert_array_equal(indexing.masked_select(x, mask), x[:, ::2].reshape(-1))
    expected = x.copy()
    expected[:, ::2] = numpy.arange(6.0).reshape(3, 2)
    numpy.testing.assert_array_equal(indexing.masked_scatter(x, mask, numpy.arange(9.0)), expected)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
@pytest.mark.parametrize(("rows", "width", "shape"), [(5, 4, (3, 7)), (40, 32, (900,)), (3, 2, ())])
def test_embedding(rows, width, shape, dtype):
    weight, index = sample((rows, width), dtype), indices(rows, shape)
    numpy.testing.assert_array_equal(indexing.embedding(weight, index), weight[index])
    grad = sample((*shape, width), dtype, 3)
    flat = grad.reshape(-1, width).astype("f8")
    counts = numpy.bincount(index.reshape(-1), minlength=rows)
    expected = numpy.stack([flat[index.reshape(-1) == row].sum(0) for row in range(rows)])
    numpy.testing.assert_array_equal(indexing.embedding_dense_backward(grad, index, rows), expected)
    expected[1] = 0
    scaled = expected / numpy.maximum(counts, 1)[:, None]
    result = indexing.embedding_dense_backward(grad, index, rows, 1, True)
    numpy.testing.assert_allclose(
        result, scaled, rtol=2e-3 if dtype == "f2" else 1e-5, atol=1e-2 if dtype == "f2" else 1e-5
    )
