"""A recomputation runs in the context of the first run, so gradients with and without checkpoints agree.

Only the first run is within the context. Backward runs after the context.
"""

import contextlib
import warnings
from functools import cache

import pytest

import adjoint as torch
from adjoint import func, nn
from adjoint.autograd import forward_ad
from adjoint.nn.attention import SDPBackend, sdpa_kernel
from adjoint.nn.utils import parametrizations, parametrize
from adjoint.overrides import TorchFunctionMode
from adjoint.utils._python_dispatch import TorchDispatchMode
from adjoint.utils.checkpoint import checkpoint, checkpoint_sequential, create_selective_checkpoint_contexts
from adjoint.utils.flop_counter import FlopCounterMode

pytestmark = pytest.mark.filterwarnings("ignore")

CONTEXTS = {}
FUNCTIONS = {}
WAYS = {}


def entry(table):
    def register(function):
        table[function.__name__] = function
        return function

    return register


# --- contexts -----------------------------------------------------------------------------------------------------------

CONTEXTS["nothing"] = contextlib.nullcontext
for half in ("bfloat16", "float16"):
    for cached in (True, False):
        CONTEXTS[f"autocast {half} {cached}"] = lambda half=half, cached=cached: torch.autocast(
            "cpu", dtype=getattr(torch, half), cache_enabled=cached
        )
CONTEXTS["autocast off"] = lambda: torch.autocast("cpu", enabled=False)
CONTEXTS["device"] = lambda: torch.device("cpu")
CONTEXTS["view replay"] = lambda: torch.autograd._force_original_view_tracking(True)
CONTEXTS["anomaly"] = torch.autograd.detect_anomaly
CONTEXTS["attention"] = lambda: sdpa_kernel(SDPBackend.MATH)
CONTEXTS["cached parametrizations"] = parametrize.cached
CONTEXTS["saved hooks"] = lambda: torch.autograd.graph.saved_tensors_hooks(lambda x: x.numpy(), torch.from_numpy)
CONTEXTS["save on cpu"] = torch.autograd.graph.save_on_cpu
CONTEXTS["flop counter"] = lambda: FlopCounterMode(display=False)
CONTEXTS["profiler"] = torch.profiler.profile


@entry(CONTEXTS)
@contextlib.contextmanager
def nested_autocast():
    half, off = torch.autocast("cpu", dtype=torch.float16), torch.autocast("cpu", enabled=False)
    with half, off, torch.autocast("cpu", dtype=torch.bfloat16):
        yield


@entry(CONTEXTS)
@contextlib.contextmanager
def autocast_by_functions():
    torch.set_autocast_enabled("cpu", True)
    try:
        yield
    finally:
        torch.set_autocast_enabled("cpu", False)
        torch.clear_autocast_cache()


@entry(CONTEXTS)
@contextlib.contextmanager
def default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@entry(CONTEXTS)
@contextlib.contextmanager
def default_device():
    torch.set_default_device("cpu")
    try:
        yield
    finally:
        torch.set_default_device(None)


@entry(CONTEXTS)
class FunctionMode(TorchFunctionMode):
    """A mode that doubles sines."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * 2 if getattr(func, "__name__", "") == "sin" else result


@entry(CONTEXTS)
class DispatchMode(TorchDispatchMode):
    """A mode that changes sines, random draws and new tensors."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = str(func)
        if name == "aten.sin.default":
            return func(args[0] * 2)
        result = func(*args, **(kwargs or {}))
        return result * 2 if name.startswith(("aten.arange", "aten.bernoulli", "aten.native_dropout")) else result


@entry(CONTEXTS)
@contextlib.contextmanager
def two_modes():
    with FunctionMode(), DispatchMode(), torch.autocast("cpu"):
        yield


# --- functions ----------------------------------------------------------------------------------------------------------


def layer():
    made = nn.Linear(3, 3)
    made.load_state_dict({"weight": torch.arange(9.0).reshape(3, 3) / 10 - 0.4, "bias": torch.ones(3) / 7})
    return made


@entry(FUNCTIONS)
def linear():
    made = layer()
    return made, lambda x: made(x).sin()


@entry(FUNCTIONS)
def normed():
    made = nn.Sequential(layer(), nn.LayerNorm(3), layer(), nn.GELU())
    return made, made


@entry(FUNCTIONS)
def twice_the_same_weight():
    made = layer()
    return made, lambda x: made(made(x)).softmax(-1)


@entry(FUNCTIONS)
def creating():
    return nn.Identity(), lambda x: (x * torch.arange(3.0)).sin() * torch.ones(3) + torch.tensor([1.0, 2.0, 3.0])


@entry(FUNCTIONS)
def in_place():
    def function(x):
        y = x * 2
        y[:, 0].sin_()
        return y.exp_() * x

    return nn.Identity(), function


@entry(FUNCTIONS)
def random():
    return nn.Identity(), lambda x: nn.functional.dropout(x.sin(), 0.5) * x * torch.rand(3)


@entry(FUNCTIONS)
def attention():
    made = layer()
    return made, lambda x: nn.functional.scaled_dot_product_attention(made(x), x, made(x))


@entry(FUNCTIONS)
def parametrized():
    made = parametrizations.weight_norm(layer())
    return made, lambda x: made(made(x).sin())


@entry(FUNCTIONS)
def switching_inside():
    made = layer()

    def function(x):
        with torch.no_grad():
            scale = made(x).sum()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return made(x).float() * scale

    return made, function


# --- ways of checkpointing ----------------------------------------------------------------------------------------------

for reentrant in (True, False):
    for preserve in (True, False):
        WAYS[f"{reentrant=} {preserve=}"] = lambda function, x, reentrant=reentrant, preserve=preserve: checkpoint(
            function, x, use_reentrant=reentrant, preserve_rng_state=preserve
        )
    WAYS[f"in sequence {reentrant=}"] = lambda function, x, reentrant=reentrant: checkpoint_sequential(
        [function, torch.sin, torch.exp], 2, x, use_reentrant=reentrant
    )
    for inner in (True, False):
        WAYS[f"nested {reentrant=} {inner=}"] = lambda function, x, reentrant=reentrant, inner=inner: checkpoint(
            lambda x: checkpoint(function, x, use_reentrant=inner), x, use_reentrant=reentrant
        )
WAYS["no early stop"] = lambda function, x: checkpoint(function, x, use_reentrant=False, early_stop=False)
WAYS["no check"] = lambda function, x: checkpoint(function, x, use_reentrant=False, determinism_check="none")
WAYS["debug"] = lambda function, x: checkpoint(function, x, use_reentrant=False, debug=True)
KEPT = [getattr(torch.ops.aten, name).default for name in ("addmm", "mm", "sin", "exp", "native_layer_norm")]
WAYS["selective"] = lambda function, x: checkpoint(
    function, x, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(KEPT)
)
WAYS["by keyword"] = lambda function, x: checkpoint(lambda *, x: function(x), use_reentrant=False, x=x)


def gradients(context, made, run):
    """Return the gradients of the input and of all parameters, after backward outside of the context."""
    torch.manual_seed(3)
    made.zero_grad()
    x = torch.tensor([[0.1, 0.2, 0.3], [0.5, -0.5, 1.0]], requires_grad=True)
    with context():
        y = run(x)
    y.double().sin().sum().backward()
    return [x.grad, *(parameter.grad for parameter in made.parameters())]


def is_compared(way, function):
    # If the state of the generator is not preserved, the second run must draw other numbers.
    return not (function == "random" and "preserve=False" in way)


@cache
def gradients_without_checkpoint(context, name, in_sequence):
    made, function = FUNCTIONS[name]()
    return gradients(CONTEXTS[context], made, lambda x: function(x).sin().exp() if in_sequence else function(x))


@pytest.mark.parametrize("others", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("context", CONTEXTS)
def test_gradients_are_those_without_checkpoint(context, way, others):
    """Each pair of a context and a checkpointing method runs a third of the functions. The long case runs the other functions."""
    number = [*CONTEXTS].index(context) + [*WAYS].index(way)
    for place, name in enumerate(FUNCTIONS):
        if ((place + number) % 3 == 0) is others or not is_compared(way, name):
            continue
        made, function = FUNCTIONS[name]()
        expected = gradients_without_checkpoint(context, name, "sequence" in way)
        found = gradients(CONTEXTS[context], made, lambda x, function=function: WAYS[way](function, x))
        for one, other in zip(found, expected, strict=True):
            assert (one is None) == (other is None), name
            assert one is None or torch.equal(one, other), name


# --- contexts during backward --------------------------------------------------------------------------------------


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("context", [each for each in CONTEXTS if each != "anomaly"])
def test_contexts_of_backward_do_not_reach_the_recomputation(context, reentrant):
    _, function = linear()
    x = torch.tensor([[0.1, 0.2, 0.3]], requires_grad=True)
    function(x).sum().backward()
    expected, x.grad = x.grad, None
    y = checkpoint(function, x, use_reentrant=reentrant)
    if "Mode" in context or "modes" in context:
        return  # modes that the user enters for backward receive all calls in backward
    with CONTEXTS[context]():
        y.sum().backward()
    assert torch.equal(x.grad, expected)


@pytest.mark.parametrize("reentrant", [True, False])
def test_modes_of_backward_see_the_recomputation(reentrant):
    seen = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x = torch.ones(3, requires_grad=True)
    y = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=reentrant).sum()
    with Log():
        y.backward()
    assert "aten.sin.default" in seen


@pytest.mark.parametrize("reentrant", [True, False])
def test_everything_is_as_before_after_the_recomputation(reentrant):
    x = torch.ones(3, 3, requires_grad=True)
    for context in CONTEXTS.values():
        with context():
            y = checkpoint(lambda x: (x @ x).sin(), x, use_reentrant=reentrant)
        before = torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype(), torch.get_default_dtype()
        y.double().sum().backward()
        after = torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype(), torch.get_default_dtype()
        assert after == before
        assert torch.is_grad_enabled()
        assert not torch.overrides._get_current_function_mode_stack()
        assert (torch.ones(2) * 2).sin().tolist() == torch.tensor([2.0, 2.0]).sin().tolist()


@pytest.mark.parametrize("reentrant", [True, False])
def test_an_error_of_the_recomputation_leaves_nothing_entered(reentrant):
    runs = []

    def function(x):
        runs.append(1)
        if len(runs) > 1:
            raise ValueError("second run")
        return x.sin()

    x = torch.ones(3, requires_grad=True)
    with torch.autocast("cpu"), FunctionMode():
        y = checkpoint(function, x, use_reentrant=reentrant)
    with pytest.raises(ValueError, match="second run"):
        y.sum().backward()
    assert not torch.is_autocast_cpu_enabled()
    assert not torch.overrides._get_current_function_mode_stack()
    assert torch.is_grad_enabled()


def test_backward_within_no_grad():
    x = torch.ones(3, requires_grad=True)
    y = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False).sum()
    with torch.no_grad():
        y.backward()
    assert x.grad.tolist() == (torch.ones(3).sin().exp() * torch.ones(3).cos()).tolist()


# --- transforms ---------------------------------------------------------------------------------------------------------

TRANSFORMS = {
    "grad": lambda f, x: func.grad(f)(x[0]),
    "grad of grad": lambda f, x: func.grad(lambda x: func.grad(f)(x).sum())(x[0]),
    "jvp": lambda f, x: func.jvp(f, (x[0],), (x[1],))[1],
    "jvp of grad": lambda f, x: func.jvp(func.grad(f), (x[0],), (x[1],))[1],
    "vjp, pulled back later": lambda f, x: func.vjp(f, x[0])[1](torch.ones(()))[0],
    "linearize": lambda f, x: func.linearize(f, x[0])[1](x[1]),
    "jacrev": lambda f, x: func.jacrev(f)(x[0]),
    "jacfwd": lambda f, x: func.jacfwd(f)(x[0]),
    "hessian": lambda f, x: func.hessian(f)(x[0]),
    "jacrev of jacrev": lambda f, x: func.jacrev(func.jacrev(f))(x[0]),
    "vmap": lambda f, x: torch.autograd.grad(func.vmap(f)(x).sum(), x)[0],
    "vmap of vmap": lambda f, x: torch.autograd.grad(func.vmap(func.vmap(f))(torch.stack([x, x])).sum(), x)[0],
    "vmap of another dimension": lambda f, x: torch.autograd.grad(func.vmap(f, in_dims=1)(x.mT.clone()).sum(), x)[0],
    "vmap of grad": lambda f, x: func.vmap(func.grad(f))(x),
    "vmap of jvp": lambda f, x: func.vmap(lambda x: func.jvp(f, (x,), (x,))[1])(x),
    "vmap of hessian": lambda f, x: func.vmap(func.hessian(f))(x),
    "grad of vmap": lambda f, x: func.grad(lambda x: func.vmap(f)(x).sum())(x),
    "functionalize": lambda f, x: func.grad(func.functionalize(f))(x[0]),
    "second derivative": lambda f, x: func.grad(
        lambda y: torch.autograd.functional.jacobian(f, y, create_graph=True).sum()
    )(x[0]),
    "batched gradients": lambda f, x: torch.autograd.grad(
        f(x[0]).expand(2) * 1, x, torch.eye(2), is_grads_batched=True
    )[0],
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("nested", [False, True])
def test_transforms_of_a_checkpointed_function(transform, nested):
    weight = torch.tensor([0.3, 0.2, 0.1], requires_grad=True)

    def smooth(x):
        return ((x.sin() * x * weight).exp()).sum(-1).cos()

    def changing(x):
        y = x * 2
        y.sin_()
        return (y.exp() * x).softmax(-1).pow(2).sum()

    x = torch.tensor([[0.1, 0.2, 0.3], [1.0, -1.0, 0.5]], requires_grad=True)
    for function in (smooth, changing):

        def once(x, function=function):
            return checkpoint(function, x, use_reentrant=False)

        def twice(x, once=once):
            return checkpoint(once, x, use_reentrant=False)

        found = TRANSFORMS[transform](twice if nested else once, x)
        assert torch.allclose(found, TRANSFORMS[transform](function, x), rtol=1e-6, atol=1e-7)


def test_forward_mode_of_a_checkpointed_function_that_is_differentiated():
    def gradient(function):
        x = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
        with forward_ad.dual_level():
            y = function(forward_ad.make_dual(x, torch.ones(3)))
            forward_ad.unpack_dual(y).tangent.sum().backward()
        return x.grad

    def function(x):
        return (x.sin() * x).exp()

    assert torch.equal(gradient(function), gradient(lambda x: checkpoint(function, x, use_reentrant=False)))


@pytest.mark.parametrize(
    "transform", ["jvp of grad", "hessian", "jacfwd", "vmap of hessian", "grad of grad", "vmap of grad"]
)
def test_saved_tensor_hooks_leave_tangents_alone(transform):
    x = torch.tensor([[0.1, 0.2, 0.3], [1.0, -1.0, 0.5]])

    def function(x):
        return ((x.sin() * x).exp()).sum(-1).cos() * torch.stack([x, x]).prod()

    def hooked(x):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t.detach()):
            return function(x)

    assert torch.allclose(TRANSFORMS[transform](hooked, x), TRANSFORMS[transform](function, x))


# --- saved settings of autocast ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unrecorded", [torch.no_grad, torch.inference_mode, None])
def test_casts_that_are_not_recorded_do_not_reach_later_calls(unrecorded):
    made, x = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2)), torch.ones(3, 2)
    with torch.autocast("cpu"):
        if unrecorded is None:
            checkpoint(made, x, use_reentrant=True)
        else:
            with unrecorded():
                made(x)
        y = made(x)
        with torch.no_grad():
            made(x)
        z = made(x)
    (y + z).float().sum().backward()
    assert all(parameter.grad is not None for parameter in made.parameters())


def test_casts_are_of_the_parameter_as_it_is():
    w, x = nn.Parameter(torch.ones(2, 2)), torch.ones(1, 2)
    with torch.autocast("cpu"):
        first = (x @ w).tolist()
        with torch.no_grad():
            w.mul_(3)
        second = (x @ w).tolist()
        w.data = torch.zeros(2, 2)
        third = (x @ w).tolist()
        with torch.autocast("cpu", dtype=torch.float16):
            assert (x @ w).dtype is torch.float16
        assert (x @ w).dtype is torch.bfloat16
    assert (first, second, third) == ([[2, 2]], [[6, 6]], [[0, 0]])


def test_a_thread_that_continues_this_one_has_its_autocast():
    from adjoint.tape.mode_switches import in_another_thread

    with torch.autocast("cpu", dtype=torch.float16):
        assert in_another_thread(lambda: (torch.ones(2, 2) @ torch.ones(2, 2)).dtype) is torch.float16


def test_warnings_are_those_of_the_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        checkpoint(torch.sin, torch.ones(2), use_reentrant=True)
    assert [each.filename for each in caught] == [__file__]
