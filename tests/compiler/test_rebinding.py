"""What may be replaced between two calls of a compiled training step, and how often the step is then captured again."""

import copy

import pytest

import adjoint as torch

from .comparison import assert_alike

nn, F = torch.nn, torch.nn.functional


def on_parameters(change):
    """Return a function that changes each parameter of a model."""

    def changed(model, optimizer):
        for parameter in model.parameters():
            change(parameter)

    return changed


def with_new_data(parameter):
    parameter.data = parameter.data.clone()


def with_new_gradient(parameter):
    parameter.grad = torch.ones_like(parameter)


def with_swapped_weight(model, optimizer):
    torch.utils.swap_tensors(model[0].weight, nn.Parameter(model[0].weight.detach() * 2))


def with_new_option(model, optimizer):
    optimizer.param_groups[0]["lr"] = 0.25


def with_zeros_as_gradients(model, optimizer):
    optimizer.zero_grad(set_to_none=False)


def with_new_buffer(model, optimizer):
    model[1].running_mean = model[1].running_mean + 1


def with_new_data_of_a_buffer(model, optimizer):
    model[1].running_mean.data = model[1].running_mean + 1


def with_another_group(model, optimizer):
    optimizer.add_param_group({"params": [torch.zeros(2, requires_grad=True)]})


def with_new_list_of_parameters(model, optimizer):
    optimizer.param_groups[0]["params"] = optimizer.param_groups[0]["params"][:-1]


def loaded(model, optimizer):
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))


CHANGES = {
    "load_state_dict of an optimizer": (loaded, 0),
    "load_state_dict of an optimizer at another rate": (lambda m, o: (with_new_option(m, o), loaded(m, o)), 0),
    "a new optimizer's state": (lambda m, o: o.state.clear(), 0),
    "load_state_dict of a model": (lambda m, o: m.load_state_dict(copy.deepcopy(m.state_dict())), 0),
    "to the same device and dtype": (lambda m, o: m.to("cpu", torch.float32), 0),
    "data of parameters": (on_parameters(with_new_data), 0),
    "gradients": (on_parameters(with_new_gradient), 0),
    "gradients of zeros": (with_zeros_as_gradients, 0),
    "swap_tensors": (with_swapped_weight, 0),
    "a learning rate": (with_new_option, 0),
    "there and back to evaluation": (lambda m, o: m.eval().train(), 0),
    "frozen and free again": (lambda m, o: m.requires_grad_(False).requires_grad_(True), 0),
    "data of a buffer": (with_new_data_of_a_buffer, 0),
    "parameters in place": (on_parameters(lambda p: p.detach().mul_(0.5)), 0),
    "a buffer": (with_new_buffer, 1),
    "to another dtype and back": (lambda m, o: m.double().float(), 1),
    "a group of parameters": (with_another_group, 1),
    "the parameters of a group": (with_new_list_of_parameters, 1),
}
"""Changes between calls, and the number of captures that follow."""


def training(optimizer_of):
    """Return a model, its optimizer, a training step, and the arguments of a step."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = optimizer_of(model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return model, optimizer, step, (torch.randn(6, 4), torch.randint(0, 3, (6,)))


OPTIMIZERS = {
    "Adam": lambda parameters: torch.optim.Adam(parameters, 0.01),
    "SGD with momentum": lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9),
}


@pytest.mark.parametrize("optimizer_of", OPTIMIZERS)
@pytest.mark.parametrize("name", CHANGES)
def test_captures_of_a_step_after_a_change(name, optimizer_of):
    change, expected = CHANGES[name]
    results, compiled = [], None
    for compiles in (False, True):
        model, optimizer, function, arguments = training(OPTIMIZERS[optimizer_of])
        step = torch.compile(function) if compiles else function
        for position in range(6):
            if position == 3:
                captures = len(step.compiled.variants) if compiles else 0
                change(model, optimizer)
            results.append(step(*arguments))
        results += [each.detach().clone() for each in (*model.parameters(), *model.buffers())]
        compiled = step.compiled if compiles else None
    half = len(results) // 2
    assert_alike(results[half:], results[:half], name)
    assert compiled.reason is None and len(compiled.variants) - captures == expected


def test_a_step_runs_as_a_program_after_any_number_of_loaded_states():
    model, optimizer, function, arguments = training(OPTIMIZERS["Adam"])
    step = torch.compile(function)
    for _ in range(20):
        step(*arguments)
        loaded(model, optimizer)
    assert step.compiled.reason is None and len(step.compiled.variants) == 1
