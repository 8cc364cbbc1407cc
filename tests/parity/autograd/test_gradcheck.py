"""gradcheck and gradgradcheck find the same errors as PyTorch's functions, with the same messages."""

import re
import warnings

import pytest

torch = pytest.importorskip("torch")

from tests.parity.candidate import candidate

# Correct and wrong functions to check, for either library.
_FUNCTIONS = """
Function = torch.autograd.Function
D, C = torch.float64, torch.complex128

def leaf(*shape, dtype=D):
    torch.manual_seed(0)
    return torch.randn(shape, dtype=dtype).requires_grad_()

class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * x * 3

class WrongSecond(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3
    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * 3 * (x ** 2).detach()

class Sparse(Function):
    @staticmethod
    def forward(ctx, x):
        return x
    @staticmethod
    def backward(ctx, grad):
        return grad.to_sparse()

class Random(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def vjp(ctx, grad):
        return grad * 2
    @staticmethod
    def jvp(ctx, tangent):
        torch.randn_like(tangent)
        return tangent * 2

class Doubled(Random):
    @staticmethod
    def jvp(ctx, tangent):
        return tangent * 2

def hooked(x):
    y = x.clone()
    y.register_hook(lambda grad: grad.to_dense().to_sparse(1))
    return y.to_dense()

class Tripled(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return grad * 3

class WrongReal(Function):
    @staticmethod
    def forward(ctx, x):
        return torch.complex(x * 2, x * 2)
    @staticmethod
    def backward(ctx, grad):
        return grad.real * 3 + grad.imag * 2

class WrongOfMixed(Function):
    @staticmethod
    def forward(ctx, x, y):
        return y * 2, x * y
    @staticmethod
    def backward(ctx, g, h):
        return h * 0, g * 3

class Constant(Function):
    @staticmethod
    def forward(ctx, x):
        return x.sum() * 2
    @staticmethod
    def backward(ctx, grad):
        return torch.ones(3, dtype=D) * 2

class Random(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return grad * 2 * (1 + torch.rand_like(grad) * 1e-7)

class Nothing(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return None

class Undefined(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3
    @staticmethod
    def backward(ctx, g, h):
        if g is None and h is None:
            return torch.ones(2, dtype=D)
        return (0 if g is None else g * 2) + (0 if h is None else h * 3)

class Raising(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        if grad is None:
            raise RuntimeError("no gradient")
        return grad * 2

class Counting(Function):
    runs = 0
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        Counting.runs += 1
        return grad * 2 * Counting.runs

class WrongForward(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return grad * 2
    @staticmethod
    def jvp(ctx, tangent):
        return tangent * 3

class WrongRealForward(Function):
    @staticmethod
    def forward(ctx, x):
        return x.real * 2
    @staticmethod
    def backward(ctx, grad):
        return (grad * 2).to(C)
    @staticmethod
    def jvp(ctx, tangent):
        return tangent.real * 3

class Changing:
    def __init__(self, change):
        self.calls, self.change = 0, change
    def __call__(self, x):
        self.calls += 1
        return x * 2 if self.calls < 3 else self.change(x * 2)

def gradients_given(shape, dtype=D, **options):
    seen = []
    class Watching(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 2
        @staticmethod
        def backward(ctx, grad):
            seen.append((grad.detach().clone(), grad.stride(), grad.requires_grad))
            return grad * 2 * ctx.saved_tensors[0].conj()
    x = torch.ones(shape, dtype=dtype, requires_grad=True)
    torch.manual_seed(3)
    torch.autograd.gradgradcheck(Watching.apply, x, **options)
    return seen[0]

def points_and_gradients(fast_mode, dtype):
    # where a function is evaluated, and which gradients its backward is given
    seen = []
    x, y = leaf(2, dtype=dtype), leaf(3)
    at = x.detach().clone(), y.detach().clone()
    class Watching(Function):
        @staticmethod
        def forward(ctx, x, y):
            seen.append([((now - then) / 1e-2) for now, then in zip((x.detach(), y.detach()), at)])
            return x * 2, y * 3
        @staticmethod
        def backward(ctx, g, h):
            seen.append([g.clone(), h.clone()])
            return g * 2, h * 3
    torch.autograd.gradcheck(Watching.apply, (x, y), eps=1e-2, fast_mode=fast_mode)
    return [[each.tolist() for each in pair] for pair in seen]

gradcheck, gradgradcheck = torch.autograd.gradcheck, torch.autograd.gradgradcheck
"""

CHECKS = """
gradcheck(lambda x: x * 2, torch.ones(2))
gradcheck(lambda x: x * 2, torch.ones(2), raise_exception=False)
gradcheck(lambda x: x * 2, leaf(2, dtype=torch.float32))
gradcheck(lambda x, n, y: x * 2 * y, (leaf(2, dtype=torch.float32), 3, leaf(2)))
gradcheck(lambda x: x * 2, leaf(2, dtype=torch.complex64))
gradcheck(lambda x: x * 2, leaf(2, 1).expand(2, 3))
gradcheck(lambda x: x * 2, leaf(3).as_strided((2, 2), (1, 1)))
gradcheck(lambda x: x * 2, leaf(1).expand(1, 1))
gradcheck(lambda x: x.detach() * 0, leaf(2))
gradcheck(lambda x: x.detach() * 2, leaf(2))
gradcheck(lambda x: x.detach() * 2, leaf(2), fast_mode=True)
gradcheck(lambda x: x.detach() * 2, leaf(2, dtype=C))
gradcheck(lambda x: x.detach() * 2, leaf(2, dtype=C), fast_mode=True)
gradcheck(lambda x: (x * 2).long(), leaf(2))
gradcheck(lambda x: (x * 2, x.argmax()), leaf(2))
gradcheck(Wrong.apply, leaf(2))
gradcheck(Wrong.apply, leaf(2), raise_exception=False)
gradcheck(Wrong.apply, leaf(2), fast_mode=True)
gradcheck(Wrong.apply, leaf(3, 2), fast_mode=True)
gradcheck(Wrong.apply, leaf(4), atol=3.0)
gradcheck(Wrong.apply, leaf(2), rtol=0.6)
gradcheck(Wrong.apply, leaf(2), rtol=0.4)
gradcheck(lambda x, y: (x * y, x + Wrong.apply(y)), (leaf(2), leaf(3, 2)))
gradcheck(lambda x, y: (x * y, x + Wrong.apply(y)), (leaf(2), leaf(3, 2)), fast_mode=True)
gradcheck(lambda n, m, x: (x * 2, Wrong.apply(x)), (3, leaf(2).detach(), leaf(2)))
gradcheck(lambda n, m, x: (x * 2, Wrong.apply(x)), (3, leaf(2).detach(), leaf(2)), fast_mode=True)
gradcheck(Tripled.apply, leaf(3, dtype=torch.float32), eps=1e-3)
gradcheck(Wrong.apply, leaf(2, dtype=C))
gradcheck(Wrong.apply, leaf(2, dtype=C), fast_mode=True)
gradcheck(lambda x: Wrong.apply(x).abs(), leaf(2, dtype=C))
gradcheck(lambda x: Wrong.apply(x).abs(), leaf(2, dtype=C), fast_mode=True)
gradcheck(lambda x: torch.complex(x, Wrong.apply(x)), leaf(2))
gradcheck(lambda x: torch.complex(x, Wrong.apply(x)), leaf(2), fast_mode=True)
gradcheck(WrongReal.apply, leaf(2))
gradcheck(WrongReal.apply, leaf(2), fast_mode=True)
gradcheck(lambda x: (x.abs(), x * 5j, Wrong.apply(x)), leaf(2, dtype=C))
gradcheck(WrongOfMixed.apply, (leaf(2, dtype=C), leaf(2)))
gradcheck(WrongOfMixed.apply, (leaf(2, dtype=C), leaf(2)), fast_mode=True)
gradcheck(lambda x, y: (x * y, y * 2), (leaf(2, dtype=C), leaf(2)))
gradcheck(lambda x, y: (x * y, y * 2), (leaf(2, dtype=C), leaf(2)), fast_mode=True)
gradcheck(Constant.apply, leaf(3))
gradcheck(Constant.apply, leaf(3), fast_mode=True)
gradcheck(Random.apply, leaf(2))
gradcheck(Random.apply, leaf(2), fast_mode=True)
gradcheck(Random.apply, leaf(2), nondet_tol=1e-5)
gradcheck(Nothing.apply, leaf(2))
gradcheck(lambda x: Nothing.apply(x) * 0, leaf(2))
gradcheck(Undefined.apply, leaf(2))
gradcheck(Undefined.apply, leaf(2), check_undefined_grad=False)
gradcheck(Raising.apply, leaf(2))
gradcheck(Raising.apply, leaf(2), raise_exception=False)
gradcheck(lambda x: x * 2, leaf(2), check_backward_ad=False)
gradcheck(lambda x: x * 2, leaf(2), check_batched_forward_grad=True)
gradcheck(lambda x: x * 2, leaf(2), check_backward_ad=False, check_forward_ad=True, check_batched_grad=True)
gradcheck(lambda x: x * 2, leaf(2), 1e-6)
gradcheck(lambda x: [x * 2], [leaf(2)], masked=True)
gradcheck(lambda x: x @ x @ x, leaf(2, 5), raise_exception=False)
gradcheck(lambda x: x * 2, leaf(2) * 2)
gradcheck(lambda x: x * 2, leaf(0))
gradcheck(lambda x: x * 2, leaf(0), fast_mode=True)
gradcheck(lambda x, y: (x * 2, y * 2), (leaf(0), leaf(2)), fast_mode=True)
gradcheck(lambda x: x * 2, leaf(), fast_mode=True)
gradcheck(lambda x, y: x * 2, (leaf(2), leaf(2)))
gradcheck(lambda x: x, leaf(2))
gradcheck(lambda x: x.mul_(2), leaf(2) * 1)
gradcheck(lambda x: x.log(), torch.tensor([-1.0, 2.0], dtype=D, requires_grad=True))
gradcheck(lambda x: x.log(), torch.tensor([-1.0, 2.0], dtype=D, requires_grad=True), fast_mode=True)
gradcheck(lambda x: x ** 3, leaf(2), eps=1e-1)
gradcheck(lambda x: x.max(0), leaf(4))
gradcheck(lambda x: (), leaf(4))
gradcheck(Changing(lambda x: torch.cat([x, x])), leaf(2))
gradcheck(Changing(lambda x: torch.cat([x, x])), leaf(2), fast_mode=True)
gradcheck(Changing(lambda x: x.float()), leaf(2))
gradcheck(Changing(lambda x: x.float()), leaf(2), fast_mode=True)
gradcheck(lambda x: x * 2, leaf(2), atol=-1.0)
gradcheck(Counting.apply, leaf(2), nondet_tol=1000, atol=1000, check_batched_grad=True)
gradcheck(lambda x, y: (x * y, Counting.apply(y)), (leaf(2), leaf(2)), nondet_tol=1000, atol=1000, check_batched_grad=True)
gradcheck(lambda x, y: x * 2, (leaf(2), leaf(2)), check_batched_grad=True)
(gradcheck(lambda x: x * 2, leaf(2), check_batched_grad=True), torch.rand(2))
gradgradcheck(lambda x: x ** 3, leaf(2))
gradgradcheck(WrongSecond.apply, leaf(2))
gradgradcheck(WrongSecond.apply, leaf(2), fast_mode=True)
gradgradcheck(WrongSecond.apply, leaf(2), raise_exception=False)
gradgradcheck(WrongSecond.apply, leaf(2), torch.ones(2, dtype=D))
gradgradcheck(lambda x: x ** 3, leaf(2), torch.ones(2, dtype=D))
gradgradcheck(lambda x: (x * 2, x), leaf(4), leaf(4))
gradgradcheck(lambda x: x ** 2, leaf(2, dtype=torch.float32))
gradgradcheck(lambda x: (x ** 2).float(), leaf(4))
gradgradcheck(lambda x: x ** 2, leaf(2, dtype=C))
gradgradcheck(lambda x, y: x * 2, (leaf(2), leaf(2)))
gradgradcheck(lambda x: x * 2, leaf(2).detach())
gradgradcheck(lambda x: (x ** 2, x.argmax()), leaf(2))
gradgradcheck(lambda x: x ** 2, [leaf(4)], [leaf(4)])
gradgradcheck(lambda x: x * 2, leaf(2), check_rev_over_rev=False)
gradgradcheck(lambda x: x * 2, leaf(2), check_fwd_over_rev=True, check_rev_over_rev=False)
gradients_given((2, 2))
gradients_given((2, 2), gen_non_contig_grad_outputs=True)
gradients_given((), gen_non_contig_grad_outputs=True)
gradients_given((3,), C)
gradients_given((3,), C, gen_non_contig_grad_outputs=True)
points_and_gradients(False, D)
points_and_gradients(True, D)
points_and_gradients(False, C)
points_and_gradients(True, C)
"""

FORWARD_CHECKS = """
gradcheck(Doubled.apply, leaf(2), check_forward_ad=True, check_batched_forward_grad=True)
gradcheck(Doubled.apply, leaf(2), check_forward_ad=True, check_batched_forward_grad=True, check_batched_grad=True)
gradcheck(Random.apply, leaf(2), check_forward_ad=True, check_batched_forward_grad=True)
gradcheck(Sparse.apply, leaf(2))
gradcheck(Sparse.apply, leaf(2), fast_mode=True)
gradcheck(hooked, leaf(2, 2).to_sparse(), masked=True)
gradcheck(lambda x: x * 2, leaf(2), check_forward_ad=True)
gradcheck(WrongForward.apply, leaf(2), check_forward_ad=True)
gradcheck(WrongForward.apply, leaf(2), check_forward_ad=True, check_backward_ad=False)
gradcheck(WrongForward.apply, leaf(2, 2), check_forward_ad=True, fast_mode=True)
gradcheck(WrongForward.apply, leaf(2, dtype=C), check_forward_ad=True)
gradcheck(WrongForward.apply, leaf(2, dtype=C), check_forward_ad=True, fast_mode=True)
gradcheck(WrongRealForward.apply, leaf(2, dtype=C), check_forward_ad=True)
gradcheck(WrongRealForward.apply, leaf(2, dtype=C), check_forward_ad=True, fast_mode=True)
gradcheck(Wrong.apply, leaf(2), check_forward_ad=True, check_backward_ad=False)
gradcheck(lambda x: x.detach() * 2, leaf(2), check_forward_ad=True, check_backward_ad=False)
gradcheck(lambda x, y: (x * y, y * 2), (leaf(2, dtype=C), leaf(2)), check_forward_ad=True)
gradgradcheck(lambda x: x ** 3, leaf(2), check_fwd_over_rev=True)
gradgradcheck(lambda x: x ** 3, leaf(2), check_fwd_over_rev=True, check_rev_over_rev=False, check_undefined_grad=False)
"""

# PyTorch's advice to developers of its operators, and the text after the advice.
_ADVICE = re.compile(
    r"(\n\nNOTE: If your op|This could have been invoked|If you are adding a new operator|\n\nGot:).*", re.DOTALL
)


def normal(text):
    """Return a message with rounded numbers and unsigned zeros, and without the parts that only PyTorch's messages have."""
    text = _ADVICE.sub("", re.sub(r"\b(adjoint|torch)\.", "torch.", text)).rstrip()
    text = re.sub(r"(?<=\[| ) *-?(0\.0*)(?=[^\d])", r"\1", text)
    return re.sub(r"\d+\.\d{5,}(e-?\d+)?", lambda found: f"{float(found[0]):.5g}", text)


def outcome(line, library):
    scope = {"torch": library}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(_FUNCTIONS, scope)
        try:
            result = repr(eval(line, scope))
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
    said = [(each.category.__name__, str(each.message)) for each in caught if "jit" not in str(each.message)]
    return normal(result), said


@pytest.mark.parametrize("line", CHECKS.strip().split("\n"))
def test_the_same_verdict_in_the_same_words(line):
    assert outcome(line, candidate) == outcome(line, torch)


@pytest.mark.parametrize("line", FORWARD_CHECKS.strip().split("\n"))
def test_forward_mode(line):
    assert outcome(line, candidate) == outcome(line, torch)
