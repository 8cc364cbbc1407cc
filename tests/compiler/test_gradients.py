"""Compiled steps write gradients into the memory of earlier ones, unless something else refers to it."""

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
    """What has been kept, for a comparison."""
    if isinstance(value, torch.UntypedStorage):
        return bytes(value.tolist())
    if isinstance(value, weakref.ref):
        return value() is None
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("clearing", ["optimizer", "module"])
@pytest.mark.parametrize("name", ["SGD", "SGD momentum", "Adam"])
@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.__name__)
@pytest.mark.long_cases
def test_what_happens_between_steps(action, name, clearing):
    found, kept, called = trained(action, True, name, clearing)
    expected, also, _ = trained(action, False, name, clearing)
    assert_alike(found, expected, action.__name__)
    assert_alike([*map(shown, kept)], [*map(shown, also)], action.__name__)
    assert sum(variant.calls for variant in called.compiled.variants) or action in (
        requiring_grad,
        more_parameters,
        own_clearing,
    )


def test_a_step_that_fails_leaves_what_it_leaves_without_compile():
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
            function(x, y)  # which adds to the gradient
            found.append([x.grad, *(each.grad for each in model.parameters())])
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one, other)
