"""Identities of special functions, and losses and layers with known results."""

import itertools
import math

import numpy
import pytest

import adjoint as torch

POINTS = torch.tensor([1e-3, 0.5, 1.9, 2.1, 4.9, 5.1, 17.0, 300.0], dtype=torch.float64)


def close(one, other, rtol=1e-12):
    torch.testing.assert_close(one, other, rtol=rtol, atol=1e-13)


def test_bessel_functions_obey_their_wronskians():
    special = torch.special
    turned = special.bessel_j1(POINTS) * special.bessel_y0(POINTS) - special.bessel_j0(POINTS) * special.bessel_y1(
        POINTS
    )
    close(turned * POINTS, torch.full_like(POINTS, 2 / math.pi))
    modified = special.i0e(POINTS) * special.scaled_modified_bessel_k1(POINTS)
    modified = modified + special.i1e(POINTS) * special.scaled_modified_bessel_k0(POINTS)
    close(modified * POINTS, torch.ones_like(POINTS))


def test_bessel_functions_of_the_edges():
    edges = torch.tensor([-1.0, 0.0, math.inf, math.nan])
    assert torch.special.bessel_y0(edges).isnan().tolist() == [True, False, True, True]
    assert torch.special.modified_bessel_k0(edges).nan_to_num(7.0).tolist() == [
        7.0,
        torch.finfo(torch.float32).max,
        0.0,
        7.0,
    ]
    assert torch.special.spherical_bessel_j0(edges[1:3]).tolist() == [1.0, 0.0]


def test_the_airy_function_is_smooth_where_its_formulas_meet():
    for meeting in (-3.7, 2.1):
        around = torch.special.airy_ai(torch.tensor([meeting - 1e-9, meeting + 1e-9], dtype=torch.float64))
        assert abs(around[0] - around[1]).item() < 1e-8
    assert torch.special.airy_ai(torch.tensor(0.0, dtype=torch.float64)).item() == pytest.approx(0.3550280538878172)


@pytest.mark.parametrize(
    ("name", "polynomial"),
    [
        ("legendre_polynomial_p", numpy.polynomial.Legendre),
        ("laguerre_polynomial_l", numpy.polynomial.Laguerre),
        ("hermite_polynomial_h", numpy.polynomial.Hermite),
        ("hermite_polynomial_he", numpy.polynomial.HermiteE),
        ("chebyshev_polynomial_t", numpy.polynomial.Chebyshev),
    ],
)
def test_polynomials_are_those_of_numpy(name, polynomial):
    x = numpy.linspace(-1.5, 1.5, 13)
    for degree in range(12):
        found = getattr(torch.special, name)(torch.from_numpy(x), degree)
        numpy.testing.assert_allclose(found.numpy(), polynomial.basis(degree)(x), rtol=1e-9, atol=1e-9)


def test_chebyshev_polynomials_by_their_angle():
    angle = torch.linspace(0.1, 3.0, 9, dtype=torch.float64)
    x, degree = torch.cos(angle), torch.tensor([[3], [40]])
    special = torch.special
    close(special.chebyshev_polynomial_u(x, degree), torch.sin((degree + 1) * angle) / torch.sin(angle), 1e-9)
    close(special.chebyshev_polynomial_v(x, degree), torch.cos((degree + 0.5) * angle) / torch.cos(angle / 2), 1e-9)
    close(special.chebyshev_polynomial_w(x, degree), torch.sin((degree + 0.5) * angle) / torch.sin(angle / 2), 1e-9)
    close(special.shifted_chebyshev_polynomial_t((x + 1) / 2, degree), special.chebyshev_polynomial_t(x, degree), 1e-9)


def test_the_loss_of_labels_is_the_sum_over_all_paths():
    log_probs = torch.randn(4, 1, 3, dtype=torch.float64).log_softmax(-1)
    target, total = [1, 2], 0.0
    for path in itertools.product(range(3), repeat=4):
        runs = [label for label, _ in itertools.groupby(path)]
        if [label for label in runs if label] == target:
            total += math.exp(sum(log_probs[time, 0, label].item() for time, label in enumerate(path)))
    loss = torch.nn.CTCLoss(reduction="sum")(log_probs, torch.tensor([target]), (4,), (2,))
    assert loss.item() == pytest.approx(-math.log(total))


def test_unpooling_undoes_pooling():
    images = torch.rand(2, 3, 4, 4)
    pooled, indices = torch.nn.MaxPool2d(2, return_indices=True)(images)
    back = torch.nn.MaxUnpool2d(2)(pooled, indices)
    assert torch.equal(torch.nn.MaxPool2d(2)(back), pooled)
    assert (back != 0).sum().item() == pooled.numel()
    with pytest.raises(ValueError, match="invalid output_size"):
        torch.nn.MaxUnpool2d(2)(pooled, indices, output_size=(9, 9))


def test_the_identity_reads_the_image_as_it_is():
    images = torch.rand(2, 3, 5, 4, dtype=torch.float64)
    grid = torch.nn.functional.affine_grid(torch.eye(2, 3, dtype=torch.float64).expand(2, 2, 3), (2, 3, 5, 4), False)
    for mode in ("bilinear", "nearest", "bicubic"):
        close(torch.nn.functional.grid_sample(images, grid, mode, "border", align_corners=False), images)


@pytest.mark.parametrize("size", [4, 10, 14, 28, 33])
def test_positions_in_pixels_are_rounded_once_so_the_identity_has_pytorchs_gradient(size):
    grid = torch.nn.functional.affine_grid(torch.eye(2, 3)[None], (1, 1, size, size), align_corners=False)
    assert torch.equal(grid[0, 0, :, 0], torch.linspace(-1, 1, size) * (size - 1) / size)
    images = (torch.arange(float(size)) ** 2).expand(1, 1, size, size)
    torch.nn.functional.grid_sample(images, grid.requires_grad_(), align_corners=False).sum().backward()
    lower = (((grid[0, 1, :, 0].detach() + 1).double() * size - 1) / 2).float().floor()
    assert torch.allclose(grid.grad[0, 1, 1:-1, 0], ((2 * lower + 1) * size / 2)[1:-1], rtol=1e-5)


@pytest.mark.parametrize(
    "name", ["bartlett", "blackman", "cosine", "exponential", "gaussian", "hann", "kaiser", "nuttall"]
)
def test_windows_are_symmetric_and_periodic_ones_are_longer_ones_cut(name):
    window = getattr(torch.signal.windows, name)
    close(window(8, dtype=torch.float64), window(8, dtype=torch.float64).flip(0))
    close(window(8, sym=False, dtype=torch.float64), window(9, dtype=torch.float64)[:8])
    with pytest.raises(ValueError, match="non-negative window length"):
        window(-1)
