"""Compiled steps write gradients into the memory of earlier gradients, unless another object refers to this memory."""

import copy
import warnings
import weakref

import numpy as np
import pytest

import adjoint as torch

from .comparison import assert_alike

nn, F = torch.nn, torch.nn.functional


def held(optimizer, params, kept):
    kept += [each.grad for each in params]


def held_as_arrays(optimizer, params, kept):
    kept += [each.grad.numpy() for each in params]


def held_as_views(optimizer, params, kept):
    kept += [each.grad.detach()[..., :1] for each in params]


def held_as_storages(optimizer, params, kept):
    kept += [each.grad.untyped_storage() for each in params]


def held_in_one_place(optimizer, params, kept):
    kept += [params[0].grad]


def watched(optimizer, params, kept):
    kept += [weakref.ref(each.grad) for each in params]


def with_attributes(optimizer, params, kept):
    for each in params:
        kept.append(getattr(each.grad, "note", None))
        each.grad.note = len(kept)


def cleared(optimizer, params, kept):
    params[0].grad = None


def transposed(optimizer, params, kept):
    params[0].grad = torch.ones(4, 6, dtype=params[0].dtype).t()


def changed(optimizer, params, kept):
    params[0].grad.mul_(2)
    kept.append(params[0].grad._version)


def shared(optimizer, params, kept):
    params[1].grad = params[1].detach()


def requiring_grad(optimizer, params, kept):
    params[0].grad.requires_grad_()


def new_memory(optimizer, params, kept):
    params[0].data = params[0].detach().clone()


def rates(optimizer, params, kept):
    optimizer.param_groups[0]["lr"] *= 0.5


def rates_as_tensors(optimizer, params, kept):
    lr = optimizer.param_groups[0]["lr"]
    if isinstance(lr, torch.Tensor):
        lr.mul_(0.5)
    else:
        optimizer.param_groups[0]["lr"] = torch.tensor(lr)


def directions(optimizer, params, kept):
    optimizer.param_groups[0]["maximize"] = not optimizer.param_groups[0]["maximize"]


def decays(optimizer, params, kept):
    optimizer.param_groups[0]["weight_decay"] += 0.1


def momenta(optimizer, params, kept):
    group = optimizer.param_groups[0]
    if "betas" in group:
        group["betas"] = (0.5, 0.7)
    elif group["momentum"]:
        group["momentum"] *= 0.5


def loaded(optimizer, params, kept):
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))


def forgotten(optimizer, params, kept):
    optimizer.state.clear()


def counted(optimizer, params, kept):
    for state in list(optimizer.state.values())[:1]:
        if "step" in state:
            state["step"] += 2


def other_state(optimizer, params, kept):
    for state in list(optimizer.state.values())[1:]:
        state.update({name: value * 0.5 for name, value in state.items() if name != "step" and value is not None})


def transposed_state(optimizer, params, kept):
    for state in list(optimizer.state.values())[:1]:
        for name, value in state.items():
            if value is not None and value.ndim == 2:
                state[name].data = value.T.contiguous().T


def fewer_parameters(optimizer, params, kept):
    params = optimizer.param_groups[0]["params"]
    params[:] = params[:-1] if len(params) > 2 else params[::-1]


def other_lists(optimizer, params, kept):
    optimizer.param_groups[0]["params"] = list(reversed(optimizer.param_groups[0]["params"]))


def more_parameters(optimizer, params, kept):
    optimizer.add_param_group({"params": [torch.ones(2, requires_grad=True)], "lr": 1.0})


def copies(optimizer, params, kept):
    kept += copy.deepcopy([each.grad for each in params])


def own_clearing(optimizer, params, kept):
    optimizer.zero_grad = lambda: kept.append("cleared")


def nothing(optimizer, params, kept):
    pass


ACTIONS = [
    held, held_as_arrays, held_as_views, held_as_storages, held_in_one_place, watched, with_attributes, cleared, transposed,
    changed, shared, requiring_grad, new_memory, rates, rates_as_tensors, directions, decays, momenta, loaded, forgotten,
    counted, other_state, transposed_state, fewer_parameters, other_lists, more_parameters, copies, own_clearing, nothing,
]  # fmt: skip


def trained(action, compile, name, clearing, count=7):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).double()
    params = list(module.parameters())
    kind, *momentum = name.split()
    optimizer = getattr(torch.optim, kind)(params, lr=0.1, **dict.fromkeys(momentum, 0.9))
    owner = {"optimizer": optimizer, "module": module}[clearing]

    def step(x, y):
        owner.zero_grad()
        loss = F.cross_entropy(module(x), y)
        loss.backward()
        optimizer.step()
        return loss

    called = torch.compile(step) if compile else step
    kept, found = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(count):
            torch.manual_seed(number)
            loss = called(torch.randn(5, 4, dtype=torch.float64), torch.randint(0, 3, (5,)))
            found += [loss.detach(), *[p.detach().clone() for p in params], [p._version for p in params]]
            found += [(p.grad.clone(), p.grad._version, p.grad.stride()) for p in params if p.grad is not None]
            action(optimizer, params, kept)
    return found, kept, called


def shown(value):
    """Return stored values in a form that can be compared."""
    if isinstance(value, torch.UntypedStorage):
        return bytes(value.tolist())
    if isinstance(value, weakref.ref):
        return value() is None
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("clearing", ["optimizer", "module"])
@pytest.mark.parametrize("name", ["SGD", "SGD momentum", "Adam"])
@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.__name__)
@pytest.mark.long_cases
def test_changes_between_steps(action, name, clearing):
    found, kept, called = trained(action, True, name, clearing)
    expected, also, _ = trained(action, False, name, clearing)
    assert_alike(found, expected, action.__name__)
    assert_alike([*map(shown, kept)], [*map(shown, also)], action.__name__)
    captured_again = {requiring_grad, more_parameters, own_clearing}
    if clearing == "optimizer":  # `zero_grad` of an optimizer reads its lists of parameters
        captured_again |= {loaded, other_lists}
    assert sum(variant.calls for variant in called.compiled.variants) or action in captured_again


def test_a_failing_step_leaves_the_same_state_as_without_compile():
    module = nn.Linear(3, 4)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

    @torch.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = F.nll_loss(F.log_softmax(module(x), -1), y)
        loss.backward()
        optimizer.step()
        return loss

    x = torch.ones(2, 3)
    for _ in range(3):
        step(x, torch.tensor([0, 3]))
    before = module.weight.detach().clone()
    with pytest.raises(IndexError, match="Target 4 is out of bounds"):
        step(x, torch.tensor([0, 4]))
    assert module.weight.grad is None and torch.equal(module.weight, before)
    step(x, torch.tensor([0, 3]))
    assert module.weight.grad is not None


@pytest.mark.parametrize("dynamic", [None, True])
def test_gradients_of_arguments_belong_to_the_arguments_of_each_call(dynamic):
    model = torch.nn.Linear(3, 2)

    def step(x, y):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss

    compiled = torch.compile(step, dynamic=dynamic)
    for size in (2, 2, 3, 4, 4, 5, 2):
        values, y = torch.randn(size, 3), torch.arange(size) % 2
        found = []
        for function in (compiled, step):
            x = values.clone().requires_grad_()
            model.zero_grad()
            function(x, y)
            function(x, y)  # the second call adds to the gradient
            found.append([x.grad, *(each.grad for each in model.parameters())])
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one, other)


PARTS = {
    "one reaches each": lambda x, w: (x * 2, w.exp()),
    "an infinite derivative": lambda x, w: ((x - x.detach()).sqrt(), x * w),
    "an infinite derivative of what both use": lambda x, w: ((x * 0).sqrt() + w, (x * 0).exp() + x),
    "one result twice, and an argument": lambda x, w: [(y := x * w), y, x, w.sin()],
    "an infinite derivative, and random numbers": lambda x, w: (
        (y := torch.nn.functional.dropout(x, 0.5)).sub(y.detach()).sqrt(),
        y * w,
        w * 2,
    ),
    "an infinite derivative, and a change": lambda x, w: ((x - x.detach()).sqrt(), x.cumsum(0).add_(w)[1:] * 1),
    "of three": lambda x, w: (x.sin(), w.cos(), x * w),
}
"""Functions whose results depend on different arguments."""


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("size", [4, 40_000])
@pytest.mark.parametrize("name", PARTS)
def test_results_without_a_gradient_add_nothing(name, size, dynamic):
    function = PARTS[name]
    compiled = torch.compile(function, dynamic=dynamic)
    count = len(function(torch.ones(4), torch.ones(4)))
    for call in range(4 * count):
        found = []
        for each in (function, compiled):
            torch.manual_seed(call)
            x, w = (torch.randn(size + call // 6).requires_grad_() for _ in range(2))
            results = each(x, w)
            wanted = [results[call % count], *([results[0]] if call % 2 else [])]
            found.append(torch.autograd.grad(sum(result.sum() for result in wanted), (x, w), allow_unused=True))
        assert_alike(found[1], found[0], name, strides=False)
    assert compiled.compiled.variants


CHANGES = {
    "a number": ("g = [2.0]\ndef f(x, c): return (x * g[0]).pow(3).sum()", "g[0] = 5.0"),
    "an argument that backward does not need": ("def f(x, c): return ((x + c) ** 3).sum()", "c.mul_(2)"),
    "a tensor outside": ("w = torch.ones(4)\ndef f(x, c): return ((x + w) ** 3).sum()", "w.mul_(2)"),
    "a mode of a module": (
        "m = torch.nn.BatchNorm1d(1).eval()\ndef f(x, c): return m(x[:, None]).pow(3).sum()",
        "m.train()",
    ),
    "an element of a list": (
        "l = [torch.ones(4)]\ndef f(x, c): return ((x + l[0]) ** 3).sum()",
        "l[0] = torch.zeros(4)",
    ),
    "a gradient": (
        "w = torch.ones(4, requires_grad=True); w.grad = torch.ones(4)\ndef f(x, c): return ((x + w.grad) ** 3).sum()",
        "w.grad.mul_(2)",
    ),
    "the default dtype": (
        "def f(x, c): return (x * torch.ones(4)).pow(3).sum()",
        "torch.set_default_dtype(torch.float64)",
    ),
    "nothing": ("def f(x, c): return (x * c).pow(3).sum()", None),
    "autocast": ("def f(x, c): return (x[:, None] @ c[None]).float().pow(3).sum()", None),
}
"""Programs, and what changes between a call and the derivative of its gradient."""


@pytest.mark.filterwarnings("ignore:torch.compile runs")
@pytest.mark.parametrize("case", CHANGES)
def test_the_function_runs_again_only_if_what_it_reads_is_the_same(case, tmp_path):
    source, change = CHANGES[case]
    own = {"torch": torch}
    path = tmp_path / "program.py"
    path.write_text(source + "\n")
    exec(compile(path.read_text(), str(path), "exec"), own)
    compiled = torch.compile(own["f"])
    for call in range(4):
        torch.manual_seed(call)
        x, own["c"] = torch.randn(4, requires_grad=True), torch.randn(4)
        found = []
        for function in (own["f"], compiled):
            with torch.autocast("cpu", enabled=case == "autocast"):
                found.append(function(x, own["c"]))
        if call == 3 and change is not None:
            exec(change, own)
            with pytest.raises(RuntimeError, match="what the function reads has changed"):
                torch.autograd.grad(found[1], x, create_graph=True)
            torch.set_default_dtype(torch.float32)
            return
        grads = [torch.autograd.grad(each, x, create_graph=call == 3)[0] for each in found]
        assert_alike(grads[1], grads[0], case, strides=False)
        if call < 3:  # afterwards, the function itself would run
            continue
        assert_alike(*[torch.autograd.grad(each.sum(), x)[0] for each in reversed(grads)], case, strides=False)
    assert compiled.compiled.variants


EFFECTS = {
    "dropout": "h = F.dropout(h, 0.5)",
    "noise": "h = h * torch.randn_like(h)",
    "normalization": "h = self.norm(h)",
    "a buffer changed in place": "self.mean.mul_(0.9).add_(h.detach().mean(0)); h = h * self.mean",
    "a buffer replaced": "self.mean = self.mean * 0.9 + h.detach().mean(0); h = h * self.mean",
    "a counter": "self.count += 1; h = h * self.count",
    "a list": "self.kept.append(h.sum())",
    "an attribute that did not exist": "self.last = h",
    "an attribute of no value": "self.count = None",
    "a gradient": "(h.detach() * self.first.bias).sum().backward(); h = h * 2",
    "a condition": "h = h * 2 if h.sum() > -100 else h",
    "several": "h = F.dropout(h, 0.5); h = h * 2 if h.sum() > -100 else h; self.mean.add_(1); h = self.norm(h) * self.mean",
}
MODULE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Linear(3, 4), nn.BatchNorm1d(4)
        self.register_buffer("mean", torch.ones(4))
        self.count, self.kept = 0, []

    def forward(self, x):
        h = self.first(x).tanh()
"""
"""Lines of a module with effects, which happen once if a result is differentiated twice."""


@pytest.mark.filterwarnings("ignore:torch.compile runs")
@pytest.mark.parametrize("first", [3, 5])
@pytest.mark.parametrize("name", EFFECTS)
def test_second_gradients_of_functions_with_effects(name, first, tmp_path):
    path, own = tmp_path / "module.py", {"torch": torch, "nn": nn, "F": F}
    path.write_text(f"{MODULE}        {EFFECTS[name]}\n        return h\n")
    exec(compile(path.read_text(), str(path), "exec"), own)
    modules = []
    for _ in range(2):
        torch.manual_seed(0)
        modules.append(own["Net"]().double())
    compiled = torch.compile(modules[1])
    for call in range(7):
        found = []
        for each, function in ((modules[0], modules[0]), (modules[1], compiled)):
            torch.manual_seed(call)
            x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
            leaves = [x, each.first.weight]
            results = [function(x), *([function(x + 1)] if "mean" not in EFFECTS[name] else [])]
            once = torch.autograd.grad(results[0].pow(2).sum(), leaves, create_graph=call >= first)
            twice = torch.autograd.grad(sum(g.pow(2).sum() for g in once), leaves) if call >= first else ()
            state = [each.count, each.kept, getattr(each, "last", None), each.first.bias.grad, torch.get_rng_state()]
            found.append((results[0].detach(), once, twice, [(b.clone(), b._version) for b in each.buffers()], state))
        assert_alike(*reversed(found), name, strides=False)
    assert compiled.compiled.reason is None


def averaged(model, optimizer):
    average = torch.optim.swa_utils.AveragedModel(model)
    return average, lambda loss: (loss.backward(), optimizer.step(), average.update_parameters(model))


def scaled(model, optimizer):
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    return scaler, lambda loss: (scaler.scale(loss).backward(), scaler.step(optimizer), scaler.update())


def scheduled(model, optimizer):
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    return schedule, lambda loss: (loss.backward(), optimizer.step(), schedule.step())


def clipped(model, optimizer):
    clip = torch.nn.utils.clip_grad_norm_
    return None, lambda loss: (loss.backward(), clip(model.parameters(), 0.1), optimizer.step())


def second_gradients(way, set_to_none, compiling):
    """Return all that six calls of a function compute and change, and the function."""
    torch.manual_seed(0)
    model, other = nn.Linear(3, 2).double(), nn.Linear(3, 2).double()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    owner, train = way(model, optimizer)

    @compiling
    def function(x):
        optimizer.zero_grad(set_to_none=set_to_none)
        result = other(x).sin() * x.pow(2).sum()
        train(model(x.detach()).pow(2).mean())
        return result

    found = []
    for call in range(6):
        x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
        result = function(x)
        once = torch.autograd.grad(result.pow(2).sum(), [x, other.weight], create_graph=call > 2)
        twice = torch.autograd.grad(sum(g.pow(2).sum() for g in once), [x]) if call > 2 else ()
        params = [(each.detach().clone(), each.grad.clone(), each._version) for each in model.parameters()]
        state = [params, optimizer.state_dict(), [] if owner is None else owner.state_dict()]
        found.append([copy.deepcopy(state), [each.detach() for each in (result, *once)], twice])
    return found, function


@pytest.mark.filterwarnings("ignore:torch.compile runs")
@pytest.mark.parametrize("way", [averaged, scaled, scheduled, clipped])
@pytest.mark.parametrize("set_to_none", [True, False])
def test_second_gradients_of_functions_that_take_a_step(way, set_to_none):
    found, function = second_gradients(way, set_to_none, torch.compile)
    assert_alike(found, second_gradients(way, set_to_none, lambda function: function)[0], strides=False)
    assert function.compiled.reason is None and function.compiled.variants[0].calls > 1


def test_a_step_with_a_function_of_the_user_is_not_captured_if_a_result_keeps_its_graph():
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters())
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5)

    @torch.compile
    def function(x):
        result = x * x
        model(x.detach()).sum().backward()
        optimizer.step()
        schedule.step()
        return result

    with pytest.warns(UserWarning, match="keeps its graph"):
        function(torch.ones(2, 3, requires_grad=True))


@pytest.mark.filterwarnings("ignore:torch.compile runs")
@pytest.mark.parametrize("rows", [3, 5])
def test_batches_of_gradients_require_no_grad(rows):
    compiled = torch.compile(lambda x: (x.sin(), x * 2))
    for _ in range(4):
        x = torch.randn(rows, requires_grad=True)
        first, second = compiled(x)
        for result, diagonal in ((first, x.cos()), (second, torch.full((rows,), 2.0))):
            (grad,) = torch.autograd.grad(result, x, torch.eye(rows), is_grads_batched=True, retain_graph=True)
            assert not grad.requires_grad
            torch.testing.assert_close(grad, diagonal.detach().diag())


def of_scale(x, w):
    h = (x @ w).tanh()
    h.register_hook(lambda grad: grad * SCALE[0])
    return h.sum()


def of_values(x, w):
    h = torch.utils.checkpoint.checkpoint(torch.tanh, x @ w, use_reentrant=False)
    h = F.elu(h, inplace=True)  # a checkpoint saves no result
    h.register_hook(lambda grad: grad.clamp(-0.1, 0.1) + h.detach())
    return (h * 2).exp().sum()


SCALE = [2.0]


@pytest.mark.parametrize("backward_inside", [False, True])
@pytest.mark.parametrize("function", [of_scale, of_values])
def test_hooks_of_tensors_that_the_function_makes(function, backward_inside):
    def step(x, w):
        loss = function(x, w)
        if backward_inside:
            loss.backward()
        return loss

    compiled = torch.compile(step, fullgraph=True)
    for call in range(4):
        SCALE[0] = 2.0 if call < 2 else 3.0
        found = []
        for each in (compiled, step):
            torch.manual_seed(call)
            x, w = torch.randn(3, 4), torch.randn(4, 2, requires_grad=True)
            loss = each(x, w)
            if not backward_inside:
                loss.backward()
            found.append((loss.detach(), w.grad))
        assert_alike(*found, strides=False)
    assert sum(variant.calls for variant in compiled.compiled.variants) >= 2
