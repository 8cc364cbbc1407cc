"""Special functions and windows for arguments at which plain formulas overflow, and attention in half types."""

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
    found = torch.special.zeta(
        torch.tensor([inf, inf, 1e20, 2.0, 2.0, inf]), torch.tensor([-2.0, 2.0, 501.0, inf, -3.0, 1.0])
    )
    numpy.testing.assert_array_equal(found.numpy(), [inf, 0.0, 0.0, nan, inf, 1.0])


POLYNOMIALS = [name for name in dir(torch.special) if "polynomial" in name and not name.startswith("shifted")]


@pytest.mark.parametrize("repeats", [1, 4000])  # compiled loops compute these too
@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "zeta", "xlogy", "xlog1py", *POLYNOMIALS])
def test_what_is_given_a_parameter_of_nan_is_nan(name, repeats):
    function = getattr(torch.special, name)
    other = torch.tensor([0.0, 1.0, -1.0, 2.5, math.inf, -math.inf, math.nan], dtype=torch.float64).repeat(repeats)
    nan = torch.full_like(other, math.nan)
    assert function(other, nan).isnan().all()
    if "polynomial" not in name:  # polynomials of degree 0 are constant
        assert function(nan, other).isnan().all()


@pytest.mark.parametrize("repeats", [1, 4000])
@pytest.mark.parametrize("name", ["i0", "i1", "modified_bessel_i0", "modified_bessel_i1"])
def test_modified_bessel_functions_overflow_where_they_do_not_fit(name, repeats):
    x = torch.tensor([650.0, 709.0, 710.0, 713.0, 713.98, 714.0, 1e6], dtype=torch.float64)
    found = getattr(torch.special, name)(x.repeat(repeats))[:7]
    scaled = getattr(torch.special, f"{name[-2:]}e")(x)
    expected = (scaled.log() + x).numpy()
    numpy.testing.assert_allclose(found[:5].log().numpy(), expected[:5], rtol=1e-14)
    assert found[5:].isinf().all()


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
