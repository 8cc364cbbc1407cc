"""The memory order of elementwise results."""

import numpy

import adjoint as torch
from adjoint.kernels.runtime.layout import laid_out


def test_first_operand_decides():
    x, y = torch.rand(3, 4).t(), torch.rand(4, 3)
    assert (x + y).stride() == (1, 4)
    assert (y + x).stride() == (3, 1)
    assert torch.where(y > 2, x, y).stride() == (3, 1)
    assert torch.where((x > 2).t().contiguous().t(), y, y).stride() == (1, 4)
    assert torch.rsub(x, y).stride() == (3, 1)


def test_first_operand_that_tells_decides():
    row, y, column = torch.rand(1, 3), torch.rand(4, 3), torch.rand(3, 4).t()
    assert (row + column).stride() == (1, 4)
    assert torch.addcmul(row, column, y).stride() == (1, 4)
    assert torch.addcmul(row, y, column).stride() == (3, 1)


def test_values_are_those_of_the_operands():
    x, y = torch.rand(2, 3, 4).permute(2, 0, 1), torch.rand(4, 2, 3)
    result = x * y
    assert result.stride() == (1, 12, 4)
    assert torch.equal(result.contiguous(), x.contiguous() * y)


def test_unary_operators_keep_the_order():
    x = torch.rand(2, 3, 4).permute(2, 0, 1)
    for operator in (torch.erf, torch.lgamma, torch.erfinv, torch.exp, torch.nn.functional.gelu):
        assert operator(x).stride() == x.stride(), operator
    for operator in (torch.floor, torch.isnan, torch.isfinite, torch.nan_to_num):
        assert operator(x.long()).stride() == x.stride(), operator


def test_results_in_the_right_order_are_not_copied():
    a, b = numpy.ones((3, 4)), numpy.ones((4, 3)).T
    for operands in ((a, a), (b, b)):
        result = numpy.add(*operands)
        assert laid_out(result, operands) is result


def test_gradients_of_running_sums_and_products_go_forwards():
    for function in (torch.cumsum, torch.cumprod):
        for x in (torch.rand(4, requires_grad=True), torch.rand(2, 4, requires_grad=True)):
            (grad,) = torch.autograd.grad(function(x, -1).square().sum(), x)
            assert grad.is_contiguous()
