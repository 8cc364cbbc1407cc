"""Observing a backward: anomaly detection, hooks of several tensors, in-place changes of saved tensors."""

import threading
from collections.abc import Iterator

import pytest

import adjoint as torch


@pytest.fixture
def anomaly() -> Iterator[None]:
    """Enable anomaly detection, and ignore the warning that it is slow."""
    torch.autograd.set_detect_anomaly(True)
    yield
    torch.autograd.set_detect_anomaly(False)


def test_first_nan_stops_backward_and_its_origin_is_told(anomaly: None) -> None:
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    y = x.sqrt() * 0
    with (
        pytest.warns(UserWarning, match=r"(?s)Error detected in SqrtBackward0.*test_anomaly_and_hooks.py"),
        pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output"),
    ):
        y.sum().backward()
    assert x.grad is None


def test_other_errors_are_located_too(anomaly: None) -> None:
    x = torch.tensor([1.0], requires_grad=True)
    y = x.exp()
    z = y.sum()
    y.add_(1)
    with (
        pytest.warns(UserWarning, match="Error detected in ExpBackward0"),
        pytest.raises(RuntimeError, match="modified"),
    ):
        z.backward()


def test_nan_passes_if_it_is_not_looked_for() -> None:
    x = torch.tensor([0.0], requires_grad=True)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        assert torch.is_anomaly_enabled()
        assert not torch.is_anomaly_check_nan_enabled()
        (x.sqrt() * 0).sum().backward()
    assert not torch.is_anomaly_enabled()
    assert torch.is_anomaly_check_nan_enabled()
    assert x.grad is not None
    assert torch.isnan(x.grad).all()


def test_entering_warns() -> None:
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"), torch.autograd.detect_anomaly():
        assert torch.is_anomaly_enabled()


def test_hook_of_several_tensors_runs_once_when_all_gradients_are_there() -> None:
    x, w = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    a, b = x * 2, w * 3
    seen: list[list[float | None]] = []
    handle = torch.autograd.graph.register_multi_grad_hook(
        (a, b, w), lambda grads: seen.append([None if grad is None else grad.item() for grad in grads])
    )
    (a * b).sum().backward(retain_graph=True)
    a.sum().backward(retain_graph=True)
    torch.autograd.grad((a * b).sum(), x, retain_graph=True)
    with pytest.raises(RuntimeError, match="A leaf node was passed"):
        torch.autograd.grad((a * b).sum(), w, retain_graph=True)
    assert seen == [[3.0, 2.0, 6.0], [1.0, None, None], [3.0, None, None]]
    handle.remove()
    handle.remove()
    (a * b).sum().backward()
    assert len(seen) == 3


def test_hook_of_several_tensors_runs_at_the_first_gradient() -> None:
    x = torch.ones(1, requires_grad=True)
    a = x * 2
    b = a * 3
    seen: list[float] = []
    with torch.autograd.graph.register_multi_grad_hook((a, b), lambda grad: seen.append(grad.item()), mode="any"):
        b.sum().backward()
    assert seen == [1.0]
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        torch.autograd.graph.register_multi_grad_hook((a,), print, mode="some")


def test_each_thread_has_a_task_of_its_own() -> None:
    leaves = [torch.ones(1, requires_grad=True) for _ in range(4)]
    seen: list[list[float]] = []
    handle = torch.autograd.graph.register_multi_grad_hook(
        leaves, lambda grads: seen.append([grad.item() for grad in grads])
    )

    def run(factor: int) -> None:
        for _ in range(20):
            sum(leaf * factor for leaf in leaves).sum().backward()  # type: ignore[union-attr]

    threads = [threading.Thread(target=run, args=(factor,)) for factor in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    handle.remove()
    assert sorted(seen) == [[float(factor)] * 4 for factor in (1, 2, 3) for _ in range(20)]


def test_what_was_saved_counts_where_mutation_is_allowed() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        a = x * 1
        y = a * a
        a.add_(10)
        y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("split", [False, True])
def test_reading_the_history_of_an_ambiguous_view_is_an_error(split: bool) -> None:
    base = torch.ones(3, requires_grad=True) * 1
    if split:
        view = base.split(1)[0]
    else:
        with torch.no_grad():
            view = base[:1]
    base.mul_(2)
    assert view.requires_grad
    with pytest.raises(RuntimeError, match="its base or another view of its base has been modified inplace"):
        view.grad_fn
    assert repr(view) == "tensor([2.], grad_fn=<Invalid>)"
    with torch.no_grad():
        assert (view * 1).tolist() == [2.0]


def test_retain_grad_follows_a_view_through_a_change_of_its_base() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    view = y[:1]
    view.retain_grad()
    y.mul_(3)
    (view * 2).sum().backward()
    assert view.retains_grad
    assert view.grad is not None
    assert view.grad.tolist() == [2.0]


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "part"])
@pytest.mark.parametrize("name", ["exp_", "sigmoid_", "sqrt_", "tanh_"])
def test_a_changed_tensor_has_its_new_history_although_a_hook_has_raised(name: str, whole: bool) -> None:
    def refuse(_: torch.Tensor) -> None:
        raise ValueError("not packed")

    x = torch.full((2,), 0.5, requires_grad=True)
    y = x * 1
    with (
        torch.autograd.graph.saved_tensors_hooks(refuse, lambda value: value),
        pytest.raises(ValueError, match="not packed"),
    ):
        getattr(y if whole else y[:1], name)()
    expected = torch.full((2,), 0.5, requires_grad=True)
    changed = getattr(expected if whole else expected[:1], name.rstrip("_"))()
    changed = changed if whole else torch.cat([changed, expected[1:]])
    assert y.tolist() == changed.tolist()
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == torch.autograd.grad(changed.sum(), expected)[0].tolist()


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda grad: grad.to_sparse(), "torch.sparse.FloatTensor"),
        (lambda grad: grad.to("meta"), "MetaFloatType"),
        (lambda grad: grad.to(torch.complex64), "CPUComplexFloatType"),
        (lambda grad: grad.double(), "torch.DoubleTensor"),
    ],
)
def test_hooks_keep_the_layout_and_the_device_of_a_gradient(change, name):
    x = torch.ones(2, requires_grad=True)
    message = rf"has changed the type of value \(was torch.FloatTensor got {name}\)"
    for register in (
        lambda y: y.register_hook(change),
        lambda y: y.grad_fn.register_prehook(lambda grads: (change(grads[0]),)),
        lambda y: y.grad_fn.register_hook(lambda inputs, outputs: (change(inputs[0]), *inputs[1:])),
    ):
        y = x * 2
        register(y)
        with pytest.raises(RuntimeError, match=message):
            y.sum().backward()
    assert x.grad is None


def test_hooks_that_an_unpack_hook_registers_see_no_received_gradients():
    x, seen = torch.arange(6.0).reshape(2, 3).requires_grad_(), []

    def unpack(tensor):
        def halve(inputs, outputs):
            seen.append(outputs)
            return tuple(grad / 2 for grad in inputs)

        torch._C._current_autograd_node().register_hook(halve)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        torch.var_mean(x, dim=0)[0].sum().backward()
    halved, x.grad = x.grad, None
    torch.var_mean(x, dim=0)[0].sum().backward()
    assert torch.equal(halved * 2, x.grad)
    assert seen == [()]
