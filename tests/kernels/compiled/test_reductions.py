"""Compiled reductions give NumPy's results, for all shapes, layouts, dimensions and types, and for NaN and infinities."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy import ndarray

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.llvm.host import HOST
from adjoint.codegen.plans import NUMPY, Plan, compiled
from adjoint.kernels.compiled.reduce.reduction import reduce
from adjoint.kernels.reduce import reduction

BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)
DTYPES = ["f4", "f8", "f2", BFLOAT16, "i8", "i4", "u1", "?"]


def sample(shape, dtype, seed=0, special=False):
    generator = numpy.random.default_rng(seed)
    x = generator.standard_normal(shape) * 3
    if special:
        for value in (numpy.nan, numpy.inf, -numpy.inf, -0.0):
            x = numpy.where(generator.random(shape) < 0.02, value, x)
    with numpy.errstate(all="ignore"):
        return numpy.asarray(x).astype(dtype)


def wide(x):
    return x.astype("f8") if x.dtype.kind in "fV" else x


REFERENCES = {
    "sum": numpy.add.reduce,
    "amax": numpy.maximum.reduce,
    "amin": numpy.minimum.reduce,
    "any": lambda x, axis: (x != 0).any(axis),
    "all": lambda x, axis: (x != 0).all(axis),
    "count_nonzero": lambda x, axis: (x != 0).sum(axis),
    "nansum": numpy.nansum,
    "sum_of_squares": lambda x, axis: (x * x).sum(axis),
    "sum_of_magnitudes": lambda x, axis: abs(x).sum(axis),
    "largest_magnitude": lambda x, axis: abs(x).max(axis),
    "smallest_magnitude": lambda x, axis: abs(x).min(axis),
}


@pytest.mark.thorough
@pytest.mark.one_each("width")
@pytest.mark.parametrize(("dtype", "width"), [*[(dtype, 64) for dtype in DTYPES], ("f4", 32), ("f8", 16)], ids=str)
@settings(max_examples=8, deadline=None, database=None, derandomize=True)
@given(data=st.data())
def test_reductions(dtype, width, data):
    if width > HOST.vector_bytes:
        pytest.skip("this processor has no such registers")
    shape = data.draw(st.lists(st.sampled_from([1, 2, 3, 7, 16, 17, 40, 130]), min_size=1, max_size=3))
    dims = tuple(sorted(data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))))
    order = data.draw(st.permutations(range(len(shape))))
    keepdim = data.draw(st.booleans())
    special = data.draw(st.booleans())
    x = numpy.ascontiguousarray(sample(shape, dtype, special=special).transpose(order)).transpose(numpy.argsort(order))
    with pytest.MonkeyPatch.context() as patch, numpy.errstate(all="ignore"):
        patch.setattr(HOST, "vector_bytes", width)
        for name, reference in REFERENCES.items():
            found = reduce(name, x, dims, keepdim)
            if found is NotImplemented:
                assert x.dtype.kind in "iub" or all(x.shape[dim] == 1 for dim in dims)
                continue
            expected = numpy.asarray(reference(wide(x), axis=dims)).astype("f8")
            expected = numpy.expand_dims(expected, dims) if keepdim else expected
            assert found.shape == expected.shape
            found = found != 0 if name in ("any", "all") else found
            scale = numpy.sqrt(x.size) if name == "sum" else 1
            numpy.testing.assert_allclose(found.astype("f8"), expected, rtol=3e-6, atol=3e-6 * scale, err_msg=name)


VIEWS = {
    "parts of rows": lambda x: x[:, 3:40],
    "columns apart": lambda x: x[:, ::3],
    "backwards": lambda x: x[::-1, ::-1],
    "overlapping": lambda x: numpy.lib.stride_tricks.sliding_window_view(x, 8, 1)[:, ::4],
    "repeated": lambda x: numpy.broadcast_to(x[:, None, :40], (60, 30, 40)),
    "transposed": lambda x: x.reshape(3, 20, 6, 20).swapaxes(1, 2)[..., 1:],
}


@pytest.mark.parametrize("dtype", ["f4", "f8", BFLOAT16, "i8"], ids=str)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.long_cases
def test_reductions_of_views_with_gaps(view, dtype):
    x = VIEWS[view](sample((60, 120), dtype))
    found = 0
    for r in range(1, x.ndim + 1):
        for dims in itertools.combinations(range(x.ndim), r):
            for name in "sum", "amax", "count_nonzero":
                result = reduce(name, x, dims)
                if result is NotImplemented:
                    continue
                found += 1
                expected = REFERENCES[name](wide(x), axis=dims)
                assert result.flags.c_contiguous
                numpy.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-4, err_msg=f"{name} {dims}")
    assert found >= 3


@pytest.mark.parametrize(
    "shape", [(300_001,), (40_000, 3), (3, 100_003), (5_000, 70), (2, 2_500, 17), (1, 1), (7, 4_099)]
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_long_sums_keep_their_digits(shape, dtype):
    x = numpy.random.default_rng(3).random(shape).astype(dtype)
    for dims in [(0,), (x.ndim - 1,), tuple(range(x.ndim))]:
        found = reduce("sum", x, dims)
        if found is not NotImplemented:
            tolerance = 4e-7 if dtype == "f4" else 1e-15
            numpy.testing.assert_allclose(found, x.astype("g").sum(dims).astype("f8"), rtol=tolerance)


def test_products_and_distances():
    x = 1 + sample((130, 67), "f8") / 50
    for dim in (0, 1):
        numpy.testing.assert_allclose(reduce("prod", x, (dim,)), x.prod(dim), rtol=1e-13)
        center = x.mean(dim, keepdims=True)
        squares = reduce("sum_of_distances", x.T, (1 - dim,), True, center.T)
        numpy.testing.assert_allclose(squares.T, ((x - center) ** 2).sum(dim, keepdims=True), rtol=1e-13)
    glued = sample((5_001, 3), "f4")
    center = glued.mean(0, keepdims=True)
    expected = ((glued.astype("f8") - center) ** 2).sum(0)
    numpy.testing.assert_allclose(reduce("sum_of_distances", glued, (0,), False, center), expected, rtol=1e-5)


@pytest.mark.one_each("shape")
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "i4", "u1"])
@pytest.mark.parametrize("nan", [0, 0.001, 0.3])
@pytest.mark.parametrize("shape", [(1,), (37,), (100_003,), (5, 70_000), (70_000, 5), (3, 40, 33), (9, 3_000, 2)])
def test_the_first_extremum_or_nan(shape, nan, dtype, name):
    generator = numpy.random.default_rng(1)
    x = (generator.standard_normal(shape) * 4).round().astype(dtype)
    if x.dtype.kind == "f":
        x[generator.random(shape) < nan] = numpy.nan
    for dim in (None, *range(len(shape))):
        places = getattr(reduction, f"arg{name}")(x, dim)
        numpy.testing.assert_array_equal(places, getattr(x, f"arg{name}")(dim))
        if dim is not None:
            values, again = getattr(reduction, f"{name}_with_indices")(x, dim)
            numpy.testing.assert_array_equal(values, getattr(x, name)(dim))
            numpy.testing.assert_array_equal(again, places)


def test_the_number_of_threads_changes_no_bit():
    x = sample((701, 1_009), "f4")
    before = adjoint.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            adjoint.set_num_threads(threads)
            results.append([reduce("sum", x, dims).tobytes() for dims in ((0,), (1,), (0, 1))])
    finally:
        adjoint.set_num_threads(before)
    assert results[0] == results[1] == results[2]


def test_operators_take_compiled_loops(monkeypatch):
    used = []
    run = LOOPS.run
    monkeypatch.setattr(
        LOOPS, "run", lambda path, *args, **options: (used.append(path), run(path, *args, **options))[1]
    )
    monkeypatch.setattr(LOOPS, "every_size", True)
    x = adjoint.tensor([[1.0, 5.0, 2.0], [4.0, float("nan"), 6.0]])
    for function in ("sum", "mean", "prod", "amax", "any", "var", "norm", "nansum", "count_nonzero"):
        used.clear()
        getattr(x, function)(dim=0)
        assert used, function
    assert x.max(1).indices.tolist() == [1, 1]
    assert not LOOPS.failures


def test_a_plan_is_kept_for_each_signature_and_followed_only_while_loops_are_enabled(monkeypatch):
    monkeypatch.setattr(LOOPS, "_enabled", True)
    monkeypatch.setattr(LOOPS, "every_size", False)

    @compiled("reduce.reduction.planned", least=1 << 10)
    def form(x: ndarray, name: str, dim: Any, keepdim: bool, dtype: str | None) -> Plan:
        return NUMPY

    x = numpy.arange(6000, dtype="f4").reshape(60, 100)
    for dim, keepdim in [(0, False), (1, True), (-1, False), (None, True), ((0, 1), False)]:
        for array in (x, x + 1, x.T):
            for name, reference in (("sum", array.sum), ("mean", array.mean), ("amax", array.max)):
                found = form(array, name, dim, keepdim, None)
                assert found.dtype == numpy.float32 and found.flags.c_contiguous
                numpy.testing.assert_allclose(found, reference(dim, keepdims=keepdim), rtol=1e-6)
                assert form.plan(array, name, dim, keepdim, None) is form.plan(array, name, dim, keepdim, None)
    assert form(x[:5], "sum", 0, False, None) is NotImplemented  # the array is too small
    assert form(x[:, ::2], "sum", (0, 1), False, None) == x[:, ::2].sum()  # a copy is reduced
    monkeypatch.setattr(LOOPS, "_enabled", False)
    assert form(x, "sum", 0, False, None) is NotImplemented


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "bool"])
@pytest.mark.long_cases
def test_reductions_have_the_dtypes_of_small_ones(dtype):
    x = (adjoint.arange(9000).reshape(90, 100) % 7).to(getattr(adjoint, dtype))
    small = x[:2, :3].contiguous()
    calls = [adjoint.sum, adjoint.amax, adjoint.any, adjoint.all, adjoint.prod, adjoint.count_nonzero]
    calls += [adjoint.mean, adjoint.nansum] if x.is_floating_point() else []
    for call in calls:
        assert call(x, dim=1).dtype == call(small, dim=1).dtype, call
    for wanted in (adjoint.float32, adjoint.float64, adjoint.int64):
        total = adjoint.sum(x, 1, dtype=wanted)
        assert total.dtype == wanted
        assert total.tolist() == adjoint.sum(x.double(), 1).tolist()


@pytest.mark.parametrize("shape", [(2000, 3), (3, 2000, 5), (9000, 1), (3, 2000)])
def test_any_and_all_of_bool_in_rows_of_any_length(shape):
    x = numpy.random.default_rng(4).random(shape) < 0.4
    for dim in (0, -1, tuple(range(len(shape)))):
        for name in ("any", "all"):
            found = getattr(adjoint.tensor(x), name)(dim).numpy()
            numpy.testing.assert_array_equal(found, getattr(x, name)(dim), strict=True)


def test_sums_in_a_wider_dtype_are_computed_in_it():
    x = adjoint.full((90, 100), 0.1)
    numpy.testing.assert_allclose(
        adjoint.sum(x, 1, dtype=adjoint.float64).numpy(), 100 * numpy.float64(numpy.float32(0.1)), rtol=1e-13
    )
