"""Special functions and windows where plain formulas overflow, and attention of half types."""

import math

import numpy
import pytest

import adjoint as torch


@pytest.mark.parametrize("beta", [100.0, 1e4])
def test_kaisers_window_does_not_overflow(beta):
    for window in (
        torch.signal.windows.kaiser(9, beta=beta, dtype=torch.float64),
        torch.kaiser_window(9, periodic=False, beta=beta, dtype=torch.float64),
    ):
        numpy.testing.assert_allclose(window.numpy(), window.flip(0).numpy(), rtol=1e-9)
        assert window[4] == 1
        assert bool((window[:4] < window[1:5]).all() if beta < 1000 else (window[:4] < 1e-100).all())


def test_zeta_at_its_poles_and_where_the_sum_underflows():
    nan, inf = math.nan, math.inf
    found = torch.special.zeta(torch.tensor([nan, nan, 1e20, 2.0, 2.0]), torch.tensor([-2.0, -inf, 501.0, inf, -3.0]))
    numpy.testing.assert_array_equal(found.numpy(), [inf, inf, 0.0, nan, inf])


def test_functions_of_special_take_numpys_names():
    x = torch.tensor([1.5])
    assert torch.equal(torch.special.xlogy(x=x, x2=x), torch.special.xlogy(x, x))
    assert torch.equal(torch.special.xlog1py(x1=x, x2=x), torch.special.xlog1py(x, x))
    assert torch.equal(torch.special.polygamma(n=1, x=x), torch.special.polygamma(1, x))


def test_statistics_of_group_norm_have_tangents():
    x = torch.arange(24.0, dtype=torch.float64).reshape(2, 4, 3).sin()

    def statistics(x):
        return torch.native_group_norm(x, None, None, 2, 4, 3, 2, 1e-5)[1:]

    forward = torch.func.jacfwd(statistics)(x)
    for tangent, gradient in zip(forward, torch.func.jacrev(statistics)(x), strict=True):
        assert tangent.abs().sum() > 0
        numpy.testing.assert_allclose(tangent.numpy(), gradient.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(4, 3, 8), (2, 2, 3, 8)])
def test_attention_of_half_types_rounds_no_scores(dtype, shape):
    torch.manual_seed(0)
    query, key, value = ((torch.randn(shape) * 9).to(dtype) for _ in range(3))
    exact = torch.nn.functional.scaled_dot_product_attention(query.double(), key.double(), value.double())
    found = torch.nn.functional.scaled_dot_product_attention(query, key, value)
    assert found.dtype == dtype
    assert (found.double() - exact).abs().max() <= torch.finfo(dtype).eps * exact.abs().max()
