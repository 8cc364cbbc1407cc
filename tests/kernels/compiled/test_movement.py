"""Compiled copies, lookups, scatters and masks move the same elements as NumPy, in any memory layout."""

import itertools

import ml_dtypes
import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.llvm.host import HOST
from adjoint.codegen.selection import chosen
from adjoint.kernels.compiled.index import lookup, masks, scattering
from adjoint.kernels.compiled.memory.copying import convert, copy_into
from adjoint.kernels.index import indexing, scatter
from adjoint.kernels.memory import copying
from adjoint.kernels.reduce import counting
from adjoint.kernels.shape import joining

SHAPES = [(50,), (37, 21), (5, 40, 33), (3, 700, 2), (1000, 1)]


def sample(shape, dtype, seed=0):
    return (numpy.random.default_rng(seed).standard_normal(shape) * 50).astype(dtype)


def scattered(x, dim, index, source, how):
    plan = scattering.scattered(index, x, dim, source, how)
    return plan if plan is NotImplemented else plan.run(index, x, dim, source, how)


@pytest.fixture(autouse=True)
def every_size(monkeypatch):
    monkeypatch.setattr(LOOPS, "every_size", True)


@pytest.mark.thorough
@pytest.mark.parametrize("width", [64, 32, 16])
@pytest.mark.parametrize("dtype", ["f4", "f8", "u1", "f2", "c8"])
def test_copies_between_any_layouts(dtype, width, monkeypatch):
    if width > HOST.vector_bytes:
        pytest.skip("this processor has no such registers")
    monkeypatch.setattr(HOST, "vector_bytes", width)
    copied = 0
    for shape in [(5,), (70, 67), (33, 17, 40), (3, 20, 5, 31), (65_536,), (1, 9), (2, 3, 4, 5), (2, 3, 4, 3, 5)]:
        whole = (numpy.arange(2 * numpy.prod(shape)) % 1009).reshape(*shape[:-1], -1).astype(dtype)
        front = whole[..., : shape[-1]]
        repeated = numpy.broadcast_to(whole[..., :1], shape)
        for source in (front, front[..., ::-1], whole[..., ::2], repeated, numpy.ascontiguousarray(front)):
            for order in itertools.permutations(range(len(shape))):
                x = source.transpose(order)
                apart = numpy.zeros((*x.shape, 2), dtype)[..., 0]
                for target in (numpy.zeros(x.shape, dtype), numpy.zeros(x.shape[::-1], dtype).T, apart):
                    if copy_into(target, x) is not NotImplemented:
                        copied += 1
                        numpy.testing.assert_array_equal(target, x)
    assert copied > 500


@pytest.mark.parametrize("source", ["f2", "f4", "f8", ml_dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("target", ["f2", "f4", "f8", ml_dtypes.bfloat16], ids=str)
def test_conversions_round_as_pytorch_rounds(source, target):
    source, target = numpy.dtype(source), numpy.dtype(target)
    if source == target:
        return
    with numpy.errstate(all="ignore"):
        x = numpy.append(sample(5003, "f8"), [0.0, -0.0, numpy.inf, -numpy.inf, 1e30, 6e-8, numpy.nan]).astype(source)
        twice = x.astype("f4") if source == "f8" and target.itemsize == 2 else x
        expected = twice.astype(target)
    numpy.testing.assert_array_equal(convert(x, target).astype("f8"), expected.astype("f8"))


@pytest.mark.parametrize(
    ("source", "target"), [("f4", "f2"), ("f2", "f8"), ("u1", "f4"), ("i8", "f4"), ("f8", "i4"), ("?", "i8")]
)
def test_conversions_between_any_layouts(source, target):
    x = (numpy.arange(7200) % 101 - 9).astype(source).reshape(60, 120)
    repeated = numpy.broadcast_to(x[:, :1], x.shape)
    for view in (x, x.T, x[:, :3], x[::2, ::-1], x.reshape(6, 40, 30)[:, :33, 1:3], repeated):
        expected = view.astype(target)
        numpy.testing.assert_array_equal(convert(view, numpy.dtype(target)), expected)
        numpy.testing.assert_array_equal(copying.convert(view, numpy.dtype(target)), expected)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["f4", "f8", "u1", "i8"])
@pytest.mark.parametrize("indices", ["i8", "i4"])
@pytest.mark.parametrize("shape", SHAPES)
def test_lookups_and_scatters(shape, indices, dtype):
    x = sample(shape, dtype)
    generator = numpy.random.default_rng(2)
    for dim, length in enumerate(shape):
        index = generator.integers(-length, length, 29).astype(indices)
        numpy.testing.assert_array_equal(lookup.take(x, index, dim), x.take(index, dim))
        size = (*shape[:dim], 17, *shape[dim + 1 :])
        index = generator.integers(0, length, size).astype(indices)
        numpy.testing.assert_array_equal(
            lookup.gathered(x, dim, index), numpy.take_along_axis(x, index.astype("i8"), dim)
        )
        for wrong in (-1, length):
            outside = index.copy()
            outside.reshape(-1)[-2] = wrong
            assert lookup.gathered(x, dim, outside) is None
            assert scattered(x, dim, outside, sample(size, dtype), "add") in (None, NotImplemented)
        for how, shared in itertools.product(("put", "add", "multiply", "maximum", "minimum"), (False, True)):
            if shared and len(shape) == 1:
                continue
            values = sample(size, dtype, 3)
            chosen = index[tuple([slice(None) if axis == dim else 0 for axis in range(len(shape))])].copy()
            result, expected = x.copy(), x.copy()
            assert scattering.scatter(result, dim, chosen if shared else index, values, how) is result
            for k in range(17):
                place = numpy.full(size, chosen[k]) if shared else index.astype("i8")
                place = place.astype("i8").take([k], dim)
                value = values.take([k], dim)
                before = numpy.take_along_axis(expected, place, dim)
                numpy.put_along_axis(
                    expected, place, value if how == "put" else getattr(numpy, how)(before, value), dim
                )
            numpy.testing.assert_array_equal(result, expected)
            copied = scattered(x, dim, chosen if shared else index, values, how)
            if copied is not NotImplemented:
                numpy.testing.assert_array_equal(copied, expected)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("width", [1, 3, 16, 70, 200])
def test_rows_are_added_in_order_by_any_number_of_threads(width, threads):
    index = numpy.random.default_rng(4).integers(0, 300, 40_000)
    rows, target = sample((40_000, width), "f4", 5), sample((300, width), "f4", 6)
    expected = target.copy()
    numpy.add.at(expected, index, rows)
    before = adjoint.get_num_threads()
    try:
        adjoint.set_num_threads(threads)
        scattering.scatter(target, 0, index, rows, "add")
    finally:
        adjoint.set_num_threads(before)
    numpy.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("width", [1, 5, 16, 70, 200])
def test_sums_of_runs(width, indexed, mean, monkeypatch):
    x = sample((40, width), "f8", 8)
    index = numpy.random.default_rng(9).integers(0, 40, 90) if indexed else None
    rows = x[index] if indexed else x
    bounds = numpy.array([2, 2, 5, 30, 31, 40])
    expected = numpy.stack([rows[a:b].sum(0) / (max(b - a, 1) if mean else 1) for a, b in itertools.pairwise(bounds)])
    for enabled in (False, True):
        monkeypatch.setattr(LOOPS, "_enabled", enabled)
        monkeypatch.setattr(LOOPS, "every_size", enabled)
        numpy.testing.assert_allclose(counting.sum_of_runs(x, bounds, index, mean), expected)
        grad = counting.sum_of_runs_backward(numpy.ones_like(expected), x.shape, bounds, index, mean)
        assert grad.sum() == pytest.approx(4 * width if mean else (bounds[-1] - bounds[0]) * width)
    assert not LOOPS.failures


@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_slices_are_reduced_one_after_another(dim, include_self, reduce, monkeypatch):
    x = sample((9, 7, 300), "f8")
    length = x.shape[dim]
    index = numpy.random.default_rng(3).integers(0, length - 1, 12)
    source = sample((*x.shape[:dim], 12, *x.shape[dim + 1 :]), "f8", 4)
    combine = {"prod": numpy.multiply, "mean": numpy.add, "amax": numpy.maximum, "amin": numpy.minimum}[reduce]
    expected, slices = numpy.moveaxis(x.copy(), dim, 0), numpy.moveaxis(source, dim, 0)
    for place in range(length):
        parts = [expected[place]] * include_self + [slices[k] for k in numpy.flatnonzero(index == place)]
        if len(parts) > include_self:
            expected[place] = combine.reduce(parts) / (len(parts) if reduce == "mean" else 1)
    expected = numpy.moveaxis(expected, 0, dim)
    for enabled in (False, True):
        monkeypatch.setattr(LOOPS, "_enabled", enabled)
        monkeypatch.setattr(LOOPS, "every_size", enabled)
        result = scatter.index_reduce(x, dim, index, source, reduce, include_self)
        numpy.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.parametrize("density", [0, 0.3, 1])
@pytest.mark.parametrize("dtype", ["f4", "u1", "c8"])
@pytest.mark.parametrize("size", [1, 70, 16_384, 50_001])
def test_masks(size, dtype, density):
    x = sample(size, dtype)
    mask = numpy.random.default_rng(7).random(size) < density
    numpy.testing.assert_array_equal(masks.select(x, mask), x[mask])


@pytest.mark.parametrize("shape", [(1,), (50_001,), (300, 117), (7, 90, 40), (3, 1, 5, 6)])
@pytest.mark.parametrize("dtype", ["?", "f4", "i8"])
def test_indices_of_what_is_not_zero(shape, dtype):
    x = (numpy.random.default_rng(9).random(shape) < 0.4).astype(dtype)
    numpy.testing.assert_array_equal(indexing.nonzero(x).T, x.nonzero())


@pytest.mark.parametrize("shape", [(1, 1), (33, 70), (700, 33), (70, 20, 20), (2, 9000, 3), (2, 3, 9000)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "?", "c8"])
def test_triangles(shape, dtype):
    x = sample(shape, "f8").astype(dtype)
    for diagonal in (-100, -33, -1, 0, 2, 19, 100):
        numpy.testing.assert_array_equal(joining.triu(x, diagonal), numpy.triu(x, diagonal))
        numpy.testing.assert_array_equal(joining.tril(x, diagonal), numpy.tril(x, diagonal))


@pytest.mark.parametrize("wrong", [-4, 3, 1 << 40])
def test_nothing_is_written_where_an_index_is_out_of_range(wrong):
    x, index = adjoint.zeros(3, 4), adjoint.tensor([0, 1, wrong])
    with pytest.raises((IndexError, RuntimeError), match="index"):
        x.index_add_(0, index, adjoint.ones(3, 4))
    with pytest.raises((IndexError, RuntimeError), match="index"):
        x.index_put_((index,), adjoint.ones(3, 4), accumulate=True)
    with pytest.raises(RuntimeError, match=f"index {wrong} is out of bounds for dimension 0 with size 3"):
        x.scatter_(0, index[:, None].expand(3, 4), 1.0)
    with pytest.raises(RuntimeError, match=f"index {wrong} is out of bounds for dimension 0 with size 3"):
        x.gather(0, index[:, None].expand(3, 4))
    assert (x == 0).all()


@pytest.mark.parametrize("shape", [(40, 7), (9, 70), (500, 33)])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_rows_are_added_in_the_order_of_their_indices(shape, threads):
    """For any indices and any number of threads, the sums have the same bits as in a sequential loop of additions."""
    before = adjoint.get_num_threads()
    adjoint.set_num_threads(threads)
    try:
        generator = numpy.random.default_rng(7)
        for index in (
            generator.integers(0, shape[0], 300),
            generator.integers(0, 3, 300),
            numpy.full(300, shape[0] - 1),
        ):
            rows = sample((300, shape[1]), "f4")
            expected = sample(shape, "f4", 1)
            found = expected.copy()
            for place, row in zip(index, rows, strict=True):
                expected[place] += row
            assert scattering.scatter(found, 0, index, rows, "add") is found
            numpy.testing.assert_array_equal(found, expected)
    finally:
        adjoint.set_num_threads(before)


def test_index_add_to_a_source_in_the_same_memory():
    x = adjoint.arange(12.0).reshape(4, 3)
    expected = x.index_add(0, adjoint.tensor([1, 2, 3]), x[:3])
    x.index_add_(0, adjoint.tensor([1, 2, 3]), x[:3].clone())
    assert x.tolist() == expected.tolist()


def test_positions_of_several_indices():
    generator = numpy.random.default_rng(8)
    rows, columns = generator.integers(-7, 7, (5, 9)), generator.integers(-11, 11, (5, 9))
    expected = numpy.ravel_multi_index((rows % 7, columns % 11), (7, 11))
    x = adjoint.arange(77.0).reshape(7, 11)
    assert x[adjoint.tensor(rows), adjoint.tensor(columns)].tolist() == expected.tolist()
    assert not LOOPS.failures


def test_a_scalar_of_numpy_is_left_to_numpy():
    assert LOOPS.run("index.masks.select", numpy.float64(1), numpy.ones((), bool)) is NotImplemented
    assert LOOPS.run("index.masks.select", numpy.ones(()), numpy.ones((), bool)).tolist() == [1]


@pytest.mark.parametrize("dtype", ["f4", "u1", "f2", "f8"])
def test_joined_arrays(dtype):
    for shapes, axis in [
        ([(3, 5, 7), (3, 2, 7), (3, 1, 7)], 1),
        ([(1000, 10), (1000, 33)], 1),
        ([(70_000,), (3,), (80_000,)], 0),
        ([(2, 0), (2, 5), (2, 0)], 1),
        ([(300, 300)] * 5, 0),
    ]:
        arrays = [sample(shape, dtype, number) for number, shape in enumerate(shapes)]
        numpy.testing.assert_array_equal(joining._joined_by_loops(arrays, axis), numpy.concatenate(arrays, axis))


@pytest.mark.parametrize("dtype", ["f4", "u1", "f2", "f8"])
@pytest.mark.parametrize("shape", [(5, 6, 70), (1, 3, 1000)])
def test_filled_masks(shape, dtype, monkeypatch):
    monkeypatch.setattr(LOOPS, "every_size", True)
    x, value = sample(shape, dtype), numpy.asarray(5, dtype)
    for mask_shape in [shape, shape[1:], shape[2:], (), (shape[0], 1, shape[2]), (*shape[:2], 1)]:
        mask = numpy.asarray(numpy.random.default_rng(8).random(mask_shape) < 0.4)
        expected = numpy.where(mask, value, x)
        numpy.testing.assert_array_equal(chosen(mask, value, x, numpy.empty_like(x)), expected)
        changed = x.copy()
        assert chosen(mask, value, changed, changed) is not NotImplemented
        numpy.testing.assert_array_equal(changed, expected)
        numpy.testing.assert_array_equal(chosen(mask, x, value), numpy.where(mask, x, value))
    read = numpy.zeros(1001, "u1")
    assert chosen(read[1:].view(bool), numpy.asarray(5, "u1"), read[:-1], read[:-1]) is NotImplemented
