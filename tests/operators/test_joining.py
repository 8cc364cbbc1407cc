"""Stacks of tensors along a new dimension, and reads and repetitions of numbers."""

import pytest

import adjoint as torch


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize(
    ("first", "second"), [((2, 3), (2, 4)), ((2,), (2, 3)), ((), (1,)), ((0,), (0, 3)), ((2, 0), (2, 1))]
)
def test_only_tensors_of_one_shape_are_stacked(first, second, dim):
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        torch.stack([torch.ones(first), torch.ones(second)], dim)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.int64, torch.bool, torch.complex64])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3), (2, 3, 4)])
def test_stacked_tensors_lie_row_by_row(shape, dtype):
    parts = [torch.ones(shape, dtype=dtype), torch.zeros(shape, dtype=dtype)]
    if len(shape) > 1:
        parts = [part.t() if len(shape) == 2 else part.transpose(0, 2) for part in parts]
    for dim in range(len(shape) + 1):
        stacked = torch.stack(parts, dim)
        assert stacked.dtype is dtype and stacked.is_contiguous()
        assert all(torch.equal(one, part) for one, part in zip(stacked.unbind(dim), parts, strict=True))


def test_gradients_of_a_sequence_go_to_the_inputs_that_want_one():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    view = torch.ones(2, 2, requires_grad=True)[0]
    for joined in (torch.stack([y, x, view, y]), torch.cat([y, x, view, y])):
        functions = [function and function.name() for function, _ in joined.grad_fn.next_functions]
        assert functions == [None, "torch::autograd::AccumulateGrad", "SelectBackward0", None]
    assert torch.stack([y, y[:2]]).grad_fn is None


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (torch.bfloat16, 1.5),
        (torch.float16, 1.5),
        (torch.float64, 1.5),
        (torch.int8, 3),
        (torch.bool, True),
        (torch.complex64, 1 + 2j),
    ],
)
def test_an_item_is_a_number_of_python(dtype, value):
    for tensor in (torch.tensor(value, dtype=dtype), torch.tensor([[value]], dtype=dtype)):
        assert type(tensor.item()) is type(value) and tensor.item() == value
    assert torch.tensor([1 + 2j]).conj().imag.item() == -2
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"):
        torch.tensor([value, value], dtype=dtype).item()


def test_parts_of_one_number_are_repeated_where_they_lie():
    whole = torch.tensor([1 + 2j])
    assert whole.imag.expand(3).reshape(3, 1).expand(3, 2).tolist() == [[2.0, 2.0]] * 3
    single = torch.tensor(7.0).expand(3)
    assert single.unsqueeze(1).expand(3, 2).tolist() == [[7.0, 7.0]] * 3
    assert single[1:].expand(2, 2).untyped_storage().nbytes() == 4
