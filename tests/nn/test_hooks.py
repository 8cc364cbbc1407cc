"""Hooks around the call of a module, forward and backward."""

import warnings

import pytest

import adjoint as torch


def test_forward_hooks_see_and_replace():
    module = torch.nn.Identity()
    module.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    handle = module.register_forward_hook(lambda module, args, output: (args, output * 10))
    args, output = module(torch.ones(1))
    assert args[0].item() == 2
    assert output.item() == 20
    handle.remove()
    assert module(torch.ones(1)).item() == 2


def test_hooks_run_in_order():
    module, log = torch.nn.Identity(), []
    for name in "ab":
        module.register_forward_hook(lambda *_, name=name: log.append(name))
    module.register_forward_hook(lambda *_: log.append("first"), prepend=True)
    module(torch.ones(1))
    assert log == ["first", "a", "b"]


def test_keyword_arguments_reach_hooks_that_want_them():
    class Add(torch.nn.Module):
        def forward(self, a, *, b):
            return a + b

    module = Add()
    module.register_forward_pre_hook(lambda module, args, kwargs: (args, {"b": 5}), with_kwargs=True)
    seen = []
    module.register_forward_hook(lambda module, args, kwargs, output: seen.append(kwargs), with_kwargs=True)
    assert module(torch.ones(1), b=1).item() == 6
    assert seen == [{"b": 5}]


def test_hooks_that_are_always_called():
    class Failing(torch.nn.Module):
        def forward(self, input):
            raise ZeroDivisionError

    module, log = Failing(), []
    module.register_forward_hook(lambda *_: log.append("usual"))
    module.register_forward_hook(lambda module, args, output: log.append(output), always_call=True)
    with pytest.raises(ZeroDivisionError):
        module(1)
    assert log == [None]


def test_a_handle_is_a_context():
    module, log = torch.nn.Identity(), []
    with module.register_forward_hook(lambda *_: log.append(1)):
        module(torch.ones(1))
    module(torch.ones(1))
    assert log == [1]


def test_global_hooks_see_every_module():
    log = []
    handle = torch.nn.modules.module.register_module_forward_hook(
        lambda module, args, output: log.append(type(module).__name__)
    )
    try:
        torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Identity())(torch.ones(1))
    finally:
        handle.remove()
    torch.nn.ReLU()(torch.ones(1))
    assert log == ["ReLU", "Identity", "Sequential"]


GLOBAL_TABLES = {
    "_global_forward_pre_hooks": ["Linear"],
    "_global_forward_hooks": ["Linear"],
    "_global_backward_pre_hooks": ["Linear"],
    "_global_backward_hooks": ["Linear"],
    "_global_parameter_registration_hooks": ["Linear", "Linear"],
    "_global_buffer_registration_hooks": ["Holder"],
    "_global_module_registration_hooks": ["Holder"],
}


@pytest.mark.parametrize("way", ["replaced", "written to"])
@pytest.mark.parametrize(("table", "expected"), GLOBAL_TABLES.items())
@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_tables_of_global_hooks_are_those_of_the_module(table, expected, way, monkeypatch):
    class Holder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("buffer", torch.ones(1))
            self.child = torch.nn.Linear(1, 1)

    def run():
        Holder().child(torch.ones(1, requires_grad=True)).backward()

    log = []
    hooks = {7: lambda module, *_: log.append(type(module).__name__)}
    with monkeypatch.context() as patch:
        patch.setattr(torch.nn.modules.module, "_global_is_full_backward_hook", True)
        if way == "replaced":
            patch.setattr(torch.nn.modules.module, table, hooks)
        else:
            getattr(torch.nn.modules.module, table).update(hooks)
        run()
        getattr(torch.nn.modules.module, table).clear()
    assert log == expected
    run()
    assert log == expected


def test_hooks_are_not_asked_about_parameters_that_are_none():
    names = []
    handle = torch.nn.modules.module.register_module_parameter_registration_hook(lambda _, name, p: names.append(name))
    try:
        module = torch.nn.Linear(1, 1, bias=False)
        module.weight = None
    finally:
        handle.remove()
    assert names == ["weight"]
    assert module.weight is None


def test_a_backward_hook_of_a_module_without_inputs_that_require_grad_warns():
    for register in ("register_full_backward_pre_hook", "register_full_backward_hook"):
        module = torch.nn.Linear(1, 1)
        getattr(module, register)(lambda *_: None)
        with pytest.warns(UserWarning, match="Full backward hook is firing"):
            module(torch.ones(1)).backward()


def test_full_backward_hooks_see_the_gradients_of_inputs_and_outputs():
    class Product(torch.nn.Module):
        def forward(self, a, b):
            return a * b

    module, log = Product(), []
    module.register_full_backward_pre_hook(lambda module, grad_output: log.append(grad_output))
    module.register_full_backward_hook(lambda module, *grads: log.append(grads))
    a, b = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
    module(a, b).backward(torch.tensor([10.0]))
    (before,), ((grad_a, grad_b), (after,)) = log
    assert before.item() == after.item() == 10
    assert (grad_a.item(), grad_b.item()) == (30, 20)
    assert (a.grad.item(), b.grad.item()) == (30, 20)


def test_full_backward_hooks_replace_gradients():
    module = torch.nn.Linear(1, 1)
    module.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 2,))
    module.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 0 + 5,))
    x = torch.ones(1, 1, requires_grad=True)
    module(x).backward(torch.ones(1, 1))
    assert module.bias.grad.item() == 2
    assert x.grad.item() == 5


def test_full_backward_hooks_without_input_gradients():
    module, log = torch.nn.Linear(1, 1), []
    module.register_full_backward_hook(lambda module, grad_input, grad_output: log.append(grad_input))
    with pytest.warns(UserWarning, match="Full backward hook is firing"):
        module(torch.ones(1, 1)).sum().backward()
    assert log == [(None,)]


def test_wrong_numbers_of_gradients_are_refused():
    module = torch.nn.Linear(1, 1)
    module.register_full_backward_hook(lambda module, grad_input, grad_output: grad_input * 2)
    output = module(torch.ones(1, 1, requires_grad=True))
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        output.sum().backward()


def test_the_two_kinds_of_backward_hooks_do_not_mix():
    module = torch.nn.Linear(1, 1)
    module.register_full_backward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks"):
        module.register_backward_hook(lambda *_: None)


def test_backward_hooks_of_the_old_kind():
    module, log = torch.nn.Tanh(), []
    module.register_backward_hook(lambda module, grad_input, grad_output: log.append(grad_output))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module(torch.zeros(1, requires_grad=True)).sum().backward()
    assert log[0][0].item() == 1


def test_a_module_without_hooks_calls_forward_at_once():
    class Seen(torch.nn.Module):
        def forward(self, *args, **kwargs):
            return args, kwargs

    module = Seen()
    module.register_forward_hook(lambda *_: None).remove()
    assert not module._call_hooks
    assert module(1, b=2) == ((1,), {"b": 2})
