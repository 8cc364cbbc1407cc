"""NumPy's forms for many elements compute the same as those for few."""

import numpy
import pytest

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS
from adjoint.kernels.nn import normalization
from adjoint.kernels.reduce.counting import searchsorted
from adjoint.nn import functional


@pytest.fixture(autouse=True)
def by_numpy(monkeypatch):
    monkeypatch.setattr(LOOPS, "_enabled", False)


def _numbers(*shape):
    x = torch.from_numpy(numpy.random.default_rng(0).integers(-3, 4, shape).astype("f"))
    x[0, 0, 5:9], x[1, 1], x[1, 2, 7] = float("nan"), -float("inf"), float("inf")
    return x


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_maxima_of_windows(dtype):
    x = _numbers(30, 40, 60).to(dtype)
    many = functional.max_pool1d(x, 3, 2, 1, return_indices=True)
    few = [functional.max_pool1d(x[i : i + 1, :4], 3, 2, 1, return_indices=True) for i in range(30)]
    for found, parts in zip(many, zip(*few, strict=True), strict=True):
        assert numpy.array_equal(found[:, :4].float().numpy(), torch.cat(parts).float().numpy(), equal_nan=True)
    assert numpy.array_equal(functional.max_pool1d(x, 3, 2, 1).float().numpy(), many[0].float().numpy(), equal_nan=True)


@pytest.mark.parametrize("p", [0, 1, 2, 3.5, float("inf")])
@pytest.mark.parametrize("shape", [(100, 32), (2, 40000)])
def test_distances_of_pairs(p, shape):
    x = torch.from_numpy(numpy.random.default_rng(0).standard_normal(shape))
    rows, columns = numpy.triu_indices(len(x), 1)
    torch.testing.assert_close(functional.pdist(x, p), torch.cdist(x, x, p)[rows.tolist(), columns.tolist()])


@pytest.mark.parametrize("name", ["exp", "neg", "isnan", "mul", "maximum", "lt", "pow"])
def test_bfloat16(name):
    operands = [_numbers(30, 40, 60).bfloat16() for _ in range(2 if name in ("mul", "maximum", "lt", "pow") else 1)]
    many = getattr(torch, name)(*operands)
    few = [getattr(torch, name)(*[x[i, :4] for x in operands]) for i in range(30)]
    torch.testing.assert_close(many[:, :4], torch.stack(few), rtol=0.008, atol=0, equal_nan=True)


@pytest.mark.parametrize("affine", [False, True])
def test_gradients_of_batch_norm_with_given_statistics(affine):
    random = numpy.random.default_rng(0)
    grad, x = random.standard_normal((2, 40, 30, 30))
    mean, rstd, weight = random.random((3, 30))
    given = mean, rstd, weight if affine else None
    to_input, along, total = normalization._batch_gradients(grad, x, given[2], *given[:2], False, True)
    parts = [
        normalization._batch_gradients(grad[i : i + 1], x[i : i + 1], given[2], *given[:2], False, True)
        for i in range(40)
    ]
    assert numpy.array_equal(to_input, numpy.concatenate([part[0] for part in parts]))
    numpy.testing.assert_allclose(along, sum(part[1] for part in parts), rtol=1e-12)
    numpy.testing.assert_allclose(total, sum(part[2] for part in parts), rtol=1e-12)


@pytest.mark.parametrize("right", [False, True])
def test_positions_in_sorted_rows(right):
    random = numpy.random.default_rng(0)
    rows = numpy.sort(random.integers(-9, 9, (40, 50)).astype("f"), -1)
    values = random.integers(-9, 9, (40, 30)).astype("f")
    values[0, 0], values[3, 4] = numpy.nan, numpy.inf
    few = [searchsorted(rows[i : i + 1, :20], values[i : i + 1, :5], right=right) for i in range(40)]
    expected = [rows[i, :20].searchsorted(values[i, :5], "right" if right else "left") for i in range(40)]
    assert numpy.array_equal(numpy.concatenate(few), expected)
    assert numpy.array_equal(
        searchsorted(rows, values, right=right),
        [a.searchsorted(b, "right" if right else "left") for a, b in zip(rows, values, strict=True)],
    )
