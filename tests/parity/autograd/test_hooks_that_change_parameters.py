"""Hooks after accumulation may change a parameter, as optimizers within backward do. The gradients agree with PyTorch."""

import pytest

torch = pytest.importorskip("torch")

import adjoint

GRAPHS = {
    "product": lambda t, w, v: (w * v).sum(),
    "dot": lambda t, w, v: t.dot(w, v),
    "outer": lambda t, w, v: t.outer(w, v).sum(),
    "linear": lambda t, w, v: t.nn.functional.linear(w.reshape(1, -1), v.reshape(1, -1)).sum(),
    "loss": lambda t, w, v: t.nn.functional.mse_loss(w, v),
    "used again": lambda t, w, v: (v.exp() * w * v.sin() + w).sum(),
    "joined": lambda t, w, v: t.cat([w, v, w]).pow(2).sum(),
    "stacked": lambda t, w, v: (t.stack([w, v]) * t.stack([v, w])).sum(),
    "where": lambda t, w, v: t.where(w > 1, w, v).sum(),
    "in place": lambda t, w, v: w.clone().mul_(v).sum(),
    "view": lambda t, w, v: (w.view(1, 3) * v.view(3, 1)).sum(),
    "sum": lambda t, w, v: (w + v).sum(),
    "norm": lambda t, w, v: t.nn.functional.layer_norm(t.stack([w, w * v]), (3,), w, v).sin().sum(),
}

CHANGES = {
    "own, in place": lambda t, own, other: own.detach().mul_(10),
    "own, a step": lambda t, own, other: own.detach().sub_(own.grad),
    "own, new data": lambda t, own, other: setattr(own, "data", own.data * 2),
    "own, freed": lambda t, own, other: setattr(own, "data", t.zeros(0)),
    "own gradient": lambda t, own, other: setattr(own, "grad", None),
    "pending, in place": lambda t, own, other: other.detach().mul_(10),
    "pending, new data": lambda t, own, other: setattr(other, "data", other.data * 3),
    "pending, no leaf of the graph": lambda t, own, other: other.requires_grad_(False),
    "pending, a gradient": lambda t, own, other: setattr(other, "grad", t.ones(3) * 100),
    "pending, a hook": lambda t, own, other: other.register_hook(lambda grad: grad * 5),
    "an optimizer of both": lambda t, own, other: t.optim.SGD([own, other], lr=0.07).step(),
    "an error": lambda t, own, other: 1 / 0,
}


def outcome(t, graph, change, hooked):
    leaves = t.tensor([1.5, 2.0, 0.5], requires_grad=True), t.tensor([0.3, 1.2, 2.5], requires_grad=True)
    order = []

    def hook(number):
        def call(parameter):
            order.append(number)
            CHANGES[change](t, parameter, leaves[1 - number])

        return call

    for number in hooked:
        leaves[number].register_post_accumulate_grad_hook(hook(number))
    try:
        GRAPHS[graph](t, *leaves).backward()
        error = None
    except (RuntimeError, ZeroDivisionError) as caught:
        error = type(caught).__name__
    return error, order, leaves


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("graph", GRAPHS)
def test_gradients_and_parameters(graph, change):
    for hooked in ((0,), (1,), (0, 1)):
        own_error, own_order, own = outcome(adjoint, graph, change, hooked)
        error, order, theirs = outcome(torch, graph, change, hooked)
        assert (own_error, own_order) == (error, order)
        for ours, other in zip(own, theirs, strict=True):
            assert (ours.grad is None) == (other.grad is None)
            assert ours.tolist() == pytest.approx(other.tolist(), rel=1e-4)
            assert ours.grad is None or ours.grad.tolist() == pytest.approx(other.grad.tolist(), rel=1e-4)
