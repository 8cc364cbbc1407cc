"""Covariances, correlations, integrals and differences of samples."""

import numpy
import pytest

import adjoint as torch


def test_cov_is_numpys():
    x = numpy.random.default_rng(0).standard_normal((3, 6))
    often, much = numpy.array([1, 2, 1, 0, 3, 1]), numpy.array([0.5, 1.0, 2.0, 1.0, 0.1, 0.7])
    for options in ({}, {"ddof": 0}, {"fweights": often}, {"aweights": much}, {"fweights": often, "aweights": much}):
        ours = {("correction" if name == "ddof" else name): value for name, value in options.items()}
        ours = {name: torch.from_numpy(v) if isinstance(v, numpy.ndarray) else v for name, v in ours.items()}
        numpy.testing.assert_allclose(torch.cov(torch.from_numpy(x), **ours).numpy(), numpy.cov(x, **options))


def test_cov_without_degrees_of_freedom_warns():
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        assert torch.cov(torch.tensor(3.0)).isnan()


def test_cov_refuses_weights_of_another_kind():
    x = torch.ones(2, 3)
    with pytest.raises(
        RuntimeError, match="expected fweights to have integral dtype but got fweights with Float dtype"
    ):
        torch.cov(x, fweights=torch.ones(3))
    with pytest.raises(RuntimeError, match="aweights cannot be negative"):
        torch.cov(x, aweights=-torch.ones(3))


def test_corrcoef_is_numpys():
    x = numpy.random.default_rng(0).standard_normal((3, 6))
    numpy.testing.assert_allclose(torch.corrcoef(torch.from_numpy(x)).numpy(), numpy.corrcoef(x))
    complex_x = x + 1j * x[::-1] ** 2
    numpy.testing.assert_allclose(torch.corrcoef(torch.from_numpy(complex_x)).numpy(), numpy.corrcoef(complex_x))


def test_trapezoid():
    y = torch.tensor([[1.0, 2.0, 4.0], [0.0, 1.0, 0.0]])
    assert torch.trapezoid(y).tolist() == [4.5, 1.0]
    assert torch.trapezoid(y, torch.tensor([0.0, 2.0, 3.0])).tolist() == [6.0, 1.5]
    assert torch.trapezoid(y, dx=2.0, dim=0).tolist() == [1.0, 3.0, 4.0]
    assert torch.cumulative_trapezoid(y).tolist() == [[1.5, 4.5], [0.5, 1.0]]
    assert torch.trapezoid(torch.ones(3, 0)).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(RuntimeError, match="There must be one `x` value for each sample point"):
        torch.trapezoid(y, torch.ones(2))
    with pytest.raises(RuntimeError, match="bool is not supported"):
        torch.cumulative_trapezoid(y > 1)


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient_is_numpys(edge_order):
    x = numpy.random.default_rng(0).standard_normal((5, 4))
    points = numpy.array([0.0, 1.0, 1.5, 3.0, 7.0])
    numpy.testing.assert_allclose(
        torch.gradient(torch.from_numpy(x), spacing=(torch.from_numpy(points),), dim=0, edge_order=edge_order)[
            0
        ].numpy(),
        numpy.gradient(x, points, axis=0, edge_order=edge_order),
    )
    for ours, theirs in zip(
        torch.gradient(torch.from_numpy(x), spacing=(2.0, 0.5), edge_order=edge_order),
        numpy.gradient(x, 2.0, 0.5, edge_order=edge_order),
        strict=True,
    ):
        numpy.testing.assert_allclose(ours.numpy(), theirs)


def test_gradients_of_all():
    y, x = (
        torch.rand(3, 5, dtype=torch.float64, requires_grad=True),
        torch.rand(5, dtype=torch.float64, requires_grad=True),
    )
    torch.autograd.backward(
        [torch.trapezoid(y, x).sum(), torch.cov(y).sum(), torch.corrcoef(y).sum(), torch.gradient(y)[0].sum()]
    )
    assert y.grad.shape == (3, 5) and x.grad.shape == (5,)


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize(("dim", "keepdim"), [(None, False), (None, True), (0, False), (1, True), (-1, False)])
def test_quantiles_are_those_that_are_recorded(interpolation, dim, keepdim):
    x = torch.from_numpy(numpy.random.default_rng(0).standard_normal((4, 7)))
    x[1, 2] = float("nan")
    for q in (0.0, 0.3, 1.0):
        found = x.quantile(q, dim, keepdim, interpolation=interpolation)
        expected = x.clone().requires_grad_().quantile(q, dim, keepdim, interpolation=interpolation)
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
        assert found.stride() == expected.stride()
        assert found._version == expected._version


@pytest.mark.parametrize(
    "x", [[1.0, 2.0, 4.0], [1e-25, 3e-25], [1e25, -1e25], [0.0, -0.0], [float("nan"), 1.0], [3.0] * 99]
)
def test_moments_of_few_are_those_of_rows(x):
    x = torch.tensor(x)
    for name in ("std", "var"):
        for correction in (0, 0.5, 1):
            found, row = (getattr(item, name)(-1, correction=correction) for item in (x, x[None]))
            assert (found == row).all() or (found.isnan() and row.isnan().all())


def test_the_median_of_few_numbers():
    assert torch.tensor([3.0, 1.0, 2.0, 0.5]).median() == 1.0
    assert torch.tensor([3.0, float("nan"), 2.0]).median().isnan()
    zeros = torch.tensor([0.0, -0.0, 1.0])
    assert zeros.median().signbit() == zeros.sort(stable=True).values[1].signbit()


@pytest.mark.parametrize("numbers", [[], [-2.0, -1.0, -2.0], [0.0, -1.0, 0.0]])
def test_unique_elements_of_few_numbers(numbers):
    found, counts = torch.tensor(numbers).unique(return_counts=True)
    assert found.tolist() == torch.tensor(numbers).unique().tolist() == sorted(set(numbers))
    assert counts.sum() == len(numbers)


@pytest.mark.parametrize("columns", [1, 2, 30])
def test_unique_rows_are_in_lexicographic_order(columns):
    torch.manual_seed(0)
    x = torch.randint(0, 2, (200, columns)).to(torch.float64)
    found, inverse, counts = x.unique(dim=0, return_inverse=True, return_counts=True)
    assert found.tolist() == [list(row) for row in sorted(set(map(tuple, x.tolist())))]
    assert torch.equal(found[inverse], x)
    assert counts.tolist() == inverse.bincount().tolist()


def test_rows_with_nan_are_different_and_ordered_by_later_columns():
    x = torch.tensor([[torch.nan, 3.0], [torch.nan, 1.0], [0.0, 2.0], [-0.0, 1.0]])
    assert x.unique(dim=0)[:, 1].tolist() == [1.0, 2.0, 1.0, 3.0]


def test_numbers_of_a_large_vector_are_counted():
    numbers = torch.arange(5000) ** 2 % 97
    assert numbers.bincount(minlength=200).tolist() == [numbers.tolist().count(each) for each in range(200)]
    with pytest.raises(RuntimeError, match="non-negative"):
        (numbers - 1).bincount()


@pytest.mark.parametrize("function", [torch.median, torch.nanmedian])
def test_out_of_medians_has_the_dtypes_of_the_results(function):
    x = torch.tensor([[3.0, 1.0, 2.0]])
    with pytest.raises(
        RuntimeError, match=r"argument #1 'indices' to have scalar type Long; but got torch.FloatTensor"
    ):
        function(x, 1, out=(torch.empty(0), torch.empty(0)))
    with pytest.raises(RuntimeError, match=r"type torch.DoubleTensor does not equal torch.FloatTensor"):
        function(x, 1, out=(torch.empty(0).double(), torch.empty(0).long()))
    values, indices = function(x, 1, out=(torch.empty(0), torch.empty(0).long()))
    assert values.tolist() == [2.0] and indices.tolist() == [2]


@pytest.mark.parametrize("q", [[0.5], "0.5", None, 1j])
@pytest.mark.parametrize("function", [torch.quantile, torch.nanquantile])
def test_quantiles_of_other_types_are_refused(function, q):
    with pytest.raises(TypeError, match=r"invalid combination of arguments.*\n \* \(Tensor input, Tensor q"):
        function(torch.ones(3), q)


def test_aminmax_takes_one_dimension():
    x = torch.ones(2, 3)
    with pytest.raises(TypeError, match="argument 'dim' must be int, not tuple"):
        torch.aminmax(x, dim=(0, 1))
    with pytest.raises(NotImplementedError, match="aminmax_cpu"):
        torch.aminmax(x + 1j)
