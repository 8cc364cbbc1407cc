"""Statements of tutorials and of the documentation of automatic differentiation, each as a test."""

import io
import os
import pickle
import tempfile
import threading
import uuid
from pathlib import Path

import numpy
import pytest

import adjoint as torch
from adjoint import nn


def close(found, expected):
    return torch.allclose(found, torch.as_tensor(expected, dtype=found.dtype), rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- tensors, leaves and the graph


def test_results_know_how_they_were_made():
    x = torch.ones(2, 2, requires_grad=True)
    y = x + 2
    z = y * y * 3
    out = z.mean()
    assert x.grad_fn is None
    assert x.is_leaf
    assert [type(t.grad_fn).__name__ for t in (y, z, out)] == ["AddBackward0", "MulBackward0", "MeanBackward0"]
    assert not out.is_leaf
    out.backward()
    assert close(x.grad, [[4.5, 4.5], [4.5, 4.5]])


def test_requires_grad_of_a_result_is_that_of_any_input():
    x, y, z = torch.rand(5, 5), torch.rand(5, 5), torch.rand((5, 5), requires_grad=True)
    assert not (x + y).requires_grad
    assert (x + z).requires_grad


def test_requires_grad_can_be_set_in_place_afterwards():
    a = torch.randn(2, 2)
    a = (a * 3) / (a - 1)
    assert a.grad_fn is None
    a.requires_grad_(True)
    assert a.requires_grad
    assert type((a * a).sum().grad_fn).__name__ == "SumBackward0"


def test_the_graph_of_a_quadratic_can_be_walked_to_its_leaves():
    a = torch.tensor([2.0, 3.0], requires_grad=True)
    b = torch.tensor([6.0, 4.0], requires_grad=True)
    q = 3 * a**3 - b**2
    assert q.grad_fn.name() == "SubBackward0"
    (left, _), (right, _) = q.grad_fn.next_functions
    assert (left.name(), right.name()) == ("MulBackward0", "PowBackward0")
    assert right.next_functions[0][0].name().endswith("AccumulateGrad")
    assert right.next_functions[0][0].variable is b
    assert left.next_functions[1] == (None, 0)
    q.backward(gradient=torch.tensor([1.0, 1.0]))
    assert torch.equal(9 * a**2, a.grad)
    assert torch.equal(-2 * b, b.grad)


def test_leaves_intermediate_and_graph_inputs_are_told_apart():
    a = torch.rand(10, requires_grad=True)
    assert a.is_leaf
    assert not (a + 2).is_leaf
    assert torch.rand(10).is_leaf
    assert (torch.rand(10) + 2).is_leaf
    assert torch.rand(10).double().requires_grad_().is_leaf
    assert not torch.rand(10, requires_grad=True).double().is_leaf


def test_saved_input_is_the_same_object():
    x = torch.randn(5, requires_grad=True)
    y = x.pow(2)
    assert x.equal(y.grad_fn._saved_self)
    assert x is y.grad_fn._saved_self


def test_saved_result_is_another_object_on_the_same_memory():
    x = torch.randn(5, requires_grad=True)
    y = x.exp()
    assert y.equal(y.grad_fn._saved_result)
    assert y is not y.grad_fn._saved_result
    assert y.data_ptr() == y.grad_fn._saved_result.data_ptr()


def test_saved_tensors_are_freed_by_backward_but_nodes_are_not():
    x = torch.randn(5, requires_grad=True)
    y = x.pow(2)
    y.sum().backward()
    assert type(y.grad_fn).__name__ == "PowBackward0"
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        _ = y.grad_fn._saved_self


def test_unbind_numbers_its_outputs():
    x = torch.arange(6.0).reshape(3, 2).requires_grad_()
    rows = x.unbind()
    assert [row.output_nr for row in rows] == [0, 1, 2]
    assert all(row.grad_fn is rows[0].grad_fn for row in rows)
    product = rows[2] * rows[1]
    assert [index for _, index in product.grad_fn.next_functions] == [2, 1]
    product.sum().backward()
    assert close(x.grad, [[0.0, 0.0], [4.0, 5.0], [2.0, 3.0]])


# ---------------------------------------------------------------- backward


def test_vector_jacobian_product_after_one_two_and_zeroed_calls(capsys):
    inp = torch.eye(4, 5, requires_grad=True)
    out = (inp + 1).pow(2).t()
    out.backward(torch.ones_like(out), retain_graph=True)
    print(f"First call\n{inp.grad}")
    out.backward(torch.ones_like(out), retain_graph=True)
    print(f"\nSecond call\n{inp.grad}")
    inp.grad.zero_()
    out.backward(torch.ones_like(out), retain_graph=True)
    print(f"\nCall after zeroing gradients\n{inp.grad}")
    once = (
        "tensor([[4., 2., 2., 2., 2.],\n"
        "        [2., 4., 2., 2., 2.],\n"
        "        [2., 2., 4., 2., 2.],\n"
        "        [2., 2., 2., 4., 2.]])\n"
    )
    twice = once.replace("4.", "8.").replace("2.", "4.")
    assert capsys.readouterr().out == (
        f"First call\n{once}\nSecond call\n{twice}\nCall after zeroing gradients\n{once}"
    )


def test_second_backward_raises():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    assert close(x.grad, [2.0, 4.0])


def test_second_backward_is_allowed_where_nothing_was_saved_or_the_graph_is_retained():
    x = torch.ones(2, requires_grad=True)
    total = (x + x).sum()
    total.backward()
    total.backward()
    assert close(x.grad, [4.0, 4.0])
    square = (x * x).sum()
    square.backward(retain_graph=True)
    square.backward()
    assert close(x.grad, [8.0, 8.0])


def test_backward_needs_a_scalar_or_a_gradient():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        torch.ones(1).backward()


def test_intermediate_inputs_to_grad():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    z = y * 3
    out = z.sum()
    grad_x, grad_y, grad_z = torch.autograd.grad(out, (x, y, z))
    assert close(grad_z, [1.0, 1.0])
    assert close(grad_y, [3.0, 3.0])
    assert close(grad_x, [6.0, 12.0])
    assert x.grad is None


def test_grad_of_an_input_that_was_not_used():
    x, unused = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    y = (x * 2).sum()
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad(y, unused, retain_graph=True)
    assert torch.autograd.grad(y, (x, unused), allow_unused=True)[1] is None


def test_grad_of_a_non_leaf_warns_and_retain_grad_gives_it():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.sum().backward()
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        assert y.grad is None
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()
    assert close(y.grad, [4.0, 8.0])


def test_higher_derivatives():
    x = torch.tensor(3.0, requires_grad=True)
    derivative, values = x**4, []
    for _ in range(5):
        (derivative,) = torch.autograd.grad(derivative, x, create_graph=True)
        values.append(derivative.item())
    assert values == [108.0, 108.0, 72.0, 24.0, 0.0]


def test_deep_graph_with_converging_branches():
    """Each level uses the previous level twice, so the graph has 2**500 paths from the root.

    Nevertheless, each node runs only once.
    """
    x = torch.tensor(1.0, requires_grad=True, dtype=torch.float64)
    visits = []
    y = x
    for _ in range(500):
        left, right = y * 0.5, y * 0.5
        y = left + right
        y.register_hook(visits.append)
    y.backward()
    assert x.grad.item() == 1.0
    assert len(visits) == 500


def test_deep_chain_does_not_recurse():
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0


def test_hook_changes_the_gradient_and_can_be_removed():
    v = torch.tensor([0.0, 0.0, 0.0], requires_grad=True)
    handle = v.register_hook(lambda grad: grad * 2)
    v.backward(torch.tensor([1.0, 2.0, 3.0]))
    assert close(v.grad, [2.0, 4.0, 6.0])
    handle.remove()
    v.backward(torch.tensor([1.0, 2.0, 3.0]))
    assert close(v.grad, [3.0, 6.0, 9.0])


# ---------------------------------------------------------------- in-place changes, versions and views


def test_version_mismatch_is_caught_for_mul():
    a = torch.ones(3, requires_grad=True)
    b = torch.ones(3)
    y = a * b
    b.add_(1)
    with pytest.raises(
        RuntimeError,
        match=r"one of the variables needed for gradient computation has been modified by an inplace operation"
        r".*is at version 1; expected version 0 instead",
    ):
        y.sum().backward()


def test_version_mismatch_is_allowed_for_add():
    a = torch.ones(3, requires_grad=True)
    b = torch.ones(3)
    y = a + b
    b.add_(1)
    assert b._version == 1
    y.sum().backward()
    assert close(a.grad, [1.0, 1.0, 1.0])


def test_changing_a_saved_result_is_caught():
    a = torch.ones(3, requires_grad=True)
    y = a.exp()
    y.mul_(2)
    with pytest.raises(RuntimeError, match="output 0 of Exp, is at version 1; expected version 0 instead"):
        y.sum().backward()


def test_in_place_on_a_leaf_that_requires_grad_raises():
    w = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        w += 1
    with torch.no_grad():
        w += 1
    assert close(w, [2.0, 2.0])
    assert w.is_leaf


def test_in_place_on_a_view_changes_the_history_of_its_base():
    x = torch.ones(3, requires_grad=True)
    base = x * 2
    row = base[0]
    row.mul_(10)
    assert type(base.grad_fn).__name__ == "CopySlices"
    base.sum().backward()
    assert close(x.grad, [20.0, 2.0, 2.0])


def test_detach_shares_storage_and_version():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    d = y.detach()
    assert not d.requires_grad
    assert d.is_leaf
    assert d.data_ptr() == y.data_ptr()
    d[0] = 7.0
    assert y[0].item() == 7.0
    assert y._version == d._version == 1


def test_change_through_detach_is_caught_and_through_data_is_not():
    x = torch.ones(3, requires_grad=True)
    y = x.sigmoid()
    y.detach().zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    x = torch.ones(3, requires_grad=True)
    y = x.sigmoid()
    y.data.zero_()
    y.sum().backward()
    assert close(x.grad, [0.0, 0.0, 0.0])


# ---------------------------------------------------------------- modes


def test_no_grad_as_context_manager_and_decorator():
    x = torch.tensor([1.0], requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad

    @torch.no_grad()
    def doubled(value):
        return value * 2

    assert not doubled(x).requires_grad
    assert (x * 2).requires_grad


def test_inference_tensors_cannot_be_saved_for_backward():
    with torch.inference_mode():
        x = torch.ones(2)
    assert x.is_inference()
    w = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        _ = w * x


def test_custom_function():
    class LegendrePolynomial3(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return 0.5 * (5 * x**3 - 3 * x)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * 1.5 * (5 * x**2 - 1)

    x = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
    y = LegendrePolynomial3.apply(x)
    assert type(y.grad_fn).__name__ == "LegendrePolynomial3Backward"
    y.sum().backward()
    assert close(x.grad, [-1.5, 6.0, 28.5])


# ---------------------------------------------------------------- training


def small_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def test_gradient_descent_by_hand_fits_a_line():
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(100, generator=generator)
    y = 3 * x - 1
    slope, intercept = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    for _ in range(500):
        loss = ((slope * x + intercept - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for parameter in (slope, intercept):
                parameter -= 0.5 * parameter.grad
                parameter.grad.zero_()
    assert slope.item() == pytest.approx(3.0, abs=1e-3)
    assert intercept.item() == pytest.approx(-1.0, abs=1e-3)


def test_accumulation_by_scaling_every_batch_gives_the_gradient_of_the_whole():
    model, loss_function = small_model(), nn.CrossEntropyLoss()
    x, target = torch.randn(12, 3), torch.arange(12) % 2
    loss_function(model(x), target).backward()
    expected = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    for part, labels in zip(x.chunk(4), target.chunk(4), strict=True):
        loss = loss_function(model(part), labels) / 4
        loss.backward()
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        assert torch.allclose(parameter.grad, gradient, atol=1e-6)


def test_accumulation_by_backward_every_nth_batch_gives_the_same_steps():
    x, target = torch.randn(24, 3), torch.arange(24) % 2
    batches = list(zip(x.chunk(6), target.chunk(6), strict=True))

    def train(step_of_batch):
        model, loss_function = small_model(), nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        optimizer.zero_grad()
        step_of_batch(model, loss_function, optimizer)
        return [parameter.detach().clone() for parameter in model.parameters()]

    def scaled_each_batch(model, loss_function, optimizer):
        for number, (part, labels) in enumerate(batches, start=1):
            (loss_function(model(part), labels) / 3).backward()
            if number % 3 == 0:
                optimizer.step()
                optimizer.zero_grad()

    def summed_then_backward(model, loss_function, optimizer):
        total = 0
        for number, (part, labels) in enumerate(batches, start=1):
            total = total + loss_function(model(part), labels)
            if number % 3 == 0:
                (total / 3).backward()
                optimizer.step()
                optimizer.zero_grad()
                total = 0

    for one, other in zip(train(scaled_each_batch), train(summed_then_backward), strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_frozen_parameters_get_no_gradient_and_do_not_move():
    model = small_model()
    for parameter in model.parameters():
        parameter.requires_grad = False
    model[2] = nn.Linear(4, 2)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.1)
    loss = model(torch.randn(5, 3)).pow(2).mean()
    loss.backward()
    optimizer.step()
    assert model[0].weight.grad is None
    assert model[2].weight.grad is not None
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]) == name.startswith("0.")


def test_frozen_layers_in_the_middle_pass_gradients_through():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].requires_grad_(False)
    model(torch.ones(1, 2)).sum().backward()
    assert model[0].weight.grad is not None
    assert model[1].weight.grad is None


def test_td_lambda_with_eligibility_traces():
    """TD(λ) on a random walk, with in-place changes of the trace and the gradient, compared with NumPy."""
    states, alpha, gamma, lambda_ = 5, 0.1, 0.95, 0.8
    steps = numpy.random.default_rng(0).integers(0, 2, size=400) * 2 - 1
    model = nn.Linear(states, 1)
    with torch.no_grad():
        model.weight.fill_(0.5)
        model.bias.zero_()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    z = [torch.zeros_like(p) for p in model.parameters()]
    features = torch.eye(states)
    weight, bias = numpy.full((1, states), 0.5), numpy.zeros(1)
    trace_weight, trace_bias = numpy.zeros((1, states)), numpy.zeros(1)

    state = states // 2
    for step in steps.tolist():
        following = state + step
        done = not 0 <= following < states
        reward = 1.0 if following == states else 0.0

        model.zero_grad()
        value = model(features[state])
        value.backward()
        with torch.no_grad():
            target = reward if done else reward + gamma * model(features[following]).item()
            delta = target - value.item()
            for i, p in enumerate(model.parameters()):
                z[i][:] = gamma * lambda_ * z[i] + p.grad
                p.grad[:] = alpha * delta * z[i]
                p.grad.neg_()
        optimizer.step()

        gradient = numpy.eye(states)[state]
        numpy_target = reward if done else reward + gamma * (weight[0, following] + bias[0])
        numpy_delta = numpy_target - (weight[0, state] + bias[0])
        trace_weight = gamma * lambda_ * trace_weight + gradient
        trace_bias = gamma * lambda_ * trace_bias + 1.0
        weight = weight + alpha * numpy_delta * trace_weight
        bias = bias + alpha * numpy_delta * trace_bias

        state = following
        if done:
            state = states // 2
            for i in range(len(z)):
                z[i].zero_()
            trace_weight[:], trace_bias[:] = 0.0, 0.0

    numpy.testing.assert_allclose(model.weight.detach().numpy(), weight, rtol=1e-4, atol=1e-5)
    numpy.testing.assert_allclose(model.bias.detach().numpy(), bias, rtol=1e-4, atol=1e-5)


def test_ten_threads_train_on_the_same_leaf():
    x = torch.ones(5, 5, requires_grad=True)

    def train():
        y = (x + 3) * (x + 4) * 0.5
        y.sum().backward()

    threads = [threading.Thread(target=train) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert close(x.grad, torch.full((5, 5), 45.0))


# ---------------------------------------------------------------- saved tensors with hooks


class SelfDeletingTempFile:
    """A temporary file, deleted together with the object."""

    def __init__(self, directory):
        self.name = os.path.join(directory, str(uuid.uuid4()))  # noqa: PTH118  (as in the tutorial)

    def __del__(self):
        Path(self.name).unlink()


def test_saved_tensors_above_a_threshold_go_to_self_deleting_files(tmp_path):
    threshold = 1000

    def pack_hook(tensor):
        if tensor.numel() < threshold:
            return tensor
        temp_file = SelfDeletingTempFile(tmp_path)
        torch.save(tensor, temp_file.name)
        return temp_file

    def unpack_hook(packed):
        return packed if isinstance(packed, torch.Tensor) else torch.load(packed.name)

    small, large = torch.rand(10, requires_grad=True), torch.rand(2000, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack_hook, unpack_hook):
        y = (small * small).sum() + (large * large).sum()
    assert len(list(tmp_path.iterdir())) == 2
    y.backward()
    assert torch.equal(small.grad, 2 * small)
    assert torch.equal(large.grad, 2 * large)
    del y
    assert list(tmp_path.iterdir()) == []


def test_hooks_registered_on_one_saved_tensor():
    calls = []
    a = torch.ones(5, requires_grad=True)
    y = a * a
    y.grad_fn._raw_saved_self.register_hooks(lambda t: calls.append("pack") or t.numpy(), torch.from_numpy)
    assert calls == ["pack"]
    y.sum().backward()
    assert close(a.grad, [2.0] * 5)


def test_packed_saved_tensors_are_new_objects_on_the_same_memory():
    x = torch.randn(5, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x.pow(2)
    assert y.grad_fn._saved_self is not x
    assert y.grad_fn._saved_self.data_ptr() == x.data_ptr()


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".pwf", ".pth.tar"])
def test_checkpoints_of_every_customary_suffix_with_a_pickle_module_given(tmp_path, suffix):
    model = small_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    path = tmp_path / f"checkpoint{suffix}"
    checkpoint = {"epoch": 3, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "loss": 0.25}
    torch.save(checkpoint, path, pickle_module=pickle)

    loaded = torch.load(path, map_location="cpu", pickle_module=pickle)
    assert (loaded["epoch"], loaded["loss"]) == (3, 0.25)
    fresh = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    fresh.load_state_dict(loaded["model"])
    assert torch.equal(fresh(torch.ones(1, 3)), model(torch.ones(1, 3)))
    fresh_optimizer = torch.optim.Adam(fresh.parameters())
    fresh_optimizer.load_state_dict(loaded["optimizer"])
    assert fresh_optimizer.param_groups[0]["lr"] == 0.01


def test_saving_to_and_loading_from_memory():
    buffer = io.BytesIO()
    torch.save({"weights": torch.arange(4.0)}, buffer)
    buffer.seek(0)
    assert torch.equal(torch.load(buffer)["weights"], torch.arange(4.0))
    with tempfile.TemporaryFile() as file:
        torch.save(torch.arange(3), file)
        file.seek(0)
        assert torch.load(file).tolist() == [0, 1, 2]


def test_saved_tensors_can_be_packed_as_arrays():
    """No graph is recorded while hooks pack tensors, so `numpy()` is allowed.

    The hooks do not receive the numbers in an expression.
    """
    packed = []

    def pack(tensor):
        packed.append((tensor.requires_grad, tensor.grad_fn is None))
        return tensor.numpy()

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, torch.from_numpy):
        y = (x * 2).exp().max(0).values
    y.backward()
    assert close(x.grad, [0.0, 2 * numpy.exp(4.0)])
    assert packed == [(True, False), (False, True)]
