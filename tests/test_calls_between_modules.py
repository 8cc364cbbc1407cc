"""How many calls from module to module a warm operation passes: what a reader with a debugger steps through."""

import sys

import pytest

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS

pytestmark = pytest.mark.skipif(not LOOPS.enabled, reason="only compiled kernels are recorded")


def calls_between_modules(prepare, run):
    """Return the number of calls in `run(prepare())` whose caller is in another module, after kernels were recorded."""
    for _ in range(1200):
        run(prepare())
    prepared = prepare()
    calls = []

    def note(frame, event, _):
        if event == "call":
            calls.append((frame.f_back.f_globals.get("__name__"), frame.f_globals.get("__name__")))

    sys.setprofile(note)
    try:
        run(prepared)
    finally:
        sys.setprofile(None)
    return sum(caller != called for caller, called in calls)


def gradients_of_each():
    numbers = torch.randn(3)
    of_each = torch.func.vmap(torch.func.grad(lambda x: x.sin() * x))
    return lambda: numbers, of_each


def convolution():
    images, weights = (torch.randn(shape, requires_grad=True) for shape in ((1, 2, 5, 5), (3, 2, 3, 3)))
    grad = torch.ones(1, 3, 3, 3)
    return lambda: images, lambda images: torch.nn.functional.conv2d(images, weights).backward(grad)


def backward_with_a_hook():
    x, y = torch.randn(5, requires_grad=True), torch.randn(5, requires_grad=True)

    def total():
        product = x * y
        product.register_hook(lambda grad: None)
        return product.sum()

    return total, torch.Tensor.backward


@pytest.mark.parametrize(("case", "limit"), [(gradients_of_each, 120), (convolution, 30), (backward_with_a_hook, 20)])
def test_few_calls_between_modules(case, limit):
    assert calls_between_modules(*case()) <= limit
