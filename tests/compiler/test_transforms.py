"""Function transforms are captured together with the functions that they call. Decorated functions keep their decorators."""

import functools
import warnings

import pytest

import adjoint as torch

from .comparison import assert_alike, reason_of

func, nn = torch.func, torch.nn
MIXED = torch.linspace(-1, 1, 25, dtype=torch.float64).reshape(5, 5)
SCALE = [torch.tensor(0.5, dtype=torch.float64)]


def scalar(x):
    return (MIXED @ x).tanh().pow(2).sum() * SCALE[0]


def vector(x):
    return (MIXED @ x).sin() + SCALE[0] * x


def written(x):
    out = torch.zeros_like(x)
    out[0] = x[1] * x[2]
    out[1:] = x[:-1].exp()
    return out * SCALE[0]


def branching(x):
    return torch.where(x > 0, x.exp(), x * SCALE[0]).sum()


TRANSFORMS = {
    "grad": lambda f: func.grad(lambda x: f(x).sum()),
    "grad and value": lambda f: func.grad_and_value(lambda x: f(x).sum()),
    "grad of grad": lambda f: func.grad(lambda x: func.grad(lambda y: f(y).sum())(x).pow(2).sum()),
    "jacrev": func.jacrev,
    "jacfwd": func.jacfwd,
    "hessian": lambda f: func.hessian(lambda x: f(x).sum()),
    "jacfwd of jacrev": lambda f: func.jacfwd(func.jacrev(f)),
    "vmap": lambda f: lambda x: func.vmap(f)(torch.stack([x, x * 2, -x])),
    "vmap of grad": lambda f: lambda x: func.vmap(func.grad(lambda y: f(y).sum()))(torch.stack([x, x * 2])),
    "vmap in chunks": lambda f: lambda x: func.vmap(f, chunk_size=2)(torch.stack([x, x * 2, -x])),
    "vmap of dimension 1": lambda f: lambda x: func.vmap(f, in_dims=1)(torch.stack([x, x * 2], 1)),
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (x.cos(),)),
    "vjp": lambda f: lambda x: func.vjp(f, x)[1](f(x).detach().cos()),
    "Hessian-vector product": lambda f: lambda x: func.jvp(func.grad(lambda y: f(y).sum()), (x,), (x.cos(),)),
    "autograd.functional": lambda f: lambda x: torch.autograd.functional.jvp(f, x, x),
}


def called(function, compile, count=5):
    """Return the results of calls between which outer values change, and the compiled function."""
    torch.manual_seed(0)
    run = torch.compile(function) if compile else function
    before, found = SCALE[0], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for number in range(count):
                found.append(run(torch.randn(5, dtype=torch.float64)))
                if number == 2:
                    SCALE[0] = SCALE[0] * 3
                elif number == 3:
                    SCALE[0].mul_(0.5)
        finally:
            SCALE[0] = before
    return found, run


@pytest.mark.parametrize("function", [scalar, vector, written, branching], ids=lambda each: each.__name__)
@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.long_cases
def test_transforms(name, function):
    make = TRANSFORMS[name]
    expected, _ = called(make(function), False)
    found, run = called(make(function), True)
    assert_alike(found, expected, name)
    if name != "autograd.functional" and function is not written:
        assert reason_of(run) is None
        assert sum(variant.calls for variant in run.compiled.variants)


def test_gradients_through_transforms():
    def function(x, weight):
        return func.vmap(func.grad(lambda each: (each @ weight).tanh().sum()))(x)

    x, grads = torch.randn(3, 4), []
    for run in (function, torch.compile(function)):
        for _ in range(3):
            weight = torch.ones(4, requires_grad=True)
            run(x, weight).sin().sum().backward()
            grads.append(weight.grad)
    assert_alike(grads[3:], grads[:3], "gradients")


def test_a_model_called_with_other_parameters():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

    def loss(params, x):
        return func.functional_call(model, params, (x,)).pow(2).mean()

    def per_sample(params, x):
        return func.vmap(func.grad(loss), in_dims=(None, 0))(params, x)

    x = torch.randn(6, 3)
    params = {name: each.detach() for name, each in model.named_parameters()}
    run = torch.compile(per_sample)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            assert_alike(run(params, x), per_sample(params, x), "per-sample gradients")
            params = {name: each * 0.9 for name, each in params.items()}


def twice(function):
    @functools.wraps(function)
    def wrapper(*args):
        return 2 * function(*args)

    return wrapper


class Doubled:
    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *args):
        return 2 * self.function(*args)


WRAPPERS = {
    "no_grad": lambda f: torch.no_grad()(f),
    "enable_grad": lambda f: torch.enable_grad()(f),
    "set_grad_enabled": lambda f: torch.autograd.set_grad_enabled(False)(f),
    "inference_mode": lambda f: torch.inference_mode()(f),
    "autocast": lambda f: torch.autocast("cpu", torch.bfloat16)(f),
    "wraps": twice,
    "a class": Doubled,
    "lru_cache": lambda f: functools.lru_cache(f),
    "partial": lambda f: functools.partial(f, bias=3.0),
    "disable": lambda f: torch.compiler.disable(f),
    "script": lambda f: torch.jit.script_if_tracing(f),
    "compile": lambda f: torch.compile(f),
    "checkpoint": lambda f: lambda x: torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False),
    "grad": lambda f: func.grad(lambda x: f(x).sum()),
    "vmap": lambda f: func.vmap(f),
    "hessian": lambda f: func.hessian(lambda x: f(x).sum()),
    "two of them": lambda f: torch.no_grad()(twice(f)),
    "a method": lambda f: type("Owner", (), {"f": lambda self, x: f(x)})().f,
    "functionalize": lambda f: func.functionalize(f),
    "linearize": lambda f: lambda x: func.linearize(f, x)[1](x),
}


@pytest.mark.parametrize("breaking", [False, True])
@pytest.mark.parametrize("name", WRAPPERS)
def test_wrapped_functions(name, breaking, capsys):
    def function(x, bias=1.0):
        y = (x * x * x + bias).float() @ torch.ones(3, 3)
        if breaking:
            print("called")
        return y * 2

    x = torch.randn(4, 3, requires_grad=True)
    given = x[0] if name in ("grad", "hessian") else x
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for run in (WRAPPERS[name](function), torch.compile(WRAPPERS[name](function))):
            found = [run(given) for _ in range(3)]
            results.append([(each, each.dtype, each.requires_grad, each.is_inference()) for each in found])
    assert_alike(results[1], results[0], name)
    if name != "lru_cache":
        text = capsys.readouterr().out
        assert text == text[: len(text) // 2] * 2
