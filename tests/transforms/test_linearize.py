"""`func.linearize` of functions that overwrite saved values agrees with `jvp`, which saves no values."""

import pytest

import adjoint as torch
from adjoint.func import jvp, linearize, vmap


def points(count):
    return torch.linspace(0.3, 1.1, count, dtype=torch.float64)


def _exponential_twice(x):
    return x.clone().exp_().exp_()


def _copy_of_its_square(x):
    return x.clone().copy_(x * x).mul_(x)


def _product_with_itself(x):
    y = x.sigmoid()
    return y.mul_(y).sqrt_()


def _square_of_a_part(x):
    y = x * 1
    y[:2].mul_(y[:2])
    return y.sin_()


def _rows_of_products(x):
    rows = x.new_zeros(3, 3)
    rows[0] = x
    for i in range(2):
        rows[i + 1] = rows[i] * x
    return rows


def _sum_in_a_loop(x):
    h = x * 1
    for i in range(3):
        h += h * x[i]
    return h


OVERWRITING = [
    _exponential_twice, _copy_of_its_square, _product_with_itself, _square_of_a_part, _rows_of_products, _sum_in_a_loop
]  # fmt: skip


@pytest.mark.parametrize("function", OVERWRITING)
def test_functions_that_overwrite_saved_values(function):
    x, direction = points(3), points(3)
    expected = jvp(function, (x,), (direction,))
    value, push = linearize(function, x)
    torch.testing.assert_close((value, push(direction)), expected)
    torch.testing.assert_close(push(direction * 2), expected[1] * 2)
    batch = torch.stack([x, x + 1])
    pushed = vmap(lambda x: linearize(function, x)[1](direction))(batch)
    torch.testing.assert_close(pushed, vmap(lambda x: jvp(function, (x,), (direction,))[1])(batch))
    second = linearize(lambda x: linearize(function, x)[1](direction), x)[1](direction)
    torch.testing.assert_close(second, jvp(lambda x: jvp(function, (x,), (direction,))[1], (x,), (direction,))[1])
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        torch.testing.assert_close(linearize(function, x)[1](direction), expected[1])


@pytest.mark.parametrize("changed", ["argument", "value"])
def test_a_change_after_linearize_is_an_error(changed):
    x = points(3)
    value, push = linearize(lambda x: (x * x).exp(), x)
    (x if changed == "argument" else value).mul_(2)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation: .* is at version 1"):
        push(x)


def test_linearize_without_hooks_of_saved_tensors():
    with torch.autograd.graph.disable_saved_tensors_hooks("none here"):
        assert linearize(torch.exp, torch.zeros(1))[1](torch.ones(1)).item() == 1
