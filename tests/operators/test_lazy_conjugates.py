"""All operators and public functions on lazy conjugates and negatives, and in-place changes of these views."""

import numpy
import pytest

import adjoint as torch
from adjoint.operators import OPERATORS, load_all

from . import test_every_operator, test_every_public_function
from .test_every_operator import IN_PLACE_ONLY, apply, as_list, of_tensors

load_all()

OPERATOR_CALLS = test_every_operator.CALLS
CALLS = [(name, function, call) for name, call in (case.values for case in OPERATOR_CALLS) for function in (name,)]
CALLS += [
    (name, test_every_public_function.function(name), call)
    for name, call in (case.values for case in test_every_public_function.CALLS)
]
IDS = [f"{name}-{number}" for number, (name, *_) in enumerate(CALLS)]

# The results of these operators depend on the memory layout, or on pending conjugates.
pytestmark = test_every_public_function.pytestmark

REFUSED = {"view_as_real", "Tensor.data_ptr", "Tensor.is_conj", "Tensor.is_neg"}


def pending(value):
    """Return a tensor that equals `value`, with a pending conjugate (complex) or negative (real)."""
    if isinstance(value, list):
        return [pending(item) for item in value]
    if not isinstance(value, torch.Tensor) or value.dtype is torch.bool:
        return value
    with torch.no_grad():
        if value.is_complex():
            return value.conj_physical().conj()
        return torch._neg_view(-value)


def built(call, complex_numbers):
    args, kwargs, _ = call.build(complex_numbers, requires_grad=False)
    return args, kwargs


def check_same(results, expected):
    for one, other in zip(as_list(results), as_list(expected), strict=True):
        if isinstance(other, torch.Tensor):
            assert one.dtype is other.dtype
            assert one.shape == other.shape
            one, other = one.detach().numpy(force=True), other.detach().numpy(force=True)
            numpy.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
        elif isinstance(other, tuple):
            check_same(one, other)
        else:
            assert one == other


@pytest.mark.parametrize(("name", "function", "call"), CALLS, ids=IDS)
@pytest.mark.one_each("name")
def test_values(name, function, call):
    for complex_numbers in {bool(call.complex_numbers), call.complex_numbers == "only"}:
        args, kwargs = built(call, complex_numbers)
        expected = apply(function, call, args, kwargs)
        if name in REFUSED and complex_numbers:
            continue
        args, kwargs = built(call, complex_numbers)
        result = apply(function, call, [pending(arg) for arg in args], {key: pending(v) for key, v in kwargs.items()})
        check_same(result, expected)


@pytest.mark.parametrize(("name", "function", "call"), CALLS, ids=IDS)
@pytest.mark.one_each("name")
def test_gradients(name, function, call):
    gradients = []
    for make in (lambda tensor: tensor, pending):
        args, kwargs, tensors = call.build(bool(call.complex_numbers))
        if not tensors or (make is pending and name in REFUSED):
            return
        tensors = [make(tensor).detach().requires_grad_() for tensor in tensors]
        results = as_list(of_tensors(function, call, args, kwargs)(*tensors))
        results = [result for result in results if isinstance(result, torch.Tensor) and result.requires_grad]
        if not results or name in test_every_operator.NOT_IMPLEMENTED:
            return
        weights = [torch.linspace(1, 2, result.numel(), dtype=result.dtype).reshape(result.shape) for result in results]
        weights = [make(weight * (1 + 1j) if weight.is_complex() else weight) for weight in weights]
        gradients.append(torch.autograd.grad(results, tensors, weights, allow_unused=True))
    for one, other in zip(*gradients, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            check_same(one, other)


@pytest.mark.parametrize(
    ("name", "call"),
    [case for case in OPERATOR_CALLS if OPERATORS[case.values[0]].inplace or case.values[0] in IN_PLACE_ONLY],
)
@pytest.mark.one_each("name")
def test_changes_in_place(name, call):
    for complex_numbers in {bool(call.complex_numbers), call.complex_numbers == "only"}:
        results = []
        for make in (lambda tensor: tensor, pending):
            args, kwargs = built(call, complex_numbers)
            target = make(args[0].clone())
            try:
                result = apply(name, call, [target, *map(make, args[1:])], kwargs, OPERATORS[name].inplace_function)
            except RuntimeError as error:
                results.append(str(error))
                continue
            assert result is target
            results.append(target)
            if make is pending and target.dtype is not torch.bool:
                assert target.is_conj() == target.is_complex()
                assert target.is_neg() == (not target.is_complex())
        check_same([results[1]], [results[0]])
