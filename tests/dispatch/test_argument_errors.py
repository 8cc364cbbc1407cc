"""Errors about wrong arguments name the called function, and count positions as in the call."""

import re

import numpy
import pytest

import adjoint as torch
import adjoint.nn.functional as F

X, ARRAY = torch.ones(2), numpy.ones(2)

LERP = """\
lerp_() received an invalid combination of arguments - got (Tensor, str), but expected one of:
 * (Tensor end, Tensor weight)
      didn't match because some of the arguments have invalid types: (Tensor, !str!)
 * (Tensor end, Number weight)
      didn't match because some of the arguments have invalid types: (Tensor, !str!)
"""

CALLS = [
    (lambda: torch.add(X, "a"), "add(): argument 'other' (position 2) must be Tensor, not str"),
    (lambda: X.add("a"), "add(): argument 'other' (position 1) must be Tensor, not str"),
    (lambda: X.add_("a"), "add_(): argument 'other' (position 1) must be Tensor, not str"),
    (lambda: torch.Tensor.add(X, "a"), "add(): argument 'other' (position 1) must be Tensor, not str"),
    (lambda: X.arctan2_("a"), "arctan2_(): argument 'other' (position 1) must be Tensor, not str"),
    (lambda: torch.special.expit(3), "special_expit(): argument 'input' (position 1) must be Tensor, not int"),
    (lambda: torch.cumsum(X, "a"), "cumsum(): argument 'dim' (position 2) must be int, not str"),
    (lambda: X.cumsum_("a"), "cumsum_(): argument 'dim' (position 1) must be int, not str"),
    (lambda: X.cumsum_(), 'cumsum_() missing 1 required positional arguments: "dim"'),
    (lambda: X.softmax("a"), "softmax(): argument 'dim' (position 1) must be int, not str"),
    (lambda: torch.softmax(X, "a"), "softmax(): argument 'dim' (position 2) must be int, not str"),
    (lambda: X.where(3, X), "where(): argument 'condition' (position 1) must be Tensor, not int"),
    (lambda: X.matmul(3), "matmul(): argument 'other' (position 1) must be Tensor, not int"),
    (lambda: X.copy_(ARRAY), "copy_(): argument 'other' (position 1) must be Tensor, not numpy.ndarray"),
    (lambda: torch.numel(ARRAY), "numel(): argument 'input' (position 1) must be Tensor, not numpy.ndarray"),
    (lambda: torch.add(X, 1, out=ARRAY), "add(): argument 'out' must be Tensor, not numpy.ndarray"),
    (lambda: torch.zeros(2, out=ARRAY), "zeros(): argument 'out' must be Tensor, not numpy.ndarray"),
    (
        lambda: torch.linalg.eigvals(torch.eye(2), out=ARRAY),
        "linalg_eigvals(): argument 'out' must be Tensor, not numpy.ndarray",
    ),
    (lambda: torch.svd(torch.eye(2), out=ARRAY), "svd(): argument 'out' must be tuple of Tensors, not numpy.ndarray"),
    (
        lambda: torch.linalg.qr(torch.eye(2), out=ARRAY),
        "linalg_qr(): argument 'out' must be tuple of Tensors, not numpy.ndarray",
    ),
    (lambda: torch.zeros(2, layout=ARRAY), "zeros(): argument 'layout' must be torch.layout, not numpy.ndarray"),
    (lambda: torch.zeros(2, dtype=ARRAY), "zeros(): argument 'dtype' must be torch.dtype, not numpy.ndarray"),
    (lambda: torch.nonzero(X, as_tuple=True, out=ARRAY), "nonzero(): argument 'out' must be Tensor, not numpy.ndarray"),
    (lambda: torch.cat([X, ARRAY]), "expected Tensor as element 1 in argument 0, but got numpy.ndarray"),
    (lambda: torch.exp_(3), "exp_(): argument 'input' (position 1) must be Tensor, not int"),
    (
        lambda: X.add_(),
        "add_() received an invalid combination of arguments - got (), but expected (Tensor other, *, Number alpha = 1)",
    ),
    (lambda: X.lerp_(X, "a"), LERP),
]


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_the_error_names_the_call(call, message):
    for _ in range(2):  # the first call of a function runs its stub
        with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
            call()


def test_a_call_within_another_function_is_one_of_the_function():
    with pytest.raises(TypeError, match=r"mm\(\): argument 'mat2' \(position 3\)"):
        torch.addmm(X, X[None], 3)


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "&", "<<"])
def test_an_augmented_assignment_of_an_unknown_operand(symbol):
    with pytest.raises(TypeError, match=rf"unsupported operand type\(s\) for {re.escape(symbol)}=: 'Tensor' and 'str'"):
        exec(f"x {symbol}= 'a'", {"x": torch.ones(2)})


WITH_INTEGERS = """
x.sum(one) | x.mean(one) | x.prod(one) | x.nansum(one) | x.amax(one) | x.norm(dim=one) | F.normalize(x, dim=one) | x.var(one)
x.sum([one]) | torch.linalg.vector_norm(x, dim=one) | x.logsumexp(one) | x.softmax(one) | x.cumsum(one) | x.amin(one)
x.as_strided([two, three], [three, one], one) | x.view(two, twelve) | x.reshape(two, twelve) | x.expand(two, four, six)
x.narrow(one, one, two) | x.unfold(one, two, one) | x.repeat(two, one) | x.roll(one, one) | x.flip(one) | x.split(two)[0]
x.movedim(zero, one) | x.chunk(two)[1] | x.tensor_split(two)[0] | x.unflatten(1, (two, three)) | x.select(zero, one) | x[one:two]
F.max_pool1d(x, two) | x.topk(two)[0] | x.diagonal(one) | x.tril(one) | F.pad(x, (one, one))
F.avg_pool1d(x, two) | torch.cat([x, x], one) | F.interpolate(x[None], size=twelve) | F.group_norm(x[None], two)
F.layer_norm(x, (six,)) | torch.linspace(0, 1, six) * x
torch.fft.fft(x, dim=one).abs() | torch.eye(four) @ x | x.index_select(zero, torch.tensor([1]))
"""
INTEGERS = {"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "six": 6, "twelve": 12}


@pytest.mark.parametrize("kind", [numpy.int64, torch.tensor], ids=["numpy", "tensors"])
@pytest.mark.parametrize("text", [text.strip() for text in WITH_INTEGERS.replace("\n", "|").split("|") if text.strip()])
def test_integers_of_other_kinds_are_integers_in_backward_too(text, kind):
    def run(numbers):
        x = torch.linspace(0.1, 2.4, 24).view(4, 6).requires_grad_()
        result = eval(text, {"x": x, "F": torch.nn.functional, "torch": torch, **numbers})
        saved = getattr(result.grad_fn, "_saved_dim", None)
        (result * result).sum().backward()
        return result, x.grad, saved

    result, grad, saved = run({name: kind(number) for name, number in INTEGERS.items()})
    expected_result, expected_grad, expected_saved = run(INTEGERS)
    torch.testing.assert_close(result, expected_result)  # the sum over one dimension calls another function of NumPy
    torch.testing.assert_close(grad, expected_grad)
    assert saved == expected_saved


ARGUMENTS = [(), ("tensor",), (0,), (0, "tensor"), (0, 1), ("tensor", "tensor"), (0.5,)]


def methods():
    named = (name for name in dir(torch.Tensor) if not name.startswith("_"))
    return [
        name for name in named if callable(getattr(torch.Tensor, name)) and not name.startswith(("cuda", "register"))
    ]


@pytest.mark.parametrize("name", methods())
def test_a_method_takes_no_out(name):
    """Other functions with the same names accept `out`, even None.

    The same call succeeds without `out`, so `out` causes the error.
    """
    for arguments in ARGUMENTS:
        tensor = torch.eye(2)
        given = [torch.eye(2) if each == "tensor" else each for each in arguments]
        with pytest.raises(Exception) as raised:
            getattr(tensor, name)(*given, out=None)
        try:
            getattr(torch.eye(2), name)(*given)
        except Exception:
            continue
        assert raised.type is TypeError


def test_a_method_takes_no_out_before_and_after_its_first_call():
    vector = torch.tensor([3.0, 1.0])
    for _ in range(2):
        for name in ("max", "cumsum", "exp", "norm", "softmax", "std"):
            with pytest.raises(TypeError, match=r"keyword|invalid combination"):
                getattr(vector, name)(*[0] * (name in ("cumsum", "softmax")), out=None)
        vector.max(), vector.cumsum(0), vector.exp(), vector.norm(), vector.softmax(0), vector.std()
    out = torch.empty(2)
    assert torch.exp(vector, out=out) is out


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: torch.max(x, x, x),
            r"max\(\) received an invalid combination of arguments - got \(Tensor, Tensor, Tensor\)",
        ),
        (lambda x: torch.min(x, x, keepdim=True), r"min\(\) received an invalid combination of arguments"),
        (
            lambda x: torch.softmax(x, 0, x),
            r"softmax\(\): argument 'dtype' \(position 3\) must be torch.dtype, not Tensor",
        ),
        (
            lambda x: x.log_softmax(0, 3),
            r"log_softmax\(\): argument 'dtype' \(position 2\) must be torch.dtype, not int",
        ),
        (lambda x: torch.softmax(x, 0, dtype="x"), r"softmax\(\): argument 'dtype' must be torch.dtype, not str"),
        (lambda x: x.to_dense(x), r"to_dense\(\): argument 'dtype' \(position 1\) must be torch.dtype, not Tensor"),
        (lambda x: F.softmax(x, 0, dtype=x), r"softmax\(\): argument 'dtype'.* must be torch.dtype, not Tensor"),
        (lambda x: x.uniform_(0, 1, x), r"uniform_\(\) takes from 0 to 2 positional arguments but 3 were given"),
        (lambda x: x.random_(0, 1, 2), r"random_\(\) takes from 0 to 2 positional arguments but 3 were given"),
        (lambda x: torch.addcdiv(x, x, 0, x), r"addcdiv\(\) received an invalid combination of arguments"),
        (lambda x: torch.addmm(x, x, 0.5, 0.5, x), r"addmm\(\) received an invalid combination of arguments"),
        (lambda x: x.cpu(x), "positional argument"),
        (lambda x: x.is_contiguous(x), "positional argument"),
    ],
)
def test_surplus_arguments_and_arguments_of_another_type_are_refused(call, message):
    with pytest.raises(TypeError, match=message):
        call(torch.ones(2, 2))


def test_one_result_is_not_written_to_a_tuple():
    x = torch.ones(2, 3)
    for call in (torch.add, torch.mm):
        with pytest.raises(TypeError, match=rf"{call.__name__}.*out"):
            call(x, x.T if call is torch.mm else x, out=(torch.empty(2, 3),))
    for call in (torch.abs, torch.cat):
        with pytest.raises(TypeError, match=rf"{call.__name__}\(\): argument 'out' must be Tensor, not tuple"):
            call([x] if call is torch.cat else x, out=(torch.empty(2, 3),))
    with pytest.raises(TypeError, match=r"randperm\(\): argument 'out' must be Tensor, not int"):
        torch.randperm(3, out=3)


def test_names_of_types_in_errors_have_the_modules_of_compiled_types():
    import collections
    import fractions

    import numpy

    for value, name in (
        (numpy.ones(2), "numpy.ndarray"),
        (collections.deque(), "collections.deque"),
        (fractions.Fraction(1), "Fraction"),
        (collections.Counter(), "Counter"),
        (range(2), "range"),
    ):
        with pytest.raises(TypeError, match=rf"not {name}$"):
            torch.relu(value)
    x = torch.ones(2)
    with pytest.raises(TypeError, match=r"got grad of type numpy\.ndarray"):
        x.grad = numpy.ones(2)
    with pytest.raises(TypeError, match=r"has to be a tensor, but got numpy\.ndarray"):
        x.data = numpy.ones(2)
    with pytest.raises(TypeError, match="invalid combination"):
        torch.clamp(x, numpy.ones(2))


@pytest.mark.parametrize("dim", [(), (0,)])
def test_out_does_not_choose_the_dtype_in_which_integers_are_averaged(dim):
    x, out = torch.arange(4), torch.zeros((), dtype=torch.float64)
    with pytest.raises(RuntimeError, match=r"Input dtype must be .* complex dtype\. Got: Long"):
        torch.mean(x, *dim, out=out)
    assert out == 0
    assert torch.mean(x, *dim, dtype=torch.float64, out=out) is out and out == 1.5


def test_mean_of_all_elements_has_the_requested_dtype_or_none():
    x = torch.ones(2, 3)
    assert torch.mean(x, dtype=torch.float64, out=torch.empty((), dtype=torch.float64)).dtype == torch.float64
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype double, but got float instead"):
        torch.mean(x, dtype=torch.float64, out=torch.empty(()))
