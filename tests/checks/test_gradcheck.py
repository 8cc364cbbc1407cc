"""gradcheck and gradgradcheck: accepted arguments, detected errors, and messages."""

import sys
import types
import warnings

import numpy
import pytest

import adjoint as torch
from adjoint.autograd import Function, gradcheck, gradgradcheck
from adjoint.autograd.gradcheck import (
    GradcheckError,
    get_analytical_jacobian,
    get_numerical_jacobian,
    get_numerical_jacobian_wrt_specific_input,
)
from adjoint.checks.report import Progress

D, C = torch.float64, torch.complex128


def leaf(*shape, dtype=D, seed=0):
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed)).requires_grad_()


class Wrong(Function):
    """The square, with the wrong derivative 3 x."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x.conj()


class WrongSecond(Function):
    """The cube, with a wrong second derivative, because backward treats the first derivative as a constant."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * (x**2).detach()


class Random(Function):
    """Twice the input, with a random derivative."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2 * (1 + torch.rand_like(grad) * 1e-7)


class Constant(Function):
    """Twice the sum. Its backward ignores the incoming gradient."""

    @staticmethod
    def forward(ctx, x):
        return x.sum() * 2

    @staticmethod
    def backward(ctx, grad):
        return torch.full((3,), 2.0, dtype=D)


class Undefined(Function):
    """Two outputs, and a backward that expects both gradients."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, first, second):
        if first is None and second is None:
            return torch.ones(2, dtype=D)
        return (0 if first is None else first * 2) + (0 if second is None else second * 3)


class Raising(Function):
    """A backward that raises for an undefined gradient."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        if grad is None:
            raise RuntimeError("no gradient")
        return grad * 2


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda x: x.exp(), [leaf(3)]),
        (lambda x, y: (x @ y, x.sum()), [leaf(2, 3), leaf(3, 2)]),
        (lambda x, n, y: x * n + y, [leaf(3), 2, leaf(1)]),
        (lambda x: x * x.conj(), [leaf(2, dtype=C)]),
        (lambda x: x.abs(), [leaf(2, dtype=C)]),
        (lambda x: torch.complex(x, x * 2), [leaf(2)]),
        (lambda x, y: (x * y, y * 2), [leaf(2, dtype=C), leaf(2)]),
        (lambda x: x, [leaf(2)]),
        (lambda x: x * 2, [leaf(2) * 3]),
        (lambda x: x * 2, [leaf(0)]),
        (lambda x: x * 2, [leaf()]),
        (lambda x: x.clone().mul_(2), [leaf(2)]),
        (lambda x, y: x * 2, [leaf(2), leaf(2)]),
        (lambda x: x[x > 0], [leaf(5)]),
        (lambda x: (x.argmax(), x * 2), [leaf(3)]),
        (lambda x: (x.detach() * 5, x * 2), [leaf(3)]),
        (lambda x: x.sort(), [leaf(4)]),
        (lambda x: x**2, [leaf(2, 3).detach().t().requires_grad_()]),
        (lambda x: (x > 0).long(), [leaf(2)]),
    ],
)
def test_right_derivatives(function, inputs, fast_mode):
    before = [value.detach().clone() if isinstance(value, torch.Tensor) else value for value in inputs]
    assert gradcheck(function, inputs, fast_mode=fast_mode)
    for value, saved in zip(inputs, before, strict=True):
        if isinstance(value, torch.Tensor):
            assert torch.equal(value, saved)
            assert not value.is_leaf or value.grad is None
            assert value._version == 0


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize(
    ("function", "inputs", "words"),
    [
        (Wrong.apply, [leaf(2)], "Jacobian mismatch for output 0 with respect to input 0,\nnumerical:"),
        (
            lambda x, y: (x * y, Wrong.apply(y)),
            [leaf(2), leaf(2)],
            "Jacobian mismatch for output 1 with respect to input 1",
        ),
        (lambda n, x: Wrong.apply(x), [3, leaf(2)], "with respect to input 0"),
        (
            Wrong.apply,
            [leaf(2, dtype=C)],
            "While considering the imaginary part of complex outputs only, Jacobian mismatch",
        ),
        (
            lambda x: torch.complex(Wrong.apply(x), x),
            [leaf(2)],
            "While considering the real part of complex outputs only",
        ),
        (lambda x: Wrong.apply(x).abs(), [leaf(2, dtype=C)], "Jacobian mismatch"),
        (lambda x: x.detach() * 2, [leaf(2)], "Numerical gradient for function expected to be zero"),
        (lambda x: x.detach() * 2, [leaf(2, dtype=C)], "Numerical gradient for function expected to be zero"),
        (Random.apply, [leaf(2)], "Backward is not reentrant"),
        (Constant.apply, [leaf(3)], "backward not multiplied by grad_output"),
        (lambda x: x.log(), [torch.tensor([-1.0, 2.0], dtype=D, requires_grad=True)], "Jacobian mismatch"),
    ],
)
def test_wrong_derivatives(function, inputs, words, fast_mode):
    with pytest.raises(GradcheckError) as caught:
        gradcheck(function, inputs, fast_mode=fast_mode)
    assert words in str(caught.value)
    assert not gradcheck(function, inputs, fast_mode=fast_mode, raise_exception=False)


def test_the_report_says_where_the_matrices_differ_and_what_made_the_output():
    with pytest.raises(GradcheckError) as caught:
        gradcheck(lambda x: Wrong.apply(x), torch.tensor([[0.5, 1.0, -4.0]], dtype=D, requires_grad=True))
    assert "numerical:tensor([[ 1.0000,  0.0000,  0.0000]" in str(caught.value)
    assert "analytical:tensor([[  1.5000,   0.0000,   0.0000]" in str(caught.value)
    (note,) = caught.value.__notes__
    assert note.startswith(
        "3 of 9 elements differ; most, the derivative of element [0, 2] of output 0 by element [0, 2]"
    )
    assert "-12.0 analytically" in note
    assert "WrongBackward, recorded at" in note
    assert __file__ in note


def test_fast_mode_adds_the_whole_matrices():
    with pytest.raises(GradcheckError, match="recompute numerical and analytical jacobians in slow mode") as caught:
        gradcheck(Wrong.apply, leaf(2), fast_mode=True)
    assert "The max per-element difference (slow mode) is: " in str(caught.value)
    assert "differences are small" not in str(caught.value)


def test_fast_mode_says_if_it_alone_fails():
    first, second = torch.rand(2, generator=torch.Generator()).tolist()

    class Cancelling(Function):
        @staticmethod
        def forward(ctx, x):
            return x[0] * 1e3 - x[1] * (1e3 * first / second)

        @staticmethod
        def backward(ctx, grad):
            return grad * torch.tensor([1e3 + 0.5, -1e3 * first / second], dtype=D)

    x = torch.full((2,), 0.5, dtype=D, requires_grad=True)
    assert gradcheck(Cancelling.apply, x)
    with pytest.raises(GradcheckError, match="Fast gradcheck failed but element-wise differences are small"):
        gradcheck(Cancelling.apply, x, fast_mode=True)


def test_undefined_gradients_count_as_zeros():
    assert gradcheck(Undefined.apply, leaf(2), check_undefined_grad=False)
    for function, words in (
        (
            Undefined.apply,
            "Expected all input grads to be undefined or zero when all output grads are undefined or zero",
        ),
        (Raising.apply, "Expected backward function to handle undefined output grads"),
    ):
        with pytest.warns(UserWarning, match="check_undefined_grad=False"), pytest.raises(GradcheckError, match=words):
            gradcheck(function, leaf(2))


def test_two_runs_may_differ_by_nondet_tol():
    assert gradcheck(Random.apply, leaf(2), nondet_tol=1e-5)


def test_tolerances():
    class Off(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 10

        @staticmethod
        def backward(ctx, grad):
            return grad * 10.5

    assert gradcheck(Off.apply, leaf(2), atol=0.6, rtol=0)
    assert not gradcheck(Off.apply, leaf(2), atol=0.4, rtol=0, raise_exception=False)
    assert gradcheck(Off.apply, leaf(2), atol=0, rtol=0.06)
    assert not gradcheck(Off.apply, leaf(2), atol=0, rtol=0.04, raise_exception=False)
    assert gradcheck(Off.apply, leaf(2), atol=0.51, rtol=0, fast_mode=True)
    assert not gradcheck(Off.apply, leaf(2), atol=0.2, rtol=0, fast_mode=True, raise_exception=False)
    assert not gradcheck(lambda x: x**3, leaf(2), eps=0.1, raise_exception=False)


def test_bad_input():
    with pytest.raises(ValueError, match="none of them have requires_grad=True"):
        gradcheck(lambda x: x, torch.ones(2))
    with pytest.raises(RuntimeError, match="The 1th input has a dimension with stride 0"):
        gradcheck(lambda x, y: x * y, (leaf(3), leaf(1).expand(3)))
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision"):
        assert gradcheck(lambda x: x * 2, leaf(2, dtype=torch.float32), eps=1e-2, atol=1e-2)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        gradcheck(lambda x: x @ x, leaf(2, 5), raise_exception=False)


@pytest.mark.parametrize(
    ("check", "options", "words"),
    [
        (gradcheck, {"check_backward_ad": False}, "Expected at least one of check_forward_ad or check_backward_ad"),
        (
            gradcheck,
            {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True},
            "Setting check_batched_grad=True requires check_backward_ad to be True",
        ),
        (gradcheck, {"check_batched_forward_grad": True}, "requires check_forward_ad to be True"),
        (
            gradgradcheck,
            {"check_rev_over_rev": False},
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev",
        ),
        (
            gradgradcheck,
            {"check_rev_over_rev": False, "check_fwd_over_rev": True},
            "Setting check_undefined_grad=True requires check_rev_over_rev to be True",
        ),
        (
            gradgradcheck,
            {
                "check_rev_over_rev": False,
                "check_fwd_over_rev": True,
                "check_undefined_grad": False,
                "check_batched_grad": True,
            },
            "Setting check_batched_grad=True requires check_rev_over_rev to be True",
        ),
    ],
)
def test_options_that_contradict_each_other(check, options, words):
    with pytest.raises(AssertionError, match=words):
        check(lambda x: x * 2, leaf(2), **options)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_functions_must_not_change_their_shape_or_dtype(fast_mode):
    for change, words in ((lambda x: torch.cat([x, x]), r"shapes torch.Size\(\[2\]\) and torch.Size\(\[4\]\)"),
                          (lambda x: x.float(), "dtypes torch.float64 and torch.float32")):  # fmt: skip
        calls = []

        def function(x, change=change, calls=calls):
            calls.append(x)
            return x * 2 if len(calls) < 3 else change(x * 2)

        with pytest.raises(AssertionError, match=words):
            gradcheck(function, leaf(2), fast_mode=fast_mode)


def test_inputs_are_put_back_if_the_function_raises():
    x = leaf(2)
    before = x.tolist()

    def function(x):
        if x.tolist() != before:
            raise KeyError
        return x * 2

    with pytest.raises(KeyError):
        gradcheck(function, x)
    assert x.tolist() == before


def test_gradient_dtypes(monkeypatch):
    from adjoint.checks import jacobians

    assert gradcheck(lambda x: x.float() * 2, leaf(2), atol=1, eps=1e-2, check_grad_dtypes=True)
    monkeypatch.setattr(jacobians, "grad", lambda *args, **options: (torch.ones(2),))
    with pytest.raises(GradcheckError, match="Gradient has dtype mismatch"):
        gradcheck(lambda x: x * 2, leaf(2), check_grad_dtypes=True)


# ---------------------------------------------------------------- second derivatives


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda x: x**3, [leaf(3)]),
        (lambda x, y: (x * y, x.sin().sum()), [leaf(2), leaf(2)]),
        (lambda x, n: x**n, [leaf(2), 3]),
        (lambda x: x * x.abs(), [leaf(2, dtype=C)]),
        (lambda x, i: x[i] ** 2, [leaf(3), torch.tensor([0, 2])]),
    ],
)
def test_right_second_derivatives(function, inputs, fast_mode):
    assert gradgradcheck(function, inputs, fast_mode=fast_mode)
    assert gradgradcheck(function, inputs, fast_mode=fast_mode, gen_non_contig_grad_outputs=True)


def test_wrong_second_derivatives():
    assert gradcheck(WrongSecond.apply, leaf(2))
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradgradcheck(WrongSecond.apply, leaf(2))
    assert not gradgradcheck(WrongSecond.apply, leaf(2), raise_exception=False)


def test_given_gradients():
    assert gradgradcheck(lambda x: x**3, leaf(2), leaf(2, seed=1))
    assert gradgradcheck(lambda x: (x**3, x), [leaf(2)], [leaf(2, seed=1), leaf(2, seed=2).detach()])
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        gradgradcheck(lambda x: (x**3, x), leaf(2), leaf(2))


def test_random_gradients_may_be_non_contiguous():
    seen = []

    class Watching(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            seen.append(grad)
            return grad * 2 * ctx.saved_tensors[0]

    assert gradgradcheck(Watching.apply, leaf(2, 3), gen_non_contig_grad_outputs=True)
    assert seen[0].stride() == (6, 2)
    assert bool((seen[0].abs() <= 1).all())


# ---------------------------------------------------------------- batches


class Counting(Function):
    """A backward whose result depends on how often it has run."""

    runs = 0

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        Counting.runs += 1
        return grad * Counting.runs


def test_batches_of_gradients():
    assert gradcheck(lambda x, y: (x * y, x.exp()), (leaf(2), leaf(2)), check_batched_grad=True)
    assert gradgradcheck(lambda x: x.sin(), leaf(2), check_batched_grad=True)
    Counting.runs = 0
    with pytest.raises(GradcheckError, match="For output 0 and input 0:\n\ngradcheck or gradgradcheck failed while"):
        gradcheck(Counting.apply, leaf(2), nondet_tol=100, atol=100, check_batched_grad=True)


@pytest.mark.parametrize(
    "options", [{"check_batched_grad": True}, {"check_forward_ad": True, "check_batched_forward_grad": True}]
)
def test_functions_that_look_at_elements_cannot_be_batched(options):
    class Looking(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            assert grad.sum().item() < 1e6
            return grad * 2

        @staticmethod
        def jvp(ctx, tangent):
            return Looking.backward(ctx, tangent)

    with pytest.raises(GradcheckError, match="While computing batched gradients, got: "):
        gradcheck(Looking.apply, leaf(2), **options)


# ---------------------------------------------------------------- progress


@pytest.fixture
def bars(monkeypatch):
    """Replace tqdm by a stand-in, and return the list of its bars."""
    shown = []

    class Bar:
        def __init__(self, **options):
            self.options, self.updates, self.closed = options, 0, False
            shown.append(self)

        def update(self):
            self.updates += 1

        def close(self):
            self.closed = True

    module = types.ModuleType("tqdm")
    module.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", module)
    return shown


def test_quick_checks_show_no_bar(bars):
    assert gradcheck(lambda x: x * 2, leaf(3))
    assert bars == []


def test_slow_checks_show_a_bar(bars, monkeypatch):
    monkeypatch.setattr(Progress, "PATIENCE", 0.0)
    assert gradcheck(lambda x: x * 2, leaf(3), check_undefined_grad=False)
    (bar,) = bars
    assert bar.options["total"] == 2 * 3 + 2 * 3
    assert bar.options["initial"] + bar.updates == bar.options["total"]
    assert bar.closed


def test_no_bar_is_needed(monkeypatch):
    monkeypatch.setattr(Progress, "PATIENCE", 0.0)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert gradcheck(lambda x: x * 2, leaf(3))


# ---------------------------------------------------------------- former public names of PyTorch


def test_jacobians():
    x = leaf(2)
    expected = numpy.diag(2 * x.detach().numpy())
    with pytest.warns(FutureWarning, match="get_numerical_jacobian"):
        (found,) = get_numerical_jacobian(lambda inputs: inputs[0] ** 2, (x,))
    assert found.numpy() == pytest.approx(expected)
    with pytest.warns(FutureWarning, match="get_analytical_jacobian"):
        (found,), agree, sizes, kinds = get_analytical_jacobian((x,), x**2)
    assert found.numpy() == pytest.approx(expected)
    assert agree and sizes and kinds
    found, other = get_numerical_jacobian_wrt_specific_input(lambda x: (x**2, x.sum()), 0, (x,), [x, x], 1e-5)
    assert found.numpy() == pytest.approx(expected)
    assert other.numpy() == pytest.approx(numpy.ones((2, 1)))
    with pytest.raises(AssertionError, match="Expected ds_dx to be real-valued, not complex"):
        get_numerical_jacobian_wrt_specific_input(lambda x: (x**2,), 0, (leaf(2, dtype=C),), [], 1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="no longer supports values of grad_out"):
            get_numerical_jacobian(lambda inputs: inputs[0], (x,), grad_out=2.0)
        with pytest.raises(ValueError, match="no longer supports functions that return complex outputs"):
            get_analytical_jacobian((x,), leaf(2, dtype=C))


def test_the_gradient_of_a_real_function_of_complex_numbers():
    z = leaf(2, dtype=C)
    found, *_ = get_numerical_jacobian_wrt_specific_input(lambda z: (z.abs() ** 2,), 0, (z,), [], 1e-5)
    assert numpy.diagonal(found.numpy()) == pytest.approx(2 * z.detach().numpy(), abs=1e-6)


# ---------------------------------------------------------------- forward mode


class WrongForward(Function):
    """Twice the input, but three times the tangent."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * 3


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda x: x.exp(), [leaf(3)]),
        (lambda x, y: (x @ y, x.sum()), [leaf(2, 3), leaf(3, 2)]),
        (lambda x, y: x * y.conj(), [leaf(2, dtype=C), leaf(2, dtype=C, seed=1)]),
        (lambda x, y: (x * y, y * 2), [leaf(2, dtype=C), leaf(2)]),
    ],
)
@pytest.mark.long_cases
def test_forward_mode(function, inputs, fast_mode):
    assert gradcheck(function, inputs, check_forward_ad=True, fast_mode=fast_mode)
    assert gradcheck(function, inputs, check_forward_ad=True, check_backward_ad=False, fast_mode=fast_mode)
    assert gradgradcheck(function, inputs, check_fwd_over_rev=True, fast_mode=fast_mode)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_wrong_forward_mode(fast_mode):
    for dtype, part in ((D, ""), (C, "While considering the imaginary part of complex inputs only, ")):
        with pytest.raises(GradcheckError) as caught:
            gradcheck(WrongForward.apply, leaf(2, dtype=dtype), check_forward_ad=True, fast_mode=fast_mode)
        words = f"{part}Jacobian computed with forward mode mismatch for output 0 with respect to input 0,"
        assert str(caught.value).startswith(words)


def test_undefined_tangents_count_as_zeros():
    class Mistaken(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.set_materialize_grads(False)
            return x * 2 + y

        @staticmethod
        def backward(ctx, grad):
            return (None, None) if grad is None else (grad * 2, grad)

        @staticmethod
        def jvp(ctx, first, second):
            if second is None:
                return first * 2
            return second + 1 if first is None else first * 2 + second

    inputs = (leaf(2), leaf(2, seed=1))
    with pytest.raises(GradcheckError, match="Mismatch in tangent values for output with index: 0 when input: "):
        gradcheck(Mistaken.apply, inputs, check_forward_ad=True)
    assert gradcheck(Mistaken.apply, inputs, check_forward_ad=True, check_undefined_grad=False)


def test_batches_of_tangents():
    inputs = (leaf(2), leaf(2, seed=1))
    function = lambda x, y: (x * y, x.exp())
    assert gradcheck(function, inputs, check_forward_ad=True, check_batched_forward_grad=True)
    assert gradcheck(function, inputs, check_forward_ad=True, check_batched_forward_grad=True, check_backward_ad=False)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_infinite_derivatives_are_compared_without_warnings(fast_mode: bool) -> None:
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(GradcheckError):
        gradcheck(lambda a: a / 0, x, fast_mode=fast_mode)
