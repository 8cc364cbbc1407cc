"""Comparisons, logic, bits, and choosing between elements."""

import math
import operator

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import adjoint as torch

INF, NAN = math.inf, math.nan
integers = st.integers(-(2**31), 2**31)
floats = st.floats(allow_nan=True, allow_infinity=True)
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def gradients(function, *points):
    arguments = [torch.tensor(point, requires_grad=True) for point in points]
    return [grad.tolist() for grad in torch.autograd.grad(function(*arguments).sum(), arguments)]


@pytest.mark.parametrize("compare", COMPARISONS)
@given(a=floats, b=floats)
@pytest.mark.long_cases
def test_comparisons_are_pythons(compare, a, b):
    x, y = torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)
    assert compare(x, y).item() is compare(a, b)
    assert compare(x, y).dtype is torch.bool
    assert getattr(torch, compare.__name__)(x, y).item() is compare(a, b)


def test_comparison_with_numbers_and_with_what_is_none():
    x = torch.tensor([1, 2, 3])
    assert (x == 2).tolist() == [False, True, False]
    assert (x < 2.5).tolist() == [True, True, False]
    assert (x >= 2).tolist() == [False, True, True]
    assert (x == None) is False  # noqa: E711
    assert (x != "a") is True
    with pytest.raises(TypeError, match="'<' not supported between instances of 'Tensor' and 'NoneType'"):
        operator.lt(x, None)
    with pytest.raises(TypeError, match=r"eq\(\) received an invalid combination of arguments"):
        torch.eq(1, x)
    with pytest.raises(NotImplementedError, match="\"lt_cpu\" not implemented for 'ComplexFloat'"):
        operator.lt(torch.tensor([1j]), 1)


def test_comparison_in_place_stops_gradients():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    assert y.gt_(1.5).tolist() == [0, 1]
    y.sum().backward()
    assert x.grad.tolist() == [0, 0]


@given(integers, integers, st.integers(0, 31))
def test_bits_are_pythons(a, b, shift):
    x, y = torch.tensor(a), torch.tensor(b)
    assert (x & y).item() == (a & y).item() == a & b
    assert (x | y).item() == (a | y).item() == a | b
    assert (x ^ y).item() == (a ^ y).item() == a ^ b
    assert (~x).item() == ~a
    assert (x >> shift).item() == a >> shift
    assert (x << shift).item() == (a << shift if abs(a << shift) < 2**63 else (x * 2**shift).item())


def test_shifts_beyond_the_width():
    x = torch.tensor([5, -5])
    assert (x << 64).tolist() == [0, 0]
    assert (x >> 64).tolist() == [0, -1]
    assert (x << -1).tolist() == [0, 0]


@given(st.booleans(), st.booleans())
def test_logic(a, b):
    x, y = torch.tensor(a), torch.tensor(b)
    assert (x & y).item() is torch.logical_and(x, y).item() is (a and b)
    assert (x | y).item() is torch.logical_or(x, y).item() is (a or b)
    assert (x ^ y).item() is torch.logical_xor(x, y).item() is (a != b)
    assert (~x).item() is torch.logical_not(x).item() is (not a)
    with pytest.raises(TypeError, match="~ "):
        ~torch.tensor(1.0)


def test_where():
    mask, x, y = torch.tensor([True, False, True]), torch.tensor([1.0, 2.0, 3.0]), torch.tensor([-1.0, -2.0, -3.0])
    assert torch.where(mask, x, y).tolist() == [1, -2, 3]
    assert torch.where(mask, x, 0).tolist() == [1, 0, 3]
    assert torch.where(mask, 1, 2).dtype is torch.int64
    assert torch.where(mask, 1, 2.0).dtype is torch.float32
    assert x.where(mask, y).tolist() == [1, -2, 3]
    assert [index.tolist() for index in torch.where(mask)] == [[0, 2]]
    assert gradients(lambda a, b: torch.where(mask, a, b), [1.0, 2.0, 3.0], [0.0, 0.0, 0.0]) == [[1, 0, 1], [0, 1, 0]]
    with pytest.raises(RuntimeError, match="where expected condition to be a boolean tensor"):
        torch.where(x, x, y)


def test_what_is_masked_leaves_no_nan():
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    torch.where(x > 0, x.sqrt(), 0.0).sum().backward()
    assert math.isnan(x.grad[0].item())  # 0 * inf inside sqrt, as in PyTorch
    x.grad = None
    torch.relu(x).sqrt().sum().backward()
    assert x.grad.tolist() == [0, 0.25]


def test_large_masks_agree_with_small_ones():
    x = torch.randn(20_000)
    x[::7] = INF
    mask = x > 0
    chosen = torch.where(mask, x, -x)
    assert torch.equal(chosen, x.abs())
    for shape in [(20_000,), (200, 100), (10, 20, 100), (5, 4, 10, 100)]:
        places = mask.reshape(shape).nonzero()
        assert places.tolist() == numpy.argwhere(mask.reshape(shape).numpy()).tolist()
    y = x.clone().requires_grad_()
    torch.relu(y).backward(torch.full((20_000,), INF))
    assert torch.equal(y.grad, torch.where(mask, INF, 0.0))


@given(floats, floats)
def test_extrema(a, b):
    x, y = torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)
    if math.isnan(a) or math.isnan(b):
        assert torch.maximum(x, y).isnan().item()
        kept = b if math.isnan(a) else a
        assert torch.fmax(x, y).item() == pytest.approx(kept, nan_ok=True)
    else:
        assert torch.maximum(x, y).item() == torch.fmax(x, y).item() == max(a, b)
        assert torch.minimum(x, y).item() == torch.fmin(x, y).item() == min(a, b)


def test_extrema_share_the_gradient_where_they_are_equal():
    points = [1.0, 2.0, 3.0], [2.0, 2.0, 2.0]
    assert gradients(torch.maximum, *points) == [[0, 0.5, 1], [1, 0.5, 0]]
    assert gradients(torch.minimum, *points) == [[1, 0.5, 0], [0, 0.5, 1]]
    assert gradients(torch.fmax, *points) == [[0, 1, 1], [1, 0, 0]]
    assert gradients(torch.fmin, *points) == [[1, 1, 0], [0, 0, 1]]


@given(floats.filter(lambda v: v == v), st.floats(-5, 0), st.floats(0, 5))
def test_clamp(value, low, high):
    x = torch.tensor(value, dtype=torch.float64)
    expected = min(max(value, low), high)
    assert torch.clamp(x, low, high).item() == expected
    assert x.clamp(torch.tensor(low, dtype=torch.float64), torch.tensor(high, dtype=torch.float64)).item() == expected
    assert x.clamp_min(low).clamp_max(high).item() == expected


@pytest.mark.parametrize("bounds", [(0.0, None), (None, 0.0), (0.0, 1.0)])
@pytest.mark.parametrize("size", [3, 50_000])
def test_a_zero_that_equals_a_bound_of_clamp_keeps_its_sign(size, bounds):
    x = torch.full((size,), -0.0)
    assert x.clamp(*bounds).signbit().all() and x.clone().clamp_(*bounds).signbit().all()


def test_gradients_of_clamp():
    assert gradients(lambda x: x.clamp(-1, 1), [-2.0, -1.0, 0.0, 1.0, 2.0, NAN]) == [[0, 1, 1, 1, 0, 0]]
    assert gradients(lambda x: x.clamp_min(0), [-1.0, 0.0, 1.0]) == [[0, 1, 1]]
    assert gradients(lambda x: x.clamp_max(0), [-1.0, 0.0, 1.0]) == [[1, 1, 0]]
    grads = gradients(torch.clamp, [1.0, 2.0, 3.0], [1.0, 2.5, 4.0], [1.0, 3.0, 3.5])
    assert grads == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    with pytest.raises(RuntimeError, match="At least one of 'min' or 'max' must not be None"):
        torch.ones(1).clamp()


def test_clamp_to_a_number_and_a_tensor_of_no_dimension():
    x = torch.tensor([-1.0, 0.2, 3.0], requires_grad=True)
    result = torch.clamp(x, 0, torch.tensor(0.5))
    assert result.grad_fn.name() == "ClampBackward1" and result.grad_fn._saved_max == 0.5
    assert x.clamp(torch.tensor(0), 1).tolist() == pytest.approx([0.0, 0.2, 1.0])
    assert torch.tensor([1, 5]).clip_(0, torch.tensor(4)).tolist() == [1, 4]
    for bound in (torch.tensor([0.5]), torch.tensor(0.5, requires_grad=True)):
        with pytest.raises(
            TypeError, match=r"^clamp\(\) received an invalid combination of arguments - got \(Tensor, int, Te"
        ):
            torch.clamp(x, 0, bound)


def test_clamp_promotes():
    x = torch.tensor([1, 2, 3])
    assert torch.clamp(x, min=1.5).tolist() == [1.5, 2, 3]
    assert torch.clamp(x, 2).dtype is torch.int64
    assert x.clamp_(min=2).tolist() == [2, 2, 3]


def test_heaviside():
    x = torch.tensor([-1.0, 0.0, 2.0, NAN])
    assert torch.heaviside(x, torch.tensor(0.5)).tolist() == [0, 0.5, 1, 0]
