"""Rare cases of the engine that programs rely on: saved values, release, counts and names."""

import functools
import gc
import pickle
import threading
import warnings
import weakref

import numpy
import pytest

import adjoint as torch
from adjoint.autograd import accumulate
from adjoint.utils.checkpoint import (
    CheckpointError,
    CheckpointPolicy,
    GraphExecGroup,
    checkpoint,
    create_selective_checkpoint_contexts,
)


def ones(*sizes: int) -> torch.Tensor:
    return torch.ones(*sizes, requires_grad=True)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


# --- saved tensors ----------------------------------------------------------------------------------------------


def test_index_tensors_pass_through_hooks_and_are_freed():
    x = ones(3, 3)
    y = x[:, torch.tensor([0, 1])]
    first, second = y.grad_fn._raw_saved_indices
    seen = []
    second.register_hooks(
        lambda t: seen.append("pack") or t.numpy(), lambda a: seen.append("unpack") or torch.tensor(a)
    )
    with pytest.raises(RuntimeError, match="value None is forbidden"):
        first.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="already been set"):
        second.register_hooks(lambda t: t, lambda t: t)
    y.sum().backward()
    assert seen == ["pack", "unpack"]
    assert x.grad.tolist() == [[1, 1, 0]] * 3
    with pytest.raises(RuntimeError, match="a second time"):
        y.grad_fn._saved_indices
    with pytest.raises(RuntimeError, match="a second time"):
        y.sum().backward()


def test_pack_hooks_see_the_very_inputs():
    x, constant = ones(3), torch.ones(3)
    seen = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        node = x * constant
        x * node
        assert [id(each) for each in seen] == [id(constant), id(node), id(x)]
        result = node.exp()
        assert seen[3] is not result
        assert seen[3].grad_fn is result.grad_fn
        result.mul_(x)  # recorded in place
        result.t_()
    assert len(seen) == 6
    result.sum().backward()
    assert x.grad.tolist() == pytest.approx([2 * numpy.e] * 3)


def test_what_a_backward_records_has_the_line_that_started_it():
    x = ones(3)
    y = (x * x * x).tanh().sum()
    x.register_hook(lambda grad: hooked.append(grad * 2))
    hooked = []
    (grad,) = torch.autograd.grad(y, x, create_graph=True)  # here
    assert "# here" in grad.grad_fn.describe_origin()
    assert all("# here" in node.describe_origin() for node, _ in grad.grad_fn.next_functions)
    assert "hooked.append" in hooked[0].grad_fn.describe_origin()


def test_saved_tensor_hooks_see_index_tensors():
    seen = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t.dtype) or t, lambda t: t):
        y = ones(3)[torch.tensor([0, 2])]
    assert seen == [torch.int64]
    y.sum().backward()


@pytest.mark.parametrize("name", ["mul_", "div_", "pow_", "atan2_", "hypot_"])
def test_changing_a_tensor_by_itself_invalidates_saved_values(name):
    x = ones(2)
    y = x * 1
    getattr(y, name)(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    del y
    gc.disable()
    try:
        y = x * 1
        node = y.mul_(y).grad_fn
        node.metadata["alive"] = alive = Alive()
        reference = weakref.ref(alive)
        del y, node, alive
        assert reference() is None
    finally:
        gc.enable()


class Alive:
    pass


def test_results_saved_by_operations_on_views_have_the_views_history():
    def through_view(x):
        y = x.clone()
        y[:1].tanh_()
        return y

    assert torch.autograd.gradgradcheck(
        through_view, (torch.tensor([0.3, 0.6], dtype=torch.double, requires_grad=True),)
    )


def test_freed_saved_tensors_of_functions_that_saved_none():
    y = Doubled.apply(ones(2))
    y.sum().backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.grad_fn.saved_tensors


# --- gradients --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Using backward")
def test_accumulation_adds_to_the_existing_gradient():
    x = ones(2)
    (x * x).sum().backward(create_graph=True)
    held = x.grad
    (held * 2).sum().backward()
    assert x.grad is held
    assert held.requires_grad
    assert held.tolist() == [6, 6]


def test_grad_dtype():
    x = ones(2)
    assert x.grad_dtype is torch.float32
    x.grad_dtype = torch.float64
    assert torch.autograd.grad((x * 2).sum(), x)[0].dtype is torch.float64
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert x.grad.dtype is torch.float64
    assert x.grad.tolist() == [4, 4]
    with pytest.raises(RuntimeError, match="already a gradient with dtype 'double'"):
        x.grad_dtype = torch.float16
    x.grad = x.grad_dtype = None
    x.grad = torch.ones(2, dtype=torch.float16)
    with pytest.raises(RuntimeError, match="leaf tensors"):
        (x * 2).grad_dtype


def test_a_function_without_gradient_leaves_the_base_of_its_view_without():
    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, grad):
            return None

    x = ones(3)
    y = x.clone()
    Nothing.apply(y[:2])
    y.sum().backward()
    assert x.grad is None


def test_powers_of_negative_numbers_to_complex_exponents():
    base = -torch.ones(2, dtype=torch.double)
    exponent = torch.tensor([0.5 + 1j, 1 - 0.3j], dtype=torch.cdouble, requires_grad=True)
    assert torch.autograd.gradcheck(lambda e: base**e, (exponent,))


def test_extrema_that_are_nan_have_gradients_that_are_nan():
    x = torch.tensor([float("nan")] * 2, requires_grad=True)
    torch.amax(x).backward()
    assert x.grad.isnan().all()


def test_variance_over_a_list_of_dimensions():
    x = torch.arange(24.0).reshape(2, 3, 4).requires_grad_()
    variance, mean = torch.var_mean(x, dim=[0, 2])
    (variance + mean).sum().backward()
    assert x.grad.shape == x.shape


def test_differentiating_once_differentiable_results_finds_nothing_behind_them():
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad):
            return grad * 2

    x = ones(2)
    (grad,) = torch.autograd.grad((Once.apply(x) ** 2).sum(), x, create_graph=True)
    assert torch.autograd.grad(grad.sum(), x, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        grad.sum().backward()


# --- hooks and nodes --------------------------------------------------------------------------------------------


def test_hooks_of_forgotten_accumulators_run():
    x, seen = ones(2), []
    y = x * 2
    y.grad_fn.next_functions[0][0].register_prehook(lambda grads: seen.append("pre"))
    y.grad_fn.next_functions[0][0].register_hook(lambda *grads: seen.append("post"))
    y.sum().backward()
    assert seen == ["pre", "post"]


def test_a_hook_put_on_a_node_while_it_reads_what_it_saved_runs():
    seen, nodes = [], []

    def unpack(tensor):
        nodes[0].register_hook(lambda *grads: seen.append("post"))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        y = ones(1).pow(2)
    nodes.append(y.grad_fn)
    y.backward()
    assert seen == ["post"]


def test_what_a_post_accumulate_hook_returns_goes_to_the_next_and_is_refused():
    x = ones(2)
    x.register_post_accumulate_grad_hook(lambda leaf: leaf.grad.mul_(3))
    seen = []
    x.register_post_accumulate_grad_hook(lambda value: seen.append(value.tolist()))
    with pytest.raises(RuntimeError, match="post accumulate grad hooks should return None"):
        x.sum().backward()
    assert seen == [[3, 3]]
    x.register_post_accumulate_grad_hook(lambda value: 0.5)
    with pytest.raises(TypeError, match="hook returned 'float'"):
        x.sum().backward()


def test_nodes_are_called_with_one_gradient_for_each_output():
    node = (ones(2) ** 2).grad_fn
    with pytest.raises(TypeError, match="expected 1 arguments, got 2"):
        node(torch.ones(2), torch.ones(2))
    with pytest.raises(TypeError, match="keyword arguments are not supported"):
        node(grad=torch.ones(2))
    with pytest.raises(TypeError, match="argument 0 is not a Variable"):
        node(3)
    assert node(None) is None
    with pytest.raises(TypeError, match="cannot pickle 'PowBackward0' object"):
        pickle.dumps(node)


def test_names_of_the_c_library():
    seen = []
    x = ones(2)
    y = x * 2

    def hook(grad):
        seen.append(torch._C._current_autograd_node() is y.grad_fn)
        seen.append(torch._C._current_graph_task_id() >= 0)
        seen.append(torch._C._will_engine_execute_node(y.grad_fn))

    y.register_hook(hook)
    torch._C._functions.UndefinedGrad()(x * 1).sum().backward()
    assert x.grad is None
    y.sum().backward()
    assert seen == [True, True, True]
    with pytest.raises(RuntimeError, match="during the backward pass"):
        torch._C._will_engine_execute_node(y.grad_fn)
    torch._C._autograd._unsafe_set_version_counter((y,), (5,))
    assert y._version == 5
    torch._C._autograd._saved_tensors_hooks_disable("none here")
    assert not torch._C._autograd._saved_tensors_hooks_is_enabled()
    torch._C._autograd._saved_tensors_hooks_enable()


def test_the_engine_by_its_own_arguments():
    x = ones(2)
    run = torch.autograd.graph._engine_run_backward
    one = torch.tensor(1.0)
    (grad,) = run(((x * 2).sum(),), (one,), False, False, (x,), allow_unreachable=True, accumulate_grad=False)
    assert grad.tolist() == [2, 2]
    run(((x * 2).sum(),), (one,), False, False, (), allow_unreachable=True, accumulate_grad=True)
    assert x.grad.tolist() == [2, 2]


# --- views, modes -----------------------------------------------------------------------------------------------


def test_views_followed_by_the_operations_that_made_them():
    with torch.autograd._force_original_view_tracking(True):
        x = ones(2, 2)
        y = x.clone()
        view, part = y.transpose(0, 1), y[0][1:]
        y.mul_(3)
        assert view.grad_fn.name() == "TransposeBackward0"
        assert [part.grad_fn.name(), part.grad_fn.next_functions[0][0].name()] == ["SliceBackward0", "SelectBackward0"]
        part.sum().backward()
    assert x.grad.tolist() == [[0, 3], [0, 0]]
    y = ones(2).clone()
    view = y.view(2, 1)
    y.mul_(3)
    assert view.grad_fn.name() == "AsStridedBackward0"


def test_inference_tensors_are_not_changed_outside():
    with torch.inference_mode():
        x = torch.ones(1, 2)
        x.requires_grad = True
        y = torch.ones(1, 2)
    for change in (lambda: y.t_(), lambda: y.resize_(3), lambda: torch.mul(y, 2, out=y), lambda: y.add_(1)):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
            change()
    assert y.tolist() == [[1, 1]]


def test_views_that_functions_return_while_nothing_is_recorded():
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad

    result = Same.apply(torch.ones(2))
    with pytest.raises(RuntimeError, match="created inside a custom Function"):
        result.add_(ones(2))


def test_one_tensor_returned_twice_stays_one():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx, first, second):
            return first * 2 + second * 2

    x = torch.ones(2, dtype=torch.double, requires_grad=True)
    first, second = Twice.apply(x)
    assert first is second
    assert torch.autograd.gradcheck(lambda x: sum(Twice.apply(x)), (x,))


# --- warnings and anomalies -------------------------------------------------------------------------------------


def test_nan_in_an_unneeded_gradient_of_a_function_is_an_anomaly():
    class ToNothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, constant, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * float("nan"), grad * 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            torch.autograd.detect_anomaly(),
            pytest.raises(RuntimeError, match="returned nan values in its 0th output"),
        ):
            ToNothing.apply(torch.ones(2), ones(2)).sum().backward()


def test_anomalies_of_leaves_are_traced():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            x = ones(2)
            x.register_post_accumulate_grad_hook(lambda leaf: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                (x * 2).sum().backward()
    assert "AccumulateGrad. Traceback of forward call" in str(caught[-1].message)
    assert "(x * 2).sum()" in str(caught[-1].message)


def test_create_graph_warns_every_time_where_asked_to():
    torch.set_warn_always(True)
    try:
        for _ in range(2):
            x = ones(2)
            with pytest.warns(UserWarning, match="create_graph=True will create a reference cycle"):
                (x * x).sum().backward(create_graph=True)
            x.grad = None
    finally:
        torch.set_warn_always(False)


# --- checkpoints ------------------------------------------------------------------------------------------------


def products(x, y):
    return torch.sigmoid((x @ y) @ y) * y


def test_selective_checkpointing_keeps_what_the_policy_says():
    asked = []

    def policy(context, op, *args):
        asked.append((str(op), context.is_recompute))
        return CheckpointPolicy.MUST_SAVE if op is torch.ops.aten.mm.default else CheckpointPolicy.PREFER_RECOMPUTE

    contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    x = torch.rand(3, 3, requires_grad=True)
    y = torch.rand(3, 3, requires_grad=True)
    result = checkpoint(products, x, y, use_reentrant=False, context_fn=contexts)
    assert [name for name, _ in asked] == [
        "aten.mm.default",
        "aten.mm.default",
        "aten.sigmoid.default",
        "aten.mul.Tensor",
    ]
    result.sum().backward(retain_graph=True)
    expected = torch.autograd.grad(products(x, y).sum(), (x, y))
    numpy.testing.assert_allclose(x.grad.numpy(), expected[0].numpy(), rtol=1e-5)
    numpy.testing.assert_allclose(y.grad.numpy(), expected[1].numpy(), rtol=1e-5)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        result.sum().backward()


def test_selective_checkpointing_minds_changes_of_what_it_keeps():
    def changing(x):
        y = x.sin()
        y.add_(1)
        return y * x

    x = ones(2)
    for mutable in (False, True):
        contexts = functools.partial(
            create_selective_checkpoint_contexts, lambda *args: True, allow_cache_entry_mutation=mutable
        )
        result = checkpoint(changing, x, use_reentrant=False, context_fn=contexts)
        if mutable:
            result.sum().backward()
        else:
            with pytest.raises(RuntimeError, match="has been mutated"):
                result.sum().backward()
    with pytest.raises(TypeError, match="either a function or a list"):
        create_selective_checkpoint_contexts(3)
    with pytest.raises(ValueError, match="Please update the OpOverloadPacket to a specific OpOverload"):
        create_selective_checkpoint_contexts([torch.ops.aten.sin])
    with pytest.raises(ValueError, match="to be an OpOverload but got: x"):
        create_selective_checkpoint_contexts(["x"])


def test_backwards_of_a_group_recompute_once():
    calls = []

    def function(x):
        calls.append(1)
        return x.sin().exp(), x.cos().exp()

    x = ones(2)
    a, b = checkpoint(function, x, use_reentrant=False, early_stop=False)
    with GraphExecGroup():
        a.sum().backward(retain_graph=True)
        b.sum().backward()
        assert len(calls) == 2
        with pytest.raises(CheckpointError, match="already unpacked once"):
            a.sum().backward()
        with pytest.raises(RuntimeError, match="cannot be nested"), GraphExecGroup():
            pass


def test_operators_by_their_dispatcher_names():
    assert str(torch.ops.aten.mul.Tensor) == "aten.mul.Tensor"
    assert torch.ops.aten.mm.default is torch.ops.aten.mm.default
    assert torch.ops.aten.mm.default(torch.eye(2), torch.ones(2, 2)).tolist() == [[1, 1], [1, 1]]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        torch.ops.aten.nothing


def test_what_leads_nowhere_does_not_run_although_all_leaves_are_asked_for():
    x, calls = ones(2), []
    with torch.no_grad():
        view = x.view(2)
    doubled = view * 2
    doubled.register_hook(calls.append)
    total = doubled.sum() + x.sum()
    (grad,) = torch.autograd.grad(total, x, retain_graph=True)
    assert (grad.tolist(), len(calls)) == ([1, 1], 0)
    total.backward()
    assert len(calls) == 1


def test_a_node_asked_during_a_backward_in_which_all_run():
    x, answers = ones(2), []
    tripled = x * 3
    tripled.register_hook(lambda grad: answers.append(torch._C._will_engine_execute_node(tripled.grad_fn)))
    result = tripled.exp()
    result.register_hook(lambda grad: answers.append(torch._C._will_engine_execute_node(tripled.grad_fn)))
    torch.autograd.grad(result.sum(), x)
    assert answers == [True, True]


def test_nodes_have_the_attributes_of_what_they_saved_and_no_others():
    node = (ones(2) * ones(2)).grad_fn
    assert [name for name in dir(node) if name.startswith(("_saved", "_raw_saved"))] == [
        "_raw_saved_other",
        "_raw_saved_self",
        "_saved_other",
        "_saved_self",
    ]
    with pytest.raises(AttributeError, match="'MulBackward0' object has no attribute '_saved_result'"):
        _ = node._saved_result
    assert not hasattr(type(node), "__getattr__")  # `__getattr__` would slow down the access to all attributes


def test_a_backward_begins_with_one_element_of_any_shape():
    x = ones(1)
    (x * 3).backward()
    (x * 3).backward(torch.tensor([2.0]))
    (x * 3).backward(torch.tensor([2.0], dtype=torch.float64))
    assert x.grad.tolist() == [15]
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (x * 3).backward(torch.tensor([[2.0]]))


@pytest.mark.parametrize("enabled", [False, True])
def test_accumulators_can_be_called(enabled):
    x = torch.ones(2, requires_grad=True)
    told = []
    x.register_hook(told.append)
    x.register_post_accumulate_grad_hook(told.append)
    node = (x * 2).grad_fn.next_functions[0][0]
    grad = torch.ones(2)
    with torch.set_grad_enabled(enabled):
        assert node(grad) == ()
        grad.add_(5)
        node(torch.ones(2))
    assert x.grad.tolist() == [2.0, 2.0]
    assert len(told) == 2
    assert told[0] is x


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
def test_a_first_gradient_is_kept_while_another_thread_makes_one_with_a_graph(monkeypatch):
    x = torch.tensor(2.0, requires_grad=True)
    own = accumulate.own

    def interrupted(grad, leaf):
        thread = threading.Thread(target=lambda: (x * 10).backward())
        thread.start()
        thread.join()
        return own(grad, leaf)

    monkeypatch.setattr(accumulate, "own", interrupted)
    (x * x).backward(create_graph=True)
    assert x.grad.item() == 14.0
