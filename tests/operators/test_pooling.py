"""Pooling in the forms that programs call: sizes that do not fit, results without elements, the order of memory."""

import pytest

import adjoint as torch

F = torch.nn.functional


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_a_gradient_without_elements_is_refused(kind, dims):
    x = torch.ones((1, 3) + (4,) * dims, requires_grad=True)
    y = getattr(F, f"adaptive_{kind}_pool{dims}d")(x, 0)
    with pytest.raises(RuntimeError, match="Expected grad_output to have non-zero size for non-batch dimensions"):
        y.sum().backward()


@pytest.mark.parametrize("dims", [2, 3])
def test_random_windows_need_one_size_for_each_dimension(dims):
    x, pool = torch.ones((2,) + (7,) * dims), getattr(F, f"fractional_max_pool{dims}d")
    words = "must either be a single Int or tuple of " + "three " * (dims == 3) + "Ints"
    with pytest.raises(RuntimeError, match=f"kernel_size {words}"):
        pool(x, (1,), output_size=(3,) * dims)
    with pytest.raises(RuntimeError, match=f"output_size {words}"):
        pool(x, 2, output_size=(3,))
    assert pool(x, 2, output_size=(0,) + (1,) * (dims - 1)).shape == (2, 0) + (1,) * (dims - 1)


def test_unpooling_has_the_memory_order_of_its_input():
    x = torch.randn(2, 3, 4, 4)
    values, indices = F.max_pool2d(x.to(memory_format=torch.channels_last), 2, return_indices=True)
    images = F.max_unpool2d(values, indices, 2)
    assert images.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(images, F.max_unpool2d(values.contiguous(), indices.contiguous(), 2))


def test_unpooling_needs_one_size_for_each_dimension():
    x = torch.ones(1, 3, 1, 1, 1)
    with pytest.raises(RuntimeError, match=r"exactly three elements .* but got 2"):
        F.max_unpool3d(x, torch.zeros(x.shape, dtype=torch.int64), [1, 1])


@pytest.mark.parametrize("dtype", [torch.int32, torch.complex64])
def test_gradients_of_integers_and_complex_numbers_are_refused(dtype):
    aten, x, grad = torch.ops.aten, torch.ones(1, 4, 4, dtype=dtype), torch.ones(1, 2, 2, dtype=dtype)
    indices = torch.zeros(1, 2, 2, dtype=torch.int64)
    for call, name in (
        (lambda: aten.max_pool2d_with_indices_backward(grad, x, 2, 2, 0, 1, False, indices), "max_pool2d_backward"),
        (lambda: aten.adaptive_max_pool2d_backward(grad, x, indices), "adaptive_max_pool2d_backward"),
        (lambda: aten.avg_pool2d_backward(grad, x, [2, 2], [2, 2], [0, 0], False, True, None), "avg_pool2d_backward"),
        (lambda: aten._adaptive_avg_pool2d_backward(grad, x), "adaptive_avg_pool2d_backward"),
    ):
        with pytest.raises(NotImplementedError, match=f'"{name}" not implemented for'):
            call()
