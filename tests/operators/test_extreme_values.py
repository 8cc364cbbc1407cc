"""Former errors at infinities, NaN and the limits of types, which `tests.reliability` has found."""

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


@pytest.mark.parametrize("count", [1, 600])
def test_an_element_beside_an_infinity_of_weight_0_stays(count):
    x = torch.tensor([1.0, 2.0, inf, 4.0]).expand(count, 1, 4)
    linear = torch.nn.functional.interpolate(x, size=8, mode="linear")
    assert linear[0, 0, -1] == 4.0
    same = torch.nn.functional.interpolate(x, size=4, mode="linear")
    assert [same[-1, 0, place].item() for place in (0, 1, 3)] == [1.0, 2.0, 4.0]
    image = torch.ones(count, 1, 4, 4)
    image[..., 1, 1] = nan
    cubic = torch.nn.functional.interpolate(image, size=(8, 8), mode="bicubic")
    assert torch.isnan(cubic).sum() == 49 * count


def test_the_exponential_of_a_triangular_matrix_of_large_norm_keeps_its_diagonal():
    for large in (1e10, 1e200):
        x = torch.tensor([[0.0, large], [0.0, 0.0]], dtype=torch.float64)
        assert torch.linalg.matrix_exp(x).tolist() == [[1.0, large], [0.0, 1.0]]


@pytest.mark.parametrize("scale", [1e20, 1e-30, 1.0])
def test_a_deviation_is_a_number_though_its_square_is_none(scale):
    x = torch.tensor([1.0, -1.0, 3.0]) * scale
    assert torch.allclose(torch.std(x), torch.tensor(2.0) * scale, atol=0)
    deviation, mean = torch.std_mean(x.expand(4, 3), 1)
    assert torch.allclose(deviation, torch.full((4,), 2.0) * scale, atol=0)
    assert torch.allclose(mean, x.mean(), atol=0)


def test_distances_count_nan():
    assert torch.isnan(torch.nn.functional.pdist(torch.tensor([[1.0, nan], [5.0, 1.0]]), p=0.0)).all()


def test_conditions_of_matrices_without_elements_in_every_norm():
    for p in (1, -1, inf, -inf):
        assert torch.linalg.cond(torch.zeros(2, 3, 0), p).tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="got an invalid norm type: 3"):
        torch.linalg.cond(torch.ones(2, 2), 3)


@pytest.mark.parametrize(
    ("kind", "words", "function"),
    [
        (IndexError, "slice.. cannot be applied to a 0-dim tensor", lambda x: torch.slice_scatter(x, x)),
        (ValueError, "Expected 1 or more dimensions", lambda x: torch.nn.functional.nll_loss(x, torch.tensor(0))),
        (RuntimeError, "the first tensor must be 1D or 2D but got 0D", lambda x: torch.linalg.multi_dot([x, x])),
        (RuntimeError, "`shifts` required", torch.fft.fftshift),
        (IndexError, "Dimension specified as 0 but tensor has no dimensions", lambda x: torch.mv(x, x)),
        (IndexError, "Dimension specified as 1 but tensor has no dimensions", lambda x: torch.addbmm(x, x, x)),
        (IndexError, "Dimension specified as -1 but tensor has no dimensions", lambda x: torch.linalg.cross(x, x)),
        (RuntimeError, "Padding length should be less", lambda x: torch.nn.functional.pad(x, (1, 1), mode="reflect")),
        (NotImplementedError, "got 0D", lambda x: torch.nn.functional.interpolate(x, size=2)),
    ],
)
def test_errors_for_tensors_without_dimensions(kind, words, function):
    with pytest.raises(kind, match=words):
        function(torch.tensor(1.0))


def test_no_numbers_have_no_variance():
    assert torch.isnan(torch.var(torch.ones(2, 0), 1, correction=-1)).all()


def test_a_factor_with_a_zero_has_no_inverse():
    factors = torch.stack([torch.eye(2), torch.tensor([[1.0, 0.0], [0.0, 0.0]])])
    with pytest.raises(RuntimeError, match=r"\(Batch element 1\): The diagonal element 2 is zero"):
        torch.cholesky_inverse(factors)


def test_incomplete_gamma_functions_of_the_largest_number():
    a, x = (
        torch.tensor([1.7976931348623157e308, 3e4], dtype=torch.float64),
        torch.tensor([1.0, 1e308], dtype=torch.float64),
    )
    assert torch.special.gammainc(a, x).tolist() == [0.0, 1.0]
    assert torch.special.gammaincc(a, x).tolist() == [1.0, 0.0]


def test_bags_of_no_offsets():
    indices, table, none = torch.tensor([0, 1]), torch.ones(3, 2), torch.tensor([], dtype=torch.int64)
    assert torch.nn.functional.embedding_bag(indices, table, none, mode="sum").shape == (0, 2)
    with pytest.raises(RuntimeError, match="number of offset should be at least 1"):
        torch.nn.functional.embedding_bag(indices, table, none, include_last_offset=True)


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


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_the_sign_of_an_imaginary_zero_chooses_the_branch_of_log1p(dtype):
    x = torch.tensor([complex(-2, 0.0), complex(-2, -0.0), complex(-inf, -0.0)], dtype=dtype)
    pi = torch.tensor([torch.pi, -torch.pi, -torch.pi], dtype=dtype.to_real())
    assert torch.equal(x.log1p().imag, pi) and torch.equal(x.clone().log1p_().imag, pi)


@pytest.mark.parametrize("padding", [(-4, 1), (3, -4), (-2, 5, -3, 3)])
def test_padding_cannot_remove_more_than_all_elements(padding):
    with pytest.raises(RuntimeError, match=r"narrow\(\): length must be non-negative"):
        torch.nn.functional.pad(torch.ones(2, 3), padding, value=2.0)
