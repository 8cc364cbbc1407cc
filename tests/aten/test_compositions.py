"""Operators that modes see as PyTorch's composition have the derivatives of the declaration, of every order."""

import pytest

import adjoint as torch
from adjoint.dispatch.decorators import tensors
from adjoint.utils._python_dispatch import TorchDispatchMode

INDEX = torch.tensor([[0, 2], [1, 1], [2, 0]])
FUNCTIONS = {
    "sinc": lambda x: torch.sinc(x - x[0, 0].item()),
    "gather": lambda x: x.gather(1, INDEX) ** 3,
    "take": lambda x: x.take(INDEX) ** 3,
    "index_select": lambda x: x.index_select(1, INDEX[0]) ** 3,
    "masked_select": lambda x: x.masked_select(x > 0.5) ** 3,
    "max": lambda x: x.max(1)[0] ** 3,
    "as_strided": lambda x: (x * x).as_strided((3, 2), (2, 1)) ** 3,
    "inv": torch.linalg.inv,
    "solve": lambda x: torch.linalg.solve(x, x[0] ** 2),
    "cholesky": lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(3)),
    "det": lambda x: torch.linalg.det(x) ** 2,
    "irfft": lambda x: torch.fft.irfft(torch.fft.rfft(x) ** 2, 3),
}


class Passing(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def derivatives(function):
    """Return the value and three derivatives, each of a weighted sum of the one before."""
    x = (torch.arange(9.0, dtype=torch.float64).reshape(3, 3).cos() + 2 * torch.eye(3)).requires_grad_()
    found = [function(x)]
    for _ in range(3):
        last = found[-1]
        weights = torch.arange(1.0, last.numel() + 1, dtype=last.dtype).reshape(last.shape)
        found += torch.autograd.grad((last * weights).sum(), x, create_graph=True)
    return [each.detach() for each in found]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_under_a_mode_are_those_without(name):
    expected = derivatives(FUNCTIONS[name])
    with Passing():
        found = derivatives(FUNCTIONS[name])
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex128])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_slopes_of_sinc_under_a_mode_are_accurate_near_zero(order, dtype):
    x = torch.tensor([0.0, 1e-12, -1e-5, 1e-3, 0.1, 0.31, 0.33, -0.7, 2.5], dtype=dtype)
    expected = tensors.derivative_of_sinc(x.double() if dtype is torch.float32 else x, order).to(dtype)
    with Passing():
        found = tensors.derivative_of_sinc(x, order)
    torch.testing.assert_close(found, expected)


def test_errors_under_a_mode_name_the_function():
    with Passing(), pytest.raises(RuntimeError, match="cholesky: A must be batches of square matrices"):
        torch.linalg.cholesky(torch.zeros(2, 3))
