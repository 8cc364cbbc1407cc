"""Norms and normalization of numbers whose squares underflow or overflow."""

import math

import pytest

import adjoint as torch
import adjoint.nn.functional as F

LARGE_AND_SMALL = [
    (torch.float32, 1e20),
    (torch.float32, 1e30),
    (torch.float32, 1e36),
    (torch.float64, 1e200),
    (torch.bfloat16, 1e20),
]
NORMALIZATIONS = {
    "layer": lambda x: F.layer_norm(x, x.shape[2:]),
    "group": lambda x: F.group_norm(x, 2),
    "batch": lambda x: F.batch_norm(x, None, None, training=True),
    "instance": lambda x: F.instance_norm(x),
    "rms": lambda x: F.rms_norm(x, x.shape[2:]),
    "normalize": lambda x: F.normalize(x, dim=-1),
    "one image": lambda x: F.batch_norm(x[1:2], None, None, training=True),
    "columns": lambda x: F.batch_norm(x.flatten(1), None, None, training=True),
}
OF_CHANNELS = ("batch", "one image", "columns")  # one group contains only large samples


@pytest.mark.parametrize("places", [5, 2000])  # compiled loops compute these too
@pytest.mark.parametrize(("dtype", "factor"), LARGE_AND_SMALL)
@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_what_is_normalized_does_not_depend_on_its_scale(name, dtype, factor, places):
    torch.manual_seed(0)
    x = torch.randn(3, 4, places, dtype=torch.float64)
    large = (x * factor).to(dtype)
    large[0, :2] = x[0, :2].to(dtype)  # some groups are not large
    exact = large.double() * (1e-100 if dtype is torch.float64 else 1.0) if name in OF_CHANNELS else x
    tolerance = {"rtol": 0.05, "atol": 0.05} if dtype is torch.bfloat16 else {"rtol": 1e-3, "atol": 1e-4}
    torch.testing.assert_close(NORMALIZATIONS[name](large).double(), NORMALIZATIONS[name](exact), **tolerance)


@pytest.mark.parametrize("name", ["layer", "rms", "normalize", "group", "batch"])
def test_gradients_of_normalized_values_are_proportional(name):
    torch.manual_seed(0)
    x, weights = torch.randn(3, 4, 5), torch.randn(3, 4, 5)
    gradients = []
    for scale in (1.0, 1e20):
        leaf = (x * scale).requires_grad_()
        gradients.append(torch.autograd.grad(NORMALIZATIONS[name](leaf), leaf, weights)[0] * scale)
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [None, 0, 1, (0, 1)], ids=str)
@pytest.mark.parametrize("order", [2, 3, 1.5, 4, 0.5, -2])
@pytest.mark.parametrize(
    ("dtype", "factor"),
    [(torch.float32, 1e30), (torch.float32, 1e-30), (torch.float64, 1e250), (torch.complex64, 1e30)],
)
def test_powers_in_a_norm_do_not_overflow(order, dim, keepdim, dtype, factor):
    torch.manual_seed(0)
    x = torch.randn(3, 40, dtype=dtype)
    norm = torch.linalg.vector_norm
    expected = norm(x, order, dim, keepdim)
    leaf = (x * factor).requires_grad_()
    found = norm(leaf, order, dim, keepdim)
    torch.testing.assert_close(found / factor, expected, rtol=1e-4, atol=0)
    if order > 1:
        leaf_of_small = x.clone().requires_grad_()
        gradients = [torch.autograd.grad(norm(a, order, dim).sum(), a)[0] for a in (leaf, leaf_of_small)]
        torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-5)
    assert norm(torch.tensor([math.inf, 1.0, 2.0]), order if order > 0 else 2) == math.inf
    assert norm(torch.tensor([math.nan, 1e30, 2.0]), order).isnan()
    assert norm(torch.zeros(3), abs(order)) == 0
