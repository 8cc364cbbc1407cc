"""Changes of tensors that share memory: views, aliases, inference tensors."""

import copy
import pickle

import pytest

import adjoint as torch

CHANGED_OUTSIDE = "Inplace update to inference tensor outside InferenceMode is not allowed"
ONE_PLACE = "some elements of the input tensor and the written-to tensor refer to a single memory location"


def ones(*sizes: int) -> torch.Tensor:
    return torch.ones(*sizes, requires_grad=True)


# --- inference tensors ----------------------------------------------------------------------------------------


def test_changes_of_an_alias_of_an_inference_tensor_are_counted_outside_of_inference_mode():
    with torch.inference_mode():
        made = torch.ones(2)
        inner = made.detach()
    for alias in (made.detach(), made.data):
        assert alias.is_inference()
        assert alias._version == 0
        alias.mul_(2)
        assert alias._version == 1
        with torch.inference_mode():
            alias.mul_(2)
        assert alias._version == 1
        with pytest.raises(RuntimeError, match="cannot be saved for backward"):
            ones(2) * alias
    for tensor in (made, inner, inner[1:]):
        with pytest.raises(RuntimeError, match="do not track version counter"):
            assert tensor._version
        with pytest.raises(RuntimeError, match=CHANGED_OUTSIDE):
            tensor.mul_(2)
        with pytest.raises(RuntimeError, match=CHANGED_OUTSIDE):
            tensor.set_(torch.ones(3))
    assert made.tolist() == [16.0, 16.0]


def test_a_tensor_that_is_given_the_memory_of_an_inference_tensor_goes_on_counting():
    with torch.inference_mode():
        made = torch.ones(2)
    tensor = torch.zeros(2).add_(1)
    tensor.data = made
    assert (tensor.is_inference(), tensor._version) == (True, 1)
    tensor.mul_(2)
    assert (tensor._version, made.tolist()) == (2, [2.0, 2.0])


def test_a_parameter_of_an_inference_tensor():
    with torch.inference_mode():
        made = torch.ones(2)
        assert torch.nn.Parameter(made).is_inference()
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode"):
        torch.nn.Parameter(made)
    assert torch.nn.Parameter(made, requires_grad=False).is_inference()


def test_copies_made_in_inference_mode_are_inference_tensors():
    tensor = torch.ones(2)
    for copied in (copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))):
        assert not copied(tensor).is_inference()
        with torch.inference_mode():
            assert copied(tensor).is_inference()


def test_views_of_inference_tensors_have_no_history():
    with torch.inference_mode():
        tensor = torch.ones(2, requires_grad=True)
    for view in (tensor.view(2, 1), tensor.unbind()[0], tensor.expand(2, 2), tensor.split(1)[0]):
        assert (view.is_inference(), view.requires_grad, view.grad_fn) == (True, False, None)
    with torch.inference_mode():
        layer = torch.nn.Linear(2, 2)
    assert not layer.weight.t().requires_grad


def test_gradients_found_in_inference_mode_are_inference_tensors():
    seen = []
    leaf = ones(2)
    leaf.register_hook(seen.append)
    first, second = leaf.exp(), leaf * 2
    with torch.inference_mode():
        first.backward(torch.ones(2), retain_graph=True)
        (found,) = torch.autograd.grad(first, leaf, torch.ones(2))
        second.sum()
    assert leaf.grad.is_inference()
    assert found.is_inference()
    assert all(grad.is_inference() for grad in seen)
    with pytest.raises(RuntimeError, match=CHANGED_OUTSIDE):
        second.sum().backward()


def test_derivatives_of_derivatives_in_inference_mode():
    with torch.inference_mode():
        point = torch.tensor([0.5, 1.5])
        gradient = torch.func.grad(lambda x: (x * x[:1]).sum())
        _, product = torch.func.jvp(gradient, (point,), (torch.ones_like(point),))
        factor = torch.tensor([2.0, 3.0])
        assert torch.func.grad(lambda x: (x * factor).sum())(point).tolist() == [2.0, 3.0]
        assert torch.func.hessian(lambda x: (x * factor * x).sum())(point).tolist() == [[4.0, 0.0], [0.0, 6.0]]
        assert torch.func.vjp(lambda x: x * factor, point)[1](factor)[0].tolist() == [4.0, 9.0]
    assert product.tolist() == [3.0, 1.0]
    assert torch.func.grad(lambda x: (x * factor).sum())(torch.ones(2)).tolist() == [2.0, 3.0]
    with pytest.raises(RuntimeError, match="cannot be saved for backward"):
        torch.vmap(lambda x: x * factor)(torch.ones(2, 2, requires_grad=True))


def test_a_function_that_returns_an_inference_tensor_as_it_is():
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    with torch.inference_mode():
        made = torch.ones(2)
        assert Same.apply(made, made).is_inference()
    assert Same.apply(made, made).is_inference()
    assert Same.apply(made, ones(2)).grad_fn is not None


# --- views ----------------------------------------------------------------------------------------------------


def test_what_is_computed_from_a_view_is_recorded_once_its_base_requires_grad():
    base = torch.ones(3)
    view = base[1:]
    base.requires_grad_()
    for result in (view * 2, view.diff(), view.view(-1), view[:1].exp()):
        assert result.requires_grad
        assert result.grad_fn is not None
    (view * 2).sum().backward()
    assert base.grad is None  # the graph has no edge from the view to its base
    with pytest.raises(AssertionError, match="Expected gradient function to be set"):
        torch.autograd.graph.get_gradient_edge(view)


def test_nothing_is_saved_for_a_view_whose_making_was_not_recorded():
    base, factor = ones(2), ones(2)
    with torch.no_grad():
        view = base.view(2)
    result = view * factor
    assert result.grad_fn.next_functions[0] == (None, 0)
    assert result.grad_fn._saved_other is None
    with torch.no_grad():
        factor.mul_(2)
    result.sum().backward()
    assert factor.grad.tolist() == [1.0, 1.0]
    assert base.grad is None


def test_a_function_of_a_view_whose_making_was_not_recorded():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    base = ones(3)
    with torch.no_grad():
        view = base[1:]
    result = Double.apply(view)
    assert result.requires_grad
    assert result.grad_fn.next_functions == ((None, 0),)
    result.sum().backward()
    assert base.grad is None


def test_a_transform_differentiates_by_a_view_whose_making_was_not_recorded():
    base = torch.tensor([0.5, -1.0], requires_grad=True)

    def function(x):
        return torch.func.grad(lambda y: (y * y * x.detach()).sum())(x).sum()

    with torch.no_grad():
        view = base[None]
        assert torch.func.grad(function)(view).tolist() == [[1.0, -2.0]]
    assert torch.func.grad(function)(view).tolist() == [[1.0, -2.0]]


def test_a_view_finds_the_history_that_its_base_has_got_since_the_last_change():
    base = torch.ones(2)
    view = base[0]
    base.fill_(3)
    assert view.grad_fn is None
    base.requires_grad_()
    assert not view.is_leaf
    assert view.grad_fn.name() == "AsStridedBackward0"


def test_telling_a_view_to_require_grad_does_not_ask_for_its_history():
    first, second = torch.ones(2).unbind()
    first._base.mul_(ones(2))
    assert first.requires_grad_(False) is first
    assert second.requires_grad_() is second
    with pytest.raises(RuntimeError, match="is the output of a function that returns multiple views"):
        second.is_leaf


def test_a_view_without_later_views_retains_nothing():
    base = ones(2)
    with torch.no_grad():
        view = base[:1]
        view.mul_(2)
    view.retain_grad()
    assert not view.retains_grad


def test_a_view_of_several_keeps_its_memory_where_it_cannot_be_set():
    part = torch.ones(2, 3).unbind()[0]
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        part.set_(ones(2))
    assert part.shape == (3,)


def test_a_tensor_that_a_function_marks_as_changed_loses_its_gradient():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    tensor = ones(2) * 1
    tensor.retain_grad()
    tensor.sum().backward(retain_graph=True)
    assert tensor.grad is not None
    Double.apply(tensor)
    assert tensor.grad is None


# --- writing a tensor onto itself -----------------------------------------------------------------------------

ORDER = torch.tensor([1, 0])


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.index_put_((ORDER,), x),
        lambda x: x.__setitem__(ORDER, x[:]),
        lambda x: x.index_copy_(0, ORDER, x),
        lambda x: x.index_add_(0, ORDER, x),
        lambda x: x.index_reduce_(0, ORDER, x, "mean"),
        lambda x: x.scatter_(0, ORDER, x),
        lambda x: x.scatter_add_(0, ORDER, x),
        lambda x: x.scatter_reduce_(0, ORDER, x, "sum"),
    ],
)
@pytest.mark.parametrize("recorded", [False, True])
def test_elements_cannot_be_scattered_over_themselves(write, recorded):
    x = torch.tensor([1.0, 2.0])
    if recorded:
        x = x.requires_grad_() * 1
    with pytest.raises(RuntimeError, match=ONE_PLACE):
        write(x)
    assert x.tolist() == [1.0, 2.0]
    assert x._version == 0


@pytest.mark.parametrize("calls", [1, 60])
def test_detached_tensors_cannot_be_written_to_and_read_at_one_place(calls):
    x = torch.arange(4.0)
    for _ in range(calls):
        with pytest.raises(RuntimeError, match=ONE_PLACE):
            x.index_add_(0, torch.tensor([0]), x[:1].detach())
        with pytest.raises(RuntimeError, match=ONE_PLACE):
            x[1:].detach().add_(x[:-1].detach())
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_an_index_cannot_be_what_is_written_to():
    index = torch.zeros(2, dtype=torch.int64)
    with pytest.raises(RuntimeError, match=ONE_PLACE):
        index.index_fill_(0, index, 1)
    with pytest.raises(RuntimeError, match=ONE_PLACE):
        index.scatter_(0, index, 1)


def test_the_same_elements_may_be_assigned_whatever_leading_ones_their_shape_has():
    x = torch.arange(3.0)
    x[:2] = x[None, :2]
    x[1] = x[1:2]
    x[...] = x[2]
    assert x.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(RuntimeError, match=ONE_PLACE):
        x[1:] = x[:2]


def test_a_part_of_another_tensor_is_assigned_and_counted():
    x, y, places = torch.zeros(3), torch.arange(4.0), torch.tensor([2, 0])
    x[places] = y[1:3]
    assert (x.tolist(), x._version) == ([2.0, 0.0, 1.0], 1)
    x[:2] = y[2:]
    assert (x.tolist(), x._version) == ([2.0, 3.0, 1.0], 2)
    x[places] = y.requires_grad_()[:2]
    assert x.requires_grad


# --- empty tensors, and other elements --------------------------------------------------------------------------


def test_an_index_into_nothing_is_out_of_bounds_also_where_nothing_is_found():
    with pytest.raises(IndexError, match="index is out of bounds for dimension with size 0"):
        torch.empty(0, 0)[:, [0, 1]]
    with pytest.raises(IndexError, match="index is out of bounds for dimension with size 0"):
        torch.empty(3, 0)[..., torch.tensor([[0], [1]])]
    assert torch.empty(2, 0)[[5]].shape == (1, 0)


def test_nothing_is_added_to_nothing():
    assert torch.empty(0, 3).index_add(0, torch.tensor([0]), torch.ones(1, 3)).shape == (0, 3)
    assert torch.empty(0, 3).index_add_(1, torch.tensor([7]), torch.ones(0, 1)).shape == (0, 3)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (lambda x: x[0, :3], r"self.size\(-1\) must be divisible by 2 to view Float as Double .* got 3"),
        (lambda x: x[:, ::2], r"self.stride\(-1\) must be 1 to view Float as Double .* got 2"),
        (lambda x: x[:, 1:3], r"self.storage_offset\(\) must be divisible by 2 to view Float as Double .* got 1"),
        (lambda x: x.view(-1)[:6].view(2, 3)[:, :2], r"self.stride\(0\) must be divisible by 2 .* got 3"),
    ],
)
def test_bytes_are_read_as_other_elements_only_where_those_could_lie(view, message):
    with pytest.raises(RuntimeError, match=message):
        view(torch.ones(2, 4)).view(torch.float64)


def test_pairs_are_complex_only_where_complex_numbers_could_lie():
    for pairs, message in (
        (torch.ones(3, 4)[:, 1:3], "storage_offset divisible by 2"),
        (torch.ones(3, 3)[:, :2], "stride divisible by 2 for all but last dimension"),
        (torch.ones(2, 3).T, "last dimension with stride 1"),
    ):
        with pytest.raises(RuntimeError, match=message):
            torch.view_as_complex(pairs)
    assert torch.view_as_complex(torch.ones(3, 3)[:1, :2]).shape == (1,)


def test_derivatives_of_remainders_of_booleans():
    divisor = torch.tensor([1.25, 0.75], requires_grad=True)
    flags = torch.tensor([True, True])
    assert torch.autograd.grad((flags % divisor).sum(), divisor)[0].tolist() == [0.0, -1.0]
    assert torch.autograd.grad(torch.fmod(flags, divisor).sum(), divisor)[0].tolist() == [0.0, -1.0]
    assert torch.autograd.grad(torch.atan2(flags, divisor).sum(), divisor)[0].shape == (2,)


def test_a_node_that_needs_nothing_it_could_have_saved_runs_again():
    leaf = ones(2)
    result = torch.remainder(leaf, torch.tensor([0.5, 0.75]))
    result.sum().backward()
    result.sum().backward()
    assert leaf.grad.tolist() == [2.0, 2.0]


# --- hooks ----------------------------------------------------------------------------------------------------


def test_hooks_of_a_leaf_that_was_frozen_since_run_and_find_no_gradient():
    seen = []
    leaf = ones(2)
    result = leaf * 2
    node = result.grad_fn.next_functions[0][0]
    node.register_prehook(lambda grads: seen.append(("before", grads[0].tolist())))
    leaf.register_post_accumulate_grad_hook(lambda tensor: seen.append(("accumulated", tensor.grad)))
    node.register_hook(lambda inputs, grads: seen.append(("after", grads[0].tolist())))
    leaf.requires_grad_(False)
    result.sum().backward()
    assert seen == [("before", [2.0, 2.0]), ("accumulated", None), ("after", [2.0, 2.0])]
    assert leaf.grad is None


@pytest.mark.parametrize("point", [torch.tensor(1.5), torch.tensor([1.5])])
def test_a_hook_may_change_the_gradient_of_one_element(point):
    leaf = point.clone().requires_grad_()
    leaf.register_hook(lambda grad: grad.mul_(2) and None)
    assert torch.autograd.grad(leaf.sum(), leaf)[0].sum().item() == 2
    leaf.sum().backward()
    assert leaf.grad.sum().item() == 2


def test_saved_tensor_hooks_within_a_batch_are_given_tensors_of_the_batch():
    points = torch.arange(6.0).view(2, 3).requires_grad_()

    def function(x):
        return torch.func.jvp(lambda x: x.softmax(-1), (x,), (x,))[1]

    with torch.autograd.graph.saved_tensors_hooks(lambda x: x.detach().clone(), lambda x: x):
        result = torch.func.vmap(function)(points)
    assert torch.allclose(result, torch.func.vmap(function)(points))


def test_hooks_after_a_node_are_given_gradients_that_are_asked_for():
    seen = []
    leaf = ones(2)
    part = leaf[1:]
    part.grad_fn.register_hook(lambda inputs, grads: seen.append((inputs, grads[0].tolist())))
    part.sum().backward(inputs=[part])
    assert seen == [((None,), [1.0])]


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda x: torch.nn.functional.layer_norm(x, (2,)), 1),
        (lambda x: x.max(1)[0], 1),
        (lambda x: x.sort()[0], 1),
        (lambda x: x.aminmax(dim=1)[0], 2),
        (lambda x: x.unbind()[0], 2),
        (lambda x: torch.nn.functional.group_norm(x, 1), 3),
    ],
)
def test_hooks_of_nodes_are_given_gradients_of_outputs_that_can_have_some(function, count):
    seen = []
    leaf = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    result = function(leaf)
    result.grad_fn.register_prehook(lambda grads: seen.append(len(grads)))
    result.grad_fn.register_hook(lambda inputs, grads: seen.append(len(grads)))
    result.sum().backward()
    assert seen == [count, count]
    assert len(result.grad_fn._input_metadata) == count


def test_hooks_of_a_custom_function_see_also_gradients_that_nobody_needs():
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, grad):
            return grad * 2, grad * 3

    seen = []
    result = Product.apply(ones(1), torch.ones(1))
    result.grad_fn.register_hook(lambda inputs, grads: seen.extend(inputs))
    result.sum().backward()
    assert [grad.item() for grad in seen] == [2.0, 3.0]


def test_anomaly_detection_within_a_batch():
    points = torch.tensor([[0.25], [-1.75]])

    def function(x):
        return (x.clone().mul_(x)).sum()

    with torch.autograd.set_detect_anomaly(True):
        grads = torch.func.vmap(torch.func.grad(function))(points)
    assert grads.tolist() == [[0.5], [-3.5]]


def test_a_node_whose_gradient_leads_nowhere_runs_where_anomalies_are_looked_for():
    leaf = torch.tensor(1.5, requires_grad=True)
    with torch.inference_mode():
        view = leaf.broadcast_to(leaf.shape)
    with torch.autograd.set_detect_anomaly(True):
        view.abs().sum().backward()
    assert leaf.grad is None
