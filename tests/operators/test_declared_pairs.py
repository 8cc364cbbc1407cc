"""Joint declarations: an operator for a tensor and for a number, an activation with its derivative."""

import pytest

import adjoint as torch
from adjoint.codegen.backend import NUMPY
from adjoint.dispatch.declaration import OPERATORS

X = torch.tensor([1.0, -2.0])

LISTED = {
    "eq": ("Tensor input, Tensor other, *, Tensor out = None", "Tensor input, Number other, *, Tensor out = None"),
    "bitwise_and": (
        "Tensor input, Tensor other, *, Tensor out = None",
        "Number self, Tensor other",
        "Tensor input, Number other, *, Tensor out = None",
    ),
    "clamp_min": ("Tensor input, Tensor min, *, Tensor out = None", "Tensor input, Number min, *, Tensor out = None"),
    "lerp": (
        "Tensor input, Tensor end, Tensor weight, *, Tensor out = None",
        "Tensor input, Tensor end, Number weight, *, Tensor out = None",
    ),
    "masked_fill": ("Tensor input, Tensor mask, Tensor value", "Tensor input, Tensor mask, Number value"),
}


@pytest.mark.parametrize("name", LISTED)
def test_errors_list_the_forms_of_the_operators(name):
    arguments = {"lerp": (X, X, "a"), "masked_fill": (X, X > 0, "a")}.get(name, ("a", X))
    with pytest.raises(TypeError, match=rf"{name}\(\) received an invalid combination of arguments") as raised:
        getattr(torch, name)(*arguments)
    lines = [line for line in str(raised.value).splitlines() if "didn't match" not in line]
    assert lines[0].endswith(", but expected one of:")
    assert lines[1:] == [f" * ({form})" for form in LISTED[name]]


def test_a_form_of_one_operator_stands_alone():
    with pytest.raises(
        TypeError, match=r"but expected \(Tensor input, Tensor other, \*, Number alpha = 1, Tensor out = None\)"
    ):
        torch.add()


@pytest.mark.parametrize("bound", [0.5, torch.tensor([0.5, 0.5])])
def test_operators_for_a_tensor_and_for_a_number_have_the_same_gradient(bound):
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    torch.clamp_min(x, bound).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    torch.lerp(x, X, bound).sum().backward()
    assert x.grad.tolist() == [0.5, 0.5]


def test_the_operator_for_a_number_has_no_gradient_by_it():
    by_tensor, by_number = OPERATORS["lerp_by_tensor"], OPERATORS["lerp_by_number"]
    assert by_tensor.differentiable == ["self", "end", "weight"] == by_tensor.tensors
    assert by_number.differentiable == ["self", "end"] == by_number.tensors
    by_tensor, by_number = OPERATORS["rsub_tensor"], OPERATORS["rsub_number"]
    assert (
        by_tensor.tensors == by_number.tensors == ["self", "other"]
    )  # the number becomes a tensor of the common dtype
    assert (by_tensor.differentiable, by_number.differentiable) == (["self", "other"], ["self"])


@pytest.mark.parametrize("name", ["threshold", "hardtanh", "hardswish", "silu", "mish", "softplus", "logsigmoid"])
def test_the_kernel_of_a_derivative_is_traced_from_the_formula(name):
    kernel = OPERATORS[f"{name}_backward"].kernel
    assert kernel.expression.function.__code__.co_name == "grad_self"
    assert kernel.expression.function.__code__.co_filename.endswith("operators/nn/activation.py")
    assert str(kernel.expression).startswith(f"{name}_backward(grad, self")


def test_the_backend_allocates_and_adds():
    buffer = NUMPY.allocate((2, 3), torch.float32.numpy)
    assert (buffer.shape, buffer.dtype, buffer.flags.c_contiguous) == ((2, 3), torch.float32.numpy, True)
    buffer[...] = 1
    NUMPY.add(buffer, torch.ones(3).numpy(), buffer)
    assert (buffer == 2).all()
