"""Tests for the operators of `torch.ops.aten` that compute gradients, and for arguments by PyTorch's names."""

import pytest

import adjoint as torch
import adjoint.nn.functional as F

aten = torch.ops.aten


def numbers(*shape):
    return torch.arange(1.0, 1 + torch.Size(shape).numel(), dtype=torch.float64).sin().reshape(shape)


def gradients(function, inputs, grad):
    inputs = [each.detach().requires_grad_() for each in inputs]
    return torch.autograd.grad(function(*inputs), inputs, grad)


def layer_norm_backward(grad, x, weight, bias):
    mean, rstd = aten.native_layer_norm(x, [3], weight, bias, 1e-2)[1:]
    return aten.native_layer_norm_backward(grad, x, [3], mean, rstd, weight, bias, [True] * 3)


def group_norm_backward(grad, x, weight, bias):
    mean, rstd = aten.native_group_norm(x, weight, bias, 2, 4, 3, 2, 1e-2)[1:]
    return aten.native_group_norm_backward(grad, x, mean, rstd, weight, 2, 4, 3, 2, [True] * 3)


GRADIENTS = {
    "convolution": (
        lambda grad, x, w, b: aten.convolution_backward(
            grad, x, w, [2], [2, 1], [1, 0], [1, 1], False, [0, 0], 1, [True] * 3
        ),
        lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=(1, 0)),
        [(1, 3, 5, 5), (2, 3, 3, 3), (2,)],
    ),
    "layer_norm": (layer_norm_backward, lambda x, w, b: F.layer_norm(x, [3], w, b, 1e-2), [(2, 4, 3), (3,), (3,)]),
    "group_norm": (group_norm_backward, lambda x, w, b: F.group_norm(x, 2, w, b, 1e-2), [(2, 4, 3), (4,), (4,)]),
    "mse_loss": (
        lambda grad, x: aten.mse_loss_backward(grad, x, x.detach().cos(), 1),
        lambda x: F.mse_loss(x, x.detach().cos()),
        [(3, 2)],
    ),
    "glu": (lambda grad, x: aten.glu_backward(grad, x, 1), lambda x: F.glu(x, 1), [(2, 4)]),
    "adaptive_avg_pool2d": (
        aten._adaptive_avg_pool2d_backward,
        lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
        [(1, 2, 4, 5)],
    ),
    "upsample_nearest2d": (
        lambda grad, x: aten.upsample_nearest2d_backward(grad, [4, 6], [1, 2, 2, 3]),
        lambda x: F.interpolate(x, (4, 6)),
        [(1, 2, 2, 3)],
    ),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_operators_for_gradients_equal_the_engine(name):
    backward, function, shapes = GRADIENTS[name]
    inputs = [numbers(*shape) for shape in shapes]
    grad = numbers(*function(*inputs).shape).cos()
    found = backward(grad, *inputs)
    for one, other in zip(
        found if isinstance(found, tuple) else (found,), gradients(function, inputs, grad), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_operators_for_gradients_have_derivatives():
    x = numbers(2, 4, 3).requires_grad_()
    grad = numbers(2, 4, 3).cos().requires_grad_()
    assert torch.autograd.gradcheck(lambda grad, x: layer_norm_backward(grad, x, numbers(3), None)[:2], (grad, x))
    assert not aten.glu_backward(numbers(2), numbers(4), 0).requires_grad


def test_gradients_that_are_not_needed_are_none():
    x, weight, mean, var = numbers(2, 3, 4), numbers(3), numbers(3), numbers(3).abs()
    found = aten.native_batch_norm_backward(
        numbers(2, 3, 4), x, weight, mean, var, None, None, True, 1e-5, [False, True, False]
    )
    assert [each is None for each in found] == [True, False, True]
    assert torch.equal(mean, numbers(3))  # the statistics are not updated again


def test_arguments_are_taken_by_the_names_of_pytorch():
    x = numbers(2, 3)
    assert torch.equal(aten.cumprod(self=x, dim=0), x.cumprod(0))
    assert torch.equal(aten.add.Tensor(self=x, other=x, alpha=2), 3 * x)
    assert torch.equal(aten.mean.dim(x, dim=[1], keepdim=True), x.mean(1, True))
    assert torch.equal(aten.where(condition=x > 0, self=x, other=-x), x.abs())


def test_sizes_of_no_bias_are_empty_or_zero():
    """Traced programs give `(0,)` for a convolution without a bias."""
    grad, x, weight = torch.ones(1, 2, 3, 3), torch.ones(1, 3, 5, 5), torch.ones(2, 3, 3, 3)
    for sizes in (None, [], [0]):
        found = aten.convolution_backward(
            grad, x, weight, sizes, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, False]
        )
        assert found[2] is None
        assert found[0].equal(F.conv_transpose2d(grad, weight))


@pytest.mark.parametrize(
    ("other", "count", "expected"),
    [
        (torch.zeros(4, 5).t(), 0, ((5, 4), (1, 5), 0, 20)),
        (torch.zeros(4, 5).t(), 1, ((7, 5, 4), (20, 1, 5), 0, 140)),
        (torch.zeros(6)[::2], 2, ((7, 8, 3), (48, 6, 2), 0, 336)),
        (torch.zeros(1).expand(3), 1, ((7, 3), (1, 0), 0, 7)),
        (torch.zeros(9)[3:6], 1, ((7, 3), (9, 1), 3, 63)),
    ],
)
def test_a_tangent_of_a_base_has_the_strides_of_the_base(other, count, expected):
    batches = torch.ones(7, 8, 2, dtype=torch.float64)
    made = aten._new_zeros_with_same_feature_meta(batches, other, self_num_batch_dims=count)
    elements = made.untyped_storage().nbytes() // made.element_size()
    assert (tuple(made.shape), made.stride(), made.storage_offset(), elements) == expected
    assert made.dtype == torch.float32 and not made.any()
