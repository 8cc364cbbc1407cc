"""Compiled kernels of matrix products."""

import itertools

import ml_dtypes
import numpy
import pytest

pytest.importorskip("llvmlite")

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.llvm.amx import TILES, has_pairs
from adjoint.kernels.compiled.linalg import products
from adjoint.kernels.compiled.linalg.products import product
from adjoint.kernels.linalg import matmul as kernels
from adjoint.kernels.runtime import parallel

SIZES = [
    (1, 1, 1),
    (1, 7, 3),
    (8, 16, 32),
    (9, 17, 33),
    (37, 53, 71),
    (65, 1, 129),
    (130, 400, 70),
    (3, 500, 600),
    (600, 9, 5),
    (40, 300, 64),
    (33, 513, 96),
    (2, 300, 1),
]

LAYOUTS = ("plain", "turned", "part", "scattered", "backwards")


def _laid_out(values, layout):
    """Return the same matrices in one of five memory layouts, surrounded by NaNs."""
    *stack, rows, columns = values.shape
    if layout == "turned":
        return values.swapaxes(-1, -2).copy().swapaxes(-1, -2)
    if layout == "part":
        laid = numpy.full((*stack, rows + 3, columns + 5), numpy.nan, values.dtype)[..., 2:-1, 1:-4]
    elif layout == "scattered":
        laid = numpy.full((*stack, rows, 2 * columns), numpy.nan, values.dtype)[..., ::2]
    elif layout == "backwards":
        laid = numpy.empty(values.shape, values.dtype)[..., ::-1, :]
    else:
        laid = numpy.empty(values.shape, values.dtype)
    laid[...] = values
    return laid


def _close(found, exact, depth):
    assert found.dtype != exact.dtype or found.shape == exact.shape
    numpy.testing.assert_allclose(found, exact, rtol=0, atol=8 * numpy.finfo(found.dtype).eps * (depth + 4))


@pytest.mark.one_each("size")
@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products_of_matrices_in_all_layouts(size, kind, threads, monkeypatch):
    monkeypatch.setattr(parallel, "num_threads", threads)
    rows, depth, columns = size
    generator = numpy.random.default_rng(rows + depth)
    a, b, added = (generator.standard_normal(n).astype(kind) for n in ((rows, depth), (depth, columns), columns))
    exact = a.astype(numpy.longdouble) @ b.astype(numpy.longdouble)  # this product takes longer than all products below
    for left in LAYOUTS:
        for right in LAYOUTS:
            a, b = _laid_out(a, left), _laid_out(b, right)
            _close(product(a, b), exact, depth)
            _close(product(a, b, added), exact + added, depth)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 2, 3, 17, 64])
@pytest.mark.parametrize("size", [(1, 1, 1), (4, 8, 3), (32, 32, 32), (31, 70, 65), (100, 3, 40)], ids=str)
def test_products_of_stacks(size, count, kind):
    rows, depth, columns = size
    generator = numpy.random.default_rng(count)
    a, b = (generator.standard_normal(n).astype(kind) for n in ((count, rows, depth), (count, depth, columns)))
    exact = a.astype(numpy.longdouble) @ b.astype(numpy.longdouble)
    for left in ("plain", "turned", "part"):
        for right in ("plain", "turned", "part"):
            a, b = _laid_out(a, left), _laid_out(b, right)
            _close(product(a, b), exact, depth)
    one = numpy.broadcast_to(generator.standard_normal((rows, depth)).astype(kind), (count, rows, depth))
    _close(product(one, b), one.astype(numpy.longdouble) @ b.astype(numpy.longdouble), depth)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_numbers_that_are_not_finite_stay_in_their_rows_and_columns(threads, monkeypatch):
    monkeypatch.setattr(parallel, "num_threads", threads)
    a, b = numpy.ones((150, 140), "float32"), numpy.ones((140, 130), "float32")
    a[3, 5], b[7, 129] = numpy.nan, numpy.inf
    found = product(a, b)
    expected = numpy.full((150, 130), 140.0, "float32")
    expected[:, 129] = numpy.inf
    expected[3] = numpy.nan
    numpy.testing.assert_array_equal(found, expected)


def test_the_result_is_the_same_in_every_run():
    generator = numpy.random.default_rng(0)
    a, b = generator.standard_normal((500, 300)).astype("f"), generator.standard_normal((300, 200)).astype("f")
    first = product(a, b).tobytes()
    assert all(product(a, b).tobytes() == first for _ in range(20))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_layouts_blocks_and_threads_do_not_change_the_bits_of_tiles(kind, threads, monkeypatch):
    monkeypatch.setattr(LOOPS, "every_size", True)
    generator = numpy.random.default_rng(0)
    a, b, added = (generator.standard_normal(n).astype(kind) for n in ((155, 530), (530, 606), 606))
    monkeypatch.setattr(parallel, "num_threads", 1)
    expected = product(a, b, added, by_pieces=False)
    monkeypatch.setattr(parallel, "num_threads", threads)
    for left in LAYOUTS:
        for right in LAYOUTS:
            whole = _laid_out(a, left), _laid_out(b, right)
            assert product(*whole, added, by_pieces=False).tobytes() == expected.tobytes(), (left, right)
    for rows, columns in ((16, 606), (24, 64), (63, 224), (155, 96)):
        part = product(a[-rows:], b[:, :columns], added[:columns], by_pieces=False)
        assert part.tobytes() == expected[-rows:, :columns].tobytes(), (rows, columns)


def test_what_it_does_not_compute_is_left_to_others():
    ones = numpy.ones((4, 4))
    assert product(ones, ones.astype("f")) is NotImplemented
    assert product(ones.astype(complex), ones.astype(complex)) is NotImplemented
    assert product(numpy.ones((0, 4)), ones) is NotImplemented
    assert product(ones, ones, ones[:, 0]) is NotImplemented
    shifted = numpy.zeros(4 * 4 * 8 + 1, numpy.uint8)[1:].view(numpy.float64).reshape(4, 4)
    numpy.testing.assert_array_equal(product(shifted, ones), shifted @ ones)


@pytest.mark.parametrize("bias", [False, True])
def test_large_layers_take_it_and_have_its_gradients(bias, monkeypatch):
    calls = []
    run = LOOPS.run

    def recorded(path, *args, **options):
        calls.append(path)
        return run(path, *args, **options)

    monkeypatch.setattr(LOOPS, "run", recorded)
    torch.manual_seed(0)
    x = torch.randn(200, 90, requires_grad=True)
    weight, offset = torch.randn(110, 90, requires_grad=True), torch.randn(110, requires_grad=True)
    wide = [each.detach().double().requires_grad_() for each in (x, weight, offset)]
    result = torch.nn.functional.linear(x, weight, offset if bias else None)
    exact = torch.nn.functional.linear(wide[0], wide[1], wide[2] if bias else None)
    assert torch.allclose(result.double(), exact, atol=1e-4)
    result.square().sum().backward()
    exact.square().sum().backward()
    for found, expected in zip((x, weight, offset), wide, strict=True):
        if expected.grad is not None:
            assert torch.allclose(found.grad.double(), expected.grad, rtol=1e-4, atol=1e-2)
    assert calls.count("linalg.products.product") == 6


def test_shapes_that_do_not_fit_raise_the_usual_error():
    a, b = torch.ones(200, 100), torch.ones(101, 200)
    with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(200x100 and 101x200\)"):
        a @ b
    with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(200x100 and 101x200\)"):
        torch.addmm(torch.ones(200), a, b)
    assert kernels.shared_product(a.numpy(), b.numpy()) is NotImplemented


needs_tiles = pytest.mark.skipif(not TILES.usable, reason="this processor has no tile registers")


@needs_tiles
@pytest.mark.one_each("size")
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("kind", [numpy.float32, ml_dtypes.bfloat16, numpy.float16])
@pytest.mark.parametrize("size", [*SIZES, (300, 1100, 500), (40, 30, 7000), (2000, 40, 33)], ids=str)
def test_products_by_pieces_are_as_accurate_as_float32(size, kind, threads, monkeypatch):
    monkeypatch.setattr(parallel, "num_threads", threads)
    monkeypatch.setattr(LOOPS, "every_size", True)
    rows, depth, columns = size
    generator = numpy.random.default_rng(rows + depth)
    a, b, added = (generator.standard_normal(n).astype(kind) for n in ((rows, depth), (depth, columns), columns))
    exact = a.astype(numpy.float64) @ b.astype(numpy.float64)
    scale = numpy.abs(a).astype(numpy.float64) @ numpy.abs(b).astype(numpy.float64) + 1e-3
    for left in LAYOUTS:
        for right in LAYOUTS:
            a, b = _laid_out(a, left), _laid_out(b, right)
            found = product(a, b)
            assert found.dtype == numpy.float32
            assert (numpy.abs(found - exact) / scale).max() < 5e-7
            if kind is numpy.float32:
                assert (numpy.abs(product(a, b, added) - (exact + added)) / (scale + numpy.abs(added))).max() < 5e-7


@needs_tiles
@pytest.mark.parametrize("columns", [130, 160])
def test_products_by_pieces_of_whole_numbers_are_exact(columns):
    generator = numpy.random.default_rng(0)
    a, b = generator.integers(-2000, 2000, (200, 300)), generator.integers(-20, 20, (300, columns))
    numpy.testing.assert_array_equal(product(a.astype("f"), b.astype("f")), a @ b)
    large = generator.integers(-(1 << 24), 1 << 24, (200, 300)).astype("f")
    numpy.testing.assert_array_equal(product(large, numpy.eye(300, columns, dtype="f")), large[:, :columns])


@needs_tiles
@pytest.mark.parametrize("place", ["a", "b", "added"])
@pytest.mark.parametrize("number", [numpy.inf, -numpy.inf, numpy.nan, 3.4e38, 1e-42, -1e-45, 1e-36, 0.0])
def test_pieces_are_not_made_of_numbers_at_the_ends(number, place):
    generator = numpy.random.default_rng(0)
    arrays = {"a": (150, 140), "b": (140, 130), "added": (130,)}
    arrays = {name: generator.standard_normal(shape).astype("f") for name, shape in arrays.items()}
    arrays[place][...] *= numpy.float32(1e-5)
    arrays[place][-1] = number
    if place != "added":
        arrays["added"][...] = 0
    a, b, added = arrays.values()
    found, by_vectors = product(a, b, added), product(a, b, added, False)
    if number == 0.0 or (place == "added" and number not in (1e-42, -1e-45)):
        exact = a.astype(numpy.float64) @ b + added
        _close(found, exact, 140)
    else:
        numpy.testing.assert_array_equal(found, by_vectors)


@needs_tiles
def test_products_whose_sums_would_overflow_in_pieces_are_made_by_vectors():
    ones = numpy.full((128, 128), 1.7e19, "f")
    numpy.testing.assert_array_equal(product(ones, ones), product(ones, ones, None, False))
    tiny = numpy.full((128, 128), 1e-20, "f")
    numpy.testing.assert_array_equal(product(tiny, tiny), product(tiny, tiny, None, False))
    assert (product(tiny, tiny) > 0).all()


@pytest.mark.skipif(TILES.usable or not has_pairs(), reason="this processor has no products of pairs, or better ones")
@pytest.mark.parametrize("depth", [1, 2, 65, 300])
@pytest.mark.parametrize("stack", [(), (1,), (5,)])
def test_products_of_bfloat16_in_pairs(depth, stack, monkeypatch):
    monkeypatch.setattr(LOOPS, "every_size", True)
    numbers = numpy.random.default_rng(depth)
    a, b = (numbers.standard_normal((*stack, *size)).astype(ml_dtypes.bfloat16) for size in ((37, depth), (depth, 45)))
    exact = a.astype(float) @ b.astype(float)
    for first, second in itertools.product(LAYOUTS, LAYOUTS):
        found = product(_laid_out(a, first), _laid_out(b, second))
        assert found.dtype == numpy.float32
        numpy.testing.assert_allclose(found, exact, rtol=0, atol=1e-6 * depth)


@pytest.mark.skipif(not TILES.usable and not has_pairs(), reason="this processor does not multiply half types")
@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_products_of_half_types_are_rounded_once(kind):
    torch.manual_seed(0)
    a, b, c = (torch.randn(size).to(getattr(torch, kind)) for size in ((150, 300), (300, 140), (140,)))
    exact = a.double() @ b.double()
    assert torch.equal(a @ b, exact.float().to(a.dtype)) or (a @ b - exact).abs().max() < 2**-7 * exact.abs().max()
    assert torch.allclose(torch.addmm(c, a, b).double(), exact + c.double(), rtol=2**-7, atol=2**-6)
    a[3, 4] = torch.inf
    assert (a @ b).isinf().sum() == 140


def test_products_by_pieces_on_one_thread_are_left_out_of_native_runs(monkeypatch):
    made = products._plan

    def plan(a, b, char, threads, by_pieces, *options):
        return made(a, b, char, threads, False, *options)._replace(by_pieces=by_pieces and threads == 1)

    monkeypatch.setattr(products, "_plan", plan)
    monkeypatch.setattr(parallel, "num_threads", 2)
    layout = (96, 96), (384, 4)
    assert products.in_run(layout, layout, "f", False, False) is NotImplemented
    launch = products.in_run(layout, layout, "f", False, True)  # as NumPy multiplies them
    assert len(launch.words(1, 0)) == len(launch.words(2, 0)) == launch.size
