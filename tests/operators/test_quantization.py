"""Fake quantization: forward mode, which PyTorch lacks, compiled training, and tensors on `meta`."""

import pytest

import adjoint as torch

pytestmark = pytest.mark.family("quantization")

SCALE, ZERO = torch.tensor([0.5, 0.25, 2.0]), torch.tensor([0, 1, -1], dtype=torch.int32)
FUNCTIONS = {
    "number": lambda x: torch.fake_quantize_per_tensor_affine(x, 0.5, 1, -4, 4),
    "tensors": lambda x: torch.fake_quantize_per_tensor_affine(x, SCALE[:1], ZERO[1:2], -4, 4),
    "channels": lambda x: torch.fake_quantize_per_channel_affine(x, SCALE, ZERO, 1, -4, 4),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_forward_mode_multiplies_by_the_mask_of_the_gradient(function):
    x, tangent = torch.linspace(-4, 4, 12).reshape(4, 3), torch.arange(12.0).reshape(4, 3)
    value, pushed = torch.func.jvp(function, (x,), (tangent,))
    (mask,) = torch.autograd.functional.vjp(function, x, torch.ones(4, 3))[1:]
    assert 0 < mask.sum() < 12
    assert torch.equal(value, function(x))
    assert torch.equal(pushed, tangent * mask)


def test_a_result_on_meta_has_the_shape_of_the_input():
    result = FUNCTIONS["number"](torch.ones(4, 3, device="meta"))
    assert (result.device.type, result.shape, result.dtype) == ("meta", (4, 3), torch.float32)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_compiled_training_has_the_gradients_of_eager_training(function):
    inputs = torch.linspace(-3, 3, 15).reshape(5, 3)

    def step(weight):
        weight = weight.detach().requires_grad_()
        loss = (inputs @ function(weight).T).square().mean()
        loss.backward()
        return loss.detach(), weight.grad

    compiled = torch.compile(step)
    for factor in (0.5, 0.5, 1.5):
        weight = torch.linspace(-2, 2, 12).reshape(4, 3) * factor
        for expected, found in zip(step(weight), compiled(weight), strict=True):
            torch.testing.assert_close(found, expected)
