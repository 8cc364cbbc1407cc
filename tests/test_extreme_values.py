"""Results at infinities, nan and the ends of types, where `tests.reliability` has found them wrong."""

import signal
import threading

import pytest

import adjoint as torch
from adjoint.autograd import forward_ad
from adjoint.tape import modes

inf, nan = float("inf"), float("nan")


@pytest.mark.parametrize("size", [1, 2000])
def test_functions_of_the_normal_distribution_at_the_ends_of_float64(size):
    x = torch.tensor([-1.7e308, 1.7e308, -inf, inf], dtype=torch.float64).repeat(size)
    assert torch.erfc(x)[:4].tolist() == [2.0, 0.0, 2.0, 0.0]
    assert torch.special.ndtr(x)[:4].tolist() == [0.0, 1.0, 0.0, 1.0]


def test_a_direction_does_not_square_a_magnitude():
    x = torch.tensor([complex(3e307, 4e307), complex(3e-310, 4e-310), 0j], dtype=torch.complex128)
    assert torch.allclose(torch.sgn(x), torch.tensor([0.6 + 0.8j, 0.6 + 0.8j, 0j], dtype=torch.complex128))


def test_gelu_of_the_largest_number_is_that_number():
    x = torch.tensor([1.7e308], dtype=torch.float64)
    assert torch.equal(torch.nn.functional.gelu(x, approximate="tanh"), x)


def test_the_multiple_of_an_overflow_has_no_sign():
    assert torch.lcm(torch.tensor([2**62]), torch.tensor([3])).item() == 2**62


def test_a_matrix_with_nan_is_not_positive_definite():
    x = torch.tensor([[8.0, 0.5, nan], [0.5, 4.0, 1.0], [nan, 1.0, 8.0]])
    with pytest.raises(RuntimeError, match="the leading minor of order 3 is not positive-definite"):
        torch.linalg.cholesky(x)


def test_a_matrix_without_elements_has_condition_0():
    assert torch.linalg.cond(torch.zeros(2, 5, 0)).tolist() == [0.0, 0.0]


def test_an_infinity_changes_its_neighbours_only():
    x = torch.arange(8.0).reshape(1, 1, 8).clone()
    x[..., 3] = inf
    resized = torch.nn.functional.interpolate(x, size=16, mode="linear")
    assert torch.isfinite(resized).tolist() == [[[i < 5 or i > 8 for i in range(16)]]]


def test_images_without_channels_are_refused():
    with pytest.raises(RuntimeError, match="Non-empty 4D data tensor expected but got a tensor with sizes"):
        torch.nn.functional.interpolate(torch.zeros(2, 0, 4, 4), scale_factor=2)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="interrupts come from a timer")
@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="interrupts strike the main thread"
)
def test_a_context_that_its_constructor_switches_is_left_where_an_interrupt_keeps_it_from_being_entered():
    def work():
        for _ in range(500):
            with torch.set_grad_enabled(False), torch.autograd.set_detect_anomaly(True):
                pass
            with forward_ad._set_fwd_grad_enabled(False), torch.autograd.enforce_grad_layout_policy(False):
                pass

    before, interrupts = signal.signal(signal.SIGALRM, signal.default_int_handler), 0
    try:
        for number in range(100):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-5 * (number + 1))
                work()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupts += 1
            assert torch.is_grad_enabled() and modes.STATE.forward_enabled and modes.STATE.grad_layout
            assert not torch.is_anomaly_enabled()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupts


def test_a_mode_set_without_a_block_stays():
    torch.set_grad_enabled(False)
    try:
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)
