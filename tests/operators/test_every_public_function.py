"""Every public function that is not a declared operator, on its samples: derivatives and layouts."""

import inspect
import pickle

import numpy
import pytest

import adjoint as torch
from adjoint.autograd import gradcheck, gradgradcheck
from adjoint.operators import PUBLIC, load_all

from .samples_public import NOT_DIFFERENTIABLE, NOT_DOUBLE, SAMPLES
from .test_every_operator import as_list, every_other, of_tensors, reversed_order

load_all()

pytestmark = [  # deprecated functions
    pytest.mark.filterwarnings("ignore:torch.(triangular_solve|lu|lu_solve|chain_matmul) is deprecated"),
    pytest.mark.filterwarnings("ignore:at..(frobenius|nuclear)_norm is deprecated"),
    pytest.mark.filterwarnings("ignore:.nn.functional.upsample(_nearest|_bilinear)?. is deprecated"),
    pytest.mark.filterwarnings("ignore:non-inplace resize"),
]

CALLS = [
    pytest.param(name, call, id=f"{name}-{number}")
    for name, calls in SAMPLES.items()
    for number, call in enumerate(calls)
]


def function(name):
    found = torch
    for part in name.split("."):
        found = getattr(found, part)
    return found


def is_declared(function):
    """Return whether a public function is a declared operator."""
    names = getattr(function, "__globals__", {})
    return "OP" in names and "otherwise" not in names


def is_sparse(function):
    """Return whether a public function is about sparse tensors: `tests/test_sparse.py` tests these."""
    return ".operators.sparse." in (getattr(function, "__globals__", {}).get("__name__") or "")


def public_names():
    """Return all public out-of-place functions except the declared operators."""
    prefixes = {"torch": "", "functional": "nn.functional.", "linalg": "linalg.", "special": "special.", "fft": "fft."}
    for namespace, prefix in prefixes.items():
        for name, found in PUBLIC[namespace].items():
            if not is_declared(found) and not is_sparse(found):
                yield prefix + name
    for name in torch.nn.functional.__dict__:
        found = getattr(torch.nn.functional, name)
        hidden = name.startswith("_") or "torch_function" in name  # other modules may have imported private names
        if inspect.isfunction(found) and not hidden and not is_declared(found):
            yield f"nn.functional.{name}"
    for name in dir(torch.Tensor):
        found = getattr(torch.Tensor, name)
        hidden = name.startswith("_") or name in PUBLIC["torch"] or not callable(found)
        if not hidden and not is_declared(found) and not is_sparse(found):
            yield f"Tensor.{name}"


def test_no_public_function_is_left_out():
    public = {name for name in public_names() if not name.endswith("_")}
    assert public - set(SAMPLES) - NOT_DIFFERENTIABLE - NOT_DOUBLE == set()
    assert (set(SAMPLES) | NOT_DIFFERENTIABLE | NOT_DOUBLE) - public == set()


def check_derivatives(name, call, complex_numbers):
    args, kwargs, tensors = call.build(complex_numbers)
    checked = of_tensors(function(name), call, args, kwargs)
    small = sum(tensor.numel() for tensor in tensors) <= 12
    assert gradcheck(checked, tensors, fast_mode=not small)
    if call.second:
        assert gradgradcheck(checked, tensors, fast_mode=True)


@pytest.mark.parametrize(("name", "call"), [case for case in CALLS if case.values[1].complex_numbers != "only"])
@pytest.mark.one_each("name")
def test_derivatives(name, call):
    check_derivatives(name, call, complex_numbers=False)


WITH_COMPLEX_NUMBERS = [case for case in CALLS if case.values[1].complex_numbers]


@pytest.mark.parametrize(("name", "call"), WITH_COMPLEX_NUMBERS[::3])
@pytest.mark.one_each("name")
def test_derivatives_by_complex_numbers(name, call):
    """The test covers every third function. Other tests cover the complex derivatives of the operators in these functions."""
    check_derivatives(name, call, complex_numbers=True)


@pytest.mark.parametrize(
    ("name", "call"), [case for case in WITH_COMPLEX_NUMBERS if case not in WITH_COMPLEX_NUMBERS[::3]]
)
@pytest.mark.thorough
def test_derivatives_of_others_by_complex_numbers(name, call):
    check_derivatives(name, call, complex_numbers=True)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        case
        for case in CALLS
        if not case.values[1].seeded and case.values[0] not in ("as_strided", "Tensor.view", "Tensor.view_as")
    ],
)
@pytest.mark.one_each("name")
def test_layouts(name, call):
    args, kwargs, _ = call.build(call.complex_numbers == "only", requires_grad=False)
    picked = call.after if name == "histogramdd" else lambda results: results  # the edges are a tuple
    expected = picked(function(name)(*args, **kwargs))
    for scattered in (every_other, reversed_order):
        options = {key: scattered(value) for key, value in kwargs.items()}
        result = picked(function(name)(*map(scattered, args), **options))
        for one, other in zip(as_list(result), as_list(expected), strict=True):
            numpy.testing.assert_allclose(one.numpy(force=True), other.numpy(force=True), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("namespace", [torch, torch.nn.functional])
def test_functions_are_pickled_by_their_names(namespace):
    functions = {name: getattr(namespace, name) for name in dir(namespace)}
    functions = {name: function for name, function in functions.items() if type(function) is type(lambda: None)}
    assert len(functions) > 80
    for name, function in functions.items():
        if not name.startswith("_"):
            assert pickle.loads(pickle.dumps(function)) is function, name
