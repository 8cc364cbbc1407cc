"""Replicas in threads have the same results, gradients, modes and errors as the module."""

import threading

import pytest

import adjoint as torch


class Watched(torch.nn.Module):
    """A module that records the thread and the size of each call."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)
        self.calls = []

    def forward(self, input, scale=1.0):
        self.calls.append((threading.get_ident(), input.shape[0], torch.is_grad_enabled()))
        return self.layer(input) * scale


def test_results_and_gradients_are_those_of_one_thread():
    model = Watched()
    parallel = torch.nn.DataParallel(model, device_ids=[0, 1, 2])
    x = torch.randn(8, 3, requires_grad=True)
    output = parallel(x, scale=2.0)
    output.square().sum().backward()
    grads = [x.grad, *(parameter.grad for parameter in model.parameters())]
    x.grad = None
    model.zero_grad()
    expected = model(x, scale=2.0)
    expected.square().sum().backward()
    assert torch.allclose(output, expected)
    for grad, parameter in zip(grads, [x, *model.parameters()], strict=True):
        assert torch.allclose(grad, parameter.grad, atol=1e-5)


def test_each_part_has_its_own_thread():
    model = Watched()
    torch.nn.DataParallel(model, device_ids=[0, 1])(torch.ones(5, 3))
    assert sorted(size for _, size, _ in model.calls) == [2, 3]
    assert len({thread for thread, _, _ in model.calls}) == 2


def test_grad_mode_goes_along():
    model = Watched()
    with torch.no_grad():
        output = torch.nn.DataParallel(model, device_ids=[0, 1])(torch.ones(4, 3))
    assert not output.requires_grad
    assert [enabled for _, _, enabled in model.calls] == [False, False]


def test_one_thread_falls_through():
    model = Watched()
    torch.nn.DataParallel(model, device_ids=[0])(torch.ones(4, 3))
    assert [(thread, size) for thread, size, _ in model.calls] == [(threading.get_ident(), 4)]


def test_a_single_sample_falls_through():
    model = Watched()
    assert torch.nn.DataParallel(model, device_ids=[0, 1])(torch.ones(1, 3)).shape == (1, 2)
    assert len(model.calls) == 1


def test_names_begin_with_module():
    model = torch.nn.DataParallel(torch.nn.Linear(2, 2))
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    assert repr(model) == "DataParallel(\n  (module): Linear(in_features=2, out_features=2, bias=True)\n)"


def test_nested_inputs_and_outputs():
    class Nested(torch.nn.Module):
        def forward(self, pair, *, options):
            first, (second, label) = pair
            return {"sum": first + second * options["factor"], "parts": [first, (second,)], "none": None, "n": label}

    class Plain(Nested):
        def forward(self, pair, *, options):
            result = super().forward(pair, options=options)
            del result["n"]
            return result

    model = torch.nn.DataParallel(Plain(), device_ids=[0, 1], dim=1)
    first, second = torch.randn(3, 4), torch.randn(3, 4)
    result = model((first, (second, "label")), options={"factor": 2})
    assert torch.allclose(result["sum"], first + second * 2)
    assert torch.allclose(result["parts"][1][0], second)
    assert result["none"] is None


def test_scalars_are_gathered_into_a_vector():
    class Total(torch.nn.Module):
        def forward(self, input):
            return input.sum()

    assert torch.nn.DataParallel(Total(), device_ids=[0, 1])(torch.ones(4, 3)).tolist() == [6, 6]


def test_errors_come_out():
    class Failing(torch.nn.Module):
        def forward(self, input):
            if threading.current_thread() is not threading.main_thread():
                raise ZeroDivisionError("in a worker")
            return input

    with pytest.raises(ZeroDivisionError, match="in a worker"):
        torch.nn.DataParallel(Failing(), device_ids=[0, 1])(torch.ones(4))


def test_replicas_share_submodules_as_the_module_does():
    shared = torch.nn.Linear(3, 3)
    model = torch.nn.Sequential(shared, torch.nn.ReLU(), shared)
    x = torch.randn(6, 3)
    assert torch.allclose(torch.nn.DataParallel(model, device_ids=[0, 1])(x), model(x), atol=1e-6)
