"""Convolutions of images without channels, and the memory order of their results."""

import pytest

import adjoint as torch

F = torch.nn.functional


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_images_without_channels_give_images_without_channels(dims):
    layer, x = getattr(torch.nn, f"Conv{dims}d")(0, 8, 2), torch.ones((2, 0) + (5,) * dims, requires_grad=True)
    y = layer(x)
    assert y.shape == (2, 0) + (4,) * dims
    y.sum().backward()
    assert x.grad.shape == x.shape and layer.weight.grad.shape == layer.weight.shape
    assert torch.equal(layer.bias.grad, torch.zeros(8))


@pytest.mark.parametrize("shape", [(8, 1, 3, 3), (8, 8, 1, 1)])
def test_the_strides_of_filters_decide_where_their_sizes_leave_the_order_open(shape):
    weight = torch.randn(shape).to(memory_format=torch.channels_last)
    assert weight.stride()[1] == 1 and weight.stride()[3] == shape[1]
    x = torch.randn(2, 8, 5, 5)
    y = F.conv2d(x, weight, groups=8 // shape[1])
    assert y.is_contiguous(memory_format=torch.channels_last)
    assert torch.allclose(y, F.conv2d(x, weight.contiguous(), groups=8 // shape[1]), atol=1e-5)


def test_another_memory_order_of_the_same_size():
    x = torch.zeros(2, 2, 8, 8).to(memory_format=torch.channels_last)
    assert x.resize_(x.shape).stride() == (128, 1, 16, 2)
    assert x.resize_(x.shape, memory_format=torch.contiguous_format).stride() == (128, 64, 8, 1)


def test_the_algorithm_of_a_convolution_has_the_name_that_pytorch_gives_it():
    def name(shape, transposed=False, dilation=1):
        ones, x, weight = (1,) * (len(shape) - 2), torch.ones(shape), torch.ones(3, 3, *(1,) * (len(shape) - 2))
        gaps = (dilation,) * len(ones)
        return torch._C._select_conv_backend(x, weight, None, ones, (0,), gaps, transposed, (0,), 1).name

    assert name((2, 3, 4)) == "Slow2d" and name((2, 3, 4, 4, 4)) == "Slow3d"
    assert name((2, 3, 4, 4), transposed=True, dilation=2) == "SlowTranspose2d"
    assert name((2, 3, 4, 4), dilation=2) == "SlowDilated2d"
    assert name((0, 3, 4, 4)) == name((2, 0, 4)) == "Empty"
    assert torch._C._ConvBackend.Slow2d != torch._C._ConvBackend.Empty
