"""Every operator has the same values, gradients and in-place changes in a mode that intercepts and repeats the call."""

import pytest

import adjoint as torch
from adjoint.operators import OPERATORS
from adjoint.utils._python_dispatch import TorchDispatchMode

from .test_every_operator import CALLS, IN_PLACE_ONLY, NOT_IMPLEMENTED, apply, as_list, is_sparse, plain

pytestmark = pytest.mark.thorough


class PassOn(TorchDispatchMode):
    """A mode that repeats each call, and counts the calls."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


def close(one, other):
    if isinstance(one, torch.Tensor):
        torch.testing.assert_close(one, other, equal_nan=True, rtol=1e-9, atol=1e-9)
    else:
        assert one is other


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.parametrize(("name", "call"), [case for case in CALLS if not is_sparse(OPERATORS[case.values[0]])])
def test_values_and_gradients(name, call):
    def run():
        args, kwargs, tensors = call.build(call.complex_numbers == "only")
        if name in IN_PLACE_ONLY:
            args, kwargs = plain(call)
        results = as_list(apply(name, call, args, kwargs))
        ends = [each for each in results if isinstance(each, torch.Tensor) and each.requires_grad]
        if not ends or name in NOT_IMPLEMENTED:
            return results, []
        tensors = [tensor for tensor in tensors if tensor.requires_grad]
        grads = torch.autograd.grad([each.abs().sum() for each in ends], tensors, allow_unused=True)
        return results, list(grads)

    expected, expected_grads = run()
    with PassOn() as mode:
        results, grads = run()
    assert mode.count
    for one, other in zip([*results, *grads], [*expected, *expected_grads], strict=True):
        close(one, other)
        if isinstance(one, torch.Tensor):
            assert (one.grad_fn is None) == (other.grad_fn is None)


@pytest.mark.parametrize(
    ("name", "call"),
    [case for case in CALLS if OPERATORS[case.values[0]].inplace and not is_sparse(OPERATORS[case.values[0]])],
)
def test_changes_in_place(name, call):
    args, kwargs = plain(call)
    operator = OPERATORS[name]

    def run():
        if call.seeded:
            torch.manual_seed(0)
        target = args[0].clone()
        operator.inplace_function(target, *args[1:], **kwargs)
        return target, target._version

    try:
        expected = run()
    except RuntimeError as error:  # the result has another dtype or shape
        with PassOn(), pytest.raises(type(error)):
            run()
        return
    with PassOn():
        found = run()
    close(found[0], expected[0])
