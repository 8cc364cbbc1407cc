"""Every declared operator, on its samples: derivatives by finite differences, in place, `out=`, layouts, sizes, dimensions."""

import warnings

import numpy
import pytest

import adjoint as torch
from adjoint.autograd import gradcheck, gradgradcheck
from adjoint.operators import OPERATORS, load_all

from .samples import SAMPLES
from .sampling import Input, Sample, real

load_all()

CALLS = [
    pytest.param(name, call, id=f"{name}-{number}")
    for name, calls in SAMPLES.items()
    for number, call in enumerate(calls)
]

# These operators are declared for their in-place form. The out-of-place form is another function.
IN_PLACE_ONLY = frozenset(
    [
        *(f"{name}_by_{kind}" for name in "eq ne lt le gt ge".split() for kind in ("tensor", "number")),
        *"normal log_normal cauchy exponential geometric uniform random random_to random_between bernoulli".split(),
        "bernoulli_of_tensor",
    ]
)

# These operators record a node that has no derivative.
NOT_IMPLEMENTED = frozenset(
    """
    detach_copy heaviside floor_divide_by_tensor floor_divide_by_number remainder_of_number scatter_combined
    scatter_number_combined unique_all unique_dim unique_runs binomial _standard_gamma_grad geqrf
    linalg_ldl_factor_ex linalg_ldl_solve ctc_loss_backward
    """.split()
)

# The derivative of these operators is zero by definition, although the samples depend on the parameters.
ZERO_BY_DEFINITION = frozenset("normal_of_mean normal_of_std normal_of_both".split())

# The derivative is taken at constant probability, not along the sampling algorithm (see tests/distributions).
IMPLICIT = frozenset(["_standard_gamma"])

# The derivative passes straight through the rounding (see tests/operators/test_quantization.py).
STRAIGHT_THROUGH = frozenset(
    """
    fake_quantize_per_tensor_affine_cachemask fake_quantize_per_tensor_affine_of_tensors
    fake_quantize_per_channel_affine_cachemask
    """.split()
)

# The results of these operators depend on the memory layout, or the operators refuse other layouts.
OF_MEMORY = frozenset(
    "view_shape reshape_alias view_as_complex as_strided as_strided_copy as_strided_scatter view_as_complex_copy".split()
)

DIFFERENTIABLE = [
    case
    for case in CALLS
    if OPERATORS[case.values[0]].differentiable
    and any(each.differentiable for each in case.values[1].inputs())
    and case.values[0] not in NOT_IMPLEMENTED | ZERO_BY_DEFINITION | IMPLICIT
]


def is_sparse(operator):
    """Return whether an operator accepts or returns sparse tensors: `tests/test_sparse.py` tests these."""
    return ".operators.sparse." in operator.declaration.__module__


def apply(name, call, args, kwargs, function=None):
    """Call a declared operator or a given function."""
    if call.seeded:
        torch.manual_seed(0)
    if callable(name):
        function = name
    if function is None:
        function = OPERATORS[name].function
        if name in IN_PLACE_ONLY:
            function, args = OPERATORS[name].inplace_function, [args[0].clone(), *args[1:]]
    return function(*args, **kwargs)


def as_list(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def of_tensors(name, call, args, kwargs):
    """Return the call as a function of its differentiable tensors."""
    places = [(args, number) for number in range(len(args))] + [(kwargs, key) for key in kwargs]

    def function(*tensors):
        remaining = iter(tensors if call.before is None else map(call.before, tensors))
        new_args, new_kwargs = list(args), dict(kwargs)
        for container, place in places:
            target = new_args if container is args else new_kwargs
            target[place] = replaced(container[place], remaining)
        result = apply(name, call, new_args, new_kwargs)
        return result if call.after is None else call.after(result)

    return function


def replaced(value, remaining):
    if isinstance(value, list) and value and isinstance(value[0], torch.Tensor):
        return [replaced(item, remaining) for item in value]
    if isinstance(value, torch.Tensor) and value.requires_grad:
        return next(remaining)
    return value


def check_derivatives(name, call, complex_numbers):
    args, kwargs, tensors = call.build(complex_numbers)
    function = of_tensors(name, call, args, kwargs)
    small = sum(tensor.numel() for tensor in tensors) <= 12
    assert gradcheck(function, tensors, fast_mode=not small)
    if call.second:
        assert gradgradcheck(function, tensors, fast_mode=True)


def same(actual, expected):
    """Return whether two results are equal. Two nan elements are equal."""
    assert type(actual) is type(expected)
    for one, other in zip(as_list(actual), as_list(expected), strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        numpy.testing.assert_array_equal(one.numpy(force=True), other.numpy(force=True))


def plain(call):
    """Return the arguments of a call without gradients."""
    args, kwargs, _ = call.build(complex_numbers=call.complex_numbers == "only", requires_grad=False)
    return args, kwargs


# --- all operators have samples -----------------------------------------------------------------------------------------


def test_every_declared_operator_has_samples():
    assert set(SAMPLES) == {name for name, operator in OPERATORS.items() if not is_sparse(operator)}
    assert [name for name, calls in SAMPLES.items() if not calls] == []


def test_every_differentiable_operator_is_differentiated():
    tried = {case.values[0] for case in DIFFERENTIABLE}
    declared = {name for name, operator in OPERATORS.items() if operator.differentiable and not is_sparse(operator)}
    assert declared - tried == NOT_IMPLEMENTED | ZERO_BY_DEFINITION | IMPLICIT | STRAIGHT_THROUGH


# --- derivatives ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "call"), [case for case in DIFFERENTIABLE if case.values[1].complex_numbers != "only"]
)
@pytest.mark.one_each("name")
def test_derivatives(name, call):
    check_derivatives(name, call, complex_numbers=False)


@pytest.mark.parametrize(("name", "call"), [case for case in DIFFERENTIABLE if case.values[1].complex_numbers])
@pytest.mark.one_each("name")
def test_derivatives_by_complex_numbers(name, call):
    check_derivatives(name, call, complex_numbers=True)


@pytest.mark.parametrize(("name", "call"), DIFFERENTIABLE)
@pytest.mark.one_each("name")
def test_forward_mode(name, call):
    args, kwargs, tensors = call.build(complex_numbers=bool(call.complex_numbers))
    options = {"check_forward_ad": True, "check_backward_ad": False, "check_undefined_grad": False}
    small = sum(tensor.numel() for tensor in tensors) <= 6
    assert gradcheck(of_tensors(name, call, args, kwargs), tensors, fast_mode=not small, **options)


@pytest.mark.parametrize("name", sorted(NOT_IMPLEMENTED))
def test_missing_derivatives(name):
    call = SAMPLES[name][0]
    result = as_list(apply(name, call, *call.build()[:2]))[0]
    with pytest.raises(RuntimeError, match=r"derivative for .* is not implemented"):
        result.sum().backward()


@pytest.mark.parametrize("name", sorted(ZERO_BY_DEFINITION))
def test_derivatives_that_are_zero_by_definition(name):
    args, kwargs, tensors = SAMPLES[name][0].build()
    apply(name, SAMPLES[name][0], args, kwargs).sum().backward()
    assert all(tensor.grad.count_nonzero().item() == 0 for tensor in tensors)


# --- variants -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "call"), [case for case in CALLS if OPERATORS[case.values[0]].inplace])
@pytest.mark.one_each("name")
def test_in_place(name, call):
    args, kwargs = plain(call)
    operator = OPERATORS[name]
    expected = apply(name, call, args, kwargs)
    target = args[0].clone()
    fits = operator.view or operator.resizes or expected.shape == target.shape
    if not fits or not torch.can_cast(expected.dtype, target.dtype):
        before = target.clone()
        with pytest.raises(RuntimeError, match=r"doesn't match the broadcast shape|can't be cast"):
            apply(name, call, [target, *args[1:]], kwargs, operator.inplace_function)
        same(target, before)
        return
    result = apply(name, call, [target, *args[1:]], kwargs, operator.inplace_function)
    assert result is target
    assert target._version == 1
    same(target, expected.to(args[0].dtype))


@pytest.mark.parametrize(
    ("name", "call"),
    [case for case in DIFFERENTIABLE if OPERATORS[case.values[0]].inplace and case.values[0] not in IN_PLACE_ONLY],
)
@pytest.mark.one_each("name")
def test_gradients_in_place(name, call):
    gradients = []
    for function in (OPERATORS[name].function, OPERATORS[name].inplace_function):
        args, kwargs, tensors = call.build()
        changed = args[0].clone()
        expected = apply(name, call, [changed.clone(), *args[1:]], kwargs)
        if (expected.shape != changed.shape and not OPERATORS[name].view) or expected.dtype != changed.dtype:
            return  # these calls raise errors, see `test_in_place`
        result = apply(name, call, [changed, *args[1:]], kwargs, function)
        weights = torch.linspace(1, 2, result.numel(), dtype=result.dtype).reshape(result.shape)
        gradients.append(torch.autograd.grad((result * weights).sum(), tensors, allow_unused=True))
    for one, other in zip(*gradients, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            numpy.testing.assert_allclose(one.numpy(force=True), other.numpy(force=True), rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "call"), [case for case in CALLS if OPERATORS[case.values[0]].out and case.values[0] not in IN_PLACE_ONLY]
)
@pytest.mark.one_each("name")
def test_out(name, call):
    args, kwargs = plain(call)
    expected = apply(name, call, args, kwargs)
    several = isinstance(expected, (tuple, list))
    exact = [torch.empty_like(each) for each in as_list(expected)]
    result = apply(name, call, args, {**kwargs, "out": tuple(exact) if several else exact[0]})
    if OPERATORS[name].many:
        assert result is None
    else:
        assert all(one is other for one, other in zip(as_list(result), exact, strict=True))
    same(exact, as_list(expected))
    wrong = [torch.empty([3, *each.shape], dtype=each.dtype) for each in exact]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        apply(name, call, args, {**kwargs, "out": tuple(wrong) if several else wrong[0]})
    same(wrong, as_list(expected))
    resized = [each for each in caught if "An output with one or more elements was resized" in str(each.message)]
    assert len(resized) == sum(each.numel() > 0 for each in as_list(expected))


@pytest.mark.parametrize(("name", "call"), [case for case in CALLS if case.values[0] not in OF_MEMORY])
@pytest.mark.one_each("name")
def test_layouts(name, call):
    args, kwargs = plain(call)
    expected = apply(name, call, args, kwargs)
    for scattered in (every_other, reversed_order):
        apart = [scattered(value) for value in args]
        result = apply(name, call, apart, {key: scattered(value) for key, value in kwargs.items()})
        for one, other in zip(as_list(result), as_list(expected), strict=True):
            assert one.shape == other.shape
            assert one.dtype == other.dtype
            if not call.seeded:  # the order of random numbers follows the memory layout
                numpy.testing.assert_allclose(one.numpy(force=True), other.numpy(force=True), rtol=1e-12, atol=1e-14)


def every_other(value):
    """Return the same values as a part of a larger tensor."""
    if isinstance(value, list):
        return [every_other(item) for item in value]
    if not isinstance(value, torch.Tensor) or value.ndim == 0:
        return value
    return torch.stack([value, value], -1)[..., 0]


def reversed_order(value):
    """Return the same values in column-major order."""
    if isinstance(value, list):
        return [reversed_order(item) for item in value]
    if not isinstance(value, torch.Tensor) or value.ndim < 2:
        return value
    backwards = tuple(range(value.ndim))[::-1]
    return value.permute(backwards).contiguous().permute(backwards)


_DIMENSIONS = ("dim", "dims", "dim0", "dim1", "dim2", "dimension")


def counted_from_the_end(name, call):
    """Return the call with dimensions counted from the end, or None if it has no dimensions."""
    operator = OPERATORS[name]
    first = next(value for value in call.inputs())
    count = call.dims or max(len(first.shape), 1)
    changed, found = list(call.args), False
    for position, parameter in enumerate(operator.names[: len(call.args)]):
        value = call.args[position]
        if parameter in _DIMENSIONS and value is not None:
            found = True
            numbers = value if isinstance(value, tuple) else (value,)
            moved = tuple(number - count if number >= 0 else number + count for number in numbers)
            changed[position] = moved if isinstance(value, tuple) else moved[0]
    return changed if found else None


@pytest.mark.parametrize(
    ("name", "call"),
    [case for case in CALLS if counted_from_the_end(*case.values) and not case.values[0].endswith("_backward")],
)
@pytest.mark.one_each("name")
def test_dimensions_counted_from_the_end(name, call):
    expected = apply(name, call, *plain(call))
    changed = Sample(tuple(counted_from_the_end(name, call)), call.kwargs, call.complex_numbers)
    same(apply(name, call, *plain(changed)), expected)


# --- sizes ----------------------------------------------------------------------------------------------------------

ELEMENTWISE = sorted(
    name
    for name, calls in SAMPLES.items()
    if OPERATORS[name].declaration.__module__.rpartition(".")[2]
    in (
        "pointwise activation classification special arithmetic division comparison masking pairwise powers ranges "
        "special_families"
    ).split()
    and name != "dist"
)


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("shape", [(0, 3), ()])
def test_elementwise_on_empty_and_zero_dimensional_tensors(name, shape):
    call = SAMPLES[name][0]

    def resized(value):
        return Input(shape, value.make, value.differentiable, value.always_real) if isinstance(value, Input) else value

    changed = Sample(tuple(map(resized, call.args)), call.kwargs, call.complex_numbers)
    args, kwargs, tensors = changed.build()
    for result in as_list(apply(name, changed, args, kwargs)):
        assert result.shape == shape
    if OPERATORS[name].differentiable and tensors and name not in NOT_IMPLEMENTED:
        check_derivatives(name, changed, complex_numbers=False)


def sizes(name):
    return [each.shape for call in SAMPLES[name] for each in call.inputs()]


def test_the_others_have_samples_of_no_elements():
    empty = {name for name in OTHERS if not any(0 in shape for shape in sizes(name))}
    # these operators need elements
    assert empty == {
        "ctc_loss_of",
        "ctc_loss_backward",
        "fill_diagonal",
        "max_all",
        "min_all",
        "multinomial",
        "unique_dim",
    }


OTHERS = sorted(set(SAMPLES) - set(ELEMENTWISE))
WITHOUT_NUMBERS = [name for name in OTHERS if () not in sizes(name)]

# These operators read the elements of a gradient in order, for any shape.
OF_ANY_SHAPE = frozenset(
    """
    as_strided_backward as_strided_gather diagonal_backward index_backward masked_scatter_backward masked_select_backward
    slice_backward
    """.split()
)


@pytest.mark.parametrize("name", WITHOUT_NUMBERS)
def test_what_has_no_samples_of_zero_dimensional_tensors_refuses_them(name):
    call = SAMPLES[name][0]
    found = []

    def number(value):
        if isinstance(value, list):
            return [*map(number, value)]
        if isinstance(value, Input) and not found:
            found.append(value)
            return Input((), (real() if value.differentiable else value).make, value.differentiable)
        return value

    changed = Sample(tuple(map(number, call.args)), call.kwargs, call.complex_numbers, seeded=call.seeded)
    if name in OF_ANY_SHAPE:
        apply(name, changed, *plain(changed))
    else:
        with pytest.raises((RuntimeError, IndexError, ValueError)):
            apply(name, changed, *plain(changed))
