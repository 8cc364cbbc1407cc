"""In-place changes of views: the history, the hooks and the tangents of tensors that share their memory."""

import io
import pickle
import warnings

import numpy
import pytest

import adjoint as torch
from adjoint.autograd import forward_ad
from adjoint.inspect.snapshot import snapshot


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        assert result.grad_fn is ctx
        return grad * result


@pytest.mark.parametrize("change", [torch.Tensor.exp_, Exp.apply], ids=["operator", "function"])
def test_a_gradient_that_leads_to_a_change_and_to_its_result_frees_the_operation_once(change):
    x = torch.zeros(2, requires_grad=True)
    y = x * 1
    change(y[0])
    (grad,) = torch.autograd.grad(y.sum().abs(), x, create_graph=True)
    for keep in (True, False):
        assert torch.autograd.grad(grad.sum().abs(), x, retain_graph=keep)[0].tolist() == [1, 0]
    with pytest.raises(RuntimeError, match="a second time"):
        torch.autograd.grad(grad.sum().abs(), x)


def test_a_freed_change_still_names_its_operation():
    x = torch.zeros(2, requires_grad=True)
    y = x * 1
    y[0].exp_()
    before = snapshot(y)
    y.sum().backward()
    after = snapshot(y)
    assert [box.name for box in after.operations] == [box.name for box in before.operations]
    assert [saved.state for box in before.nodes for saved in box.saved if saved.name == "result"] == ["ok"]
    assert [saved.state for box in after.nodes for saved in box.saved if saved.name == "result"] == ["freed"]


def test_a_hook_put_on_a_view_that_has_followed_its_base_runs():
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    view, seen = y[:1], []
    view.register_hook(lambda grad: seen.append("old value"))
    y.mul_(3)
    assert view.grad_fn.name() == "AsStridedBackward0"
    view.register_hook(lambda grad: seen.append(grad.tolist()))
    (view * 5).sum().backward()
    assert seen == [[5]]


def test_sequence_numbers_choose_among_nodes_that_are_ready_and_change_no_gradient():
    x = torch.ones(2, requires_grad=True)
    a = x * 2
    b = a * 3
    c = a + b
    order = []
    for name, tensor in (("a", a), ("b", b), ("c", c)):
        tensor.register_hook(lambda grad, name=name: order.append(name))
    a.grad_fn._set_sequence_nr(10**9)
    b.grad_fn._set_sequence_nr(0)
    c.sum().backward()
    assert order == ["c", "b", "a"]
    assert x.grad.tolist() == [8, 8]
    with pytest.raises(OverflowError, match="can't convert negative int to unsigned"):
        a.grad_fn._set_sequence_nr(-1)


def test_a_post_accumulate_hook_returns_nothing():
    x = torch.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda leaf: leaf)
    x.sum().backward()
    x.register_post_accumulate_grad_hook(lambda leaf: leaf * 2)
    with pytest.raises(RuntimeError, match="post accumulate grad hooks should return None"):
        x.sum().backward()


def test_a_checkpoint_recomputes_as_a_whole_within_itself():
    checkpoint, runs = torch.utils.checkpoint, []

    def inner(x):
        runs.append("inner")
        return x.sin().exp()

    def outer(x):
        with torch.enable_grad():
            y = x.detach().requires_grad_()
            (grad,) = torch.autograd.grad(checkpoint.checkpoint(inner, y, use_reentrant=False).sum(), y)
        return x * grad

    x = torch.zeros(2, requires_grad=True)
    with checkpoint.set_checkpoint_early_stop(False):
        y = checkpoint.checkpoint(outer, x, use_reentrant=False)
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]
    assert len(runs) > 2


def test_the_tangent_of_a_view_is_laid_out_as_the_view():
    class Rows(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def jvp(ctx, tangent):
            return tangent[0].expand(2, 3)

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(2, 3), torch.ones(2, 3))
        with pytest.raises(RuntimeError, match="to have the tangent have the same layout as primal"):
            Rows.apply(dual)


def test_pairs_of_a_changed_complex_tensor_are_read_as_they_were():
    x = torch.tensor([1 + 2j, 3j], requires_grad=True)
    y = x * 1
    pairs = torch.view_as_real(y.conj().resolve_conj())
    real = torch.view_as_real(y)
    real.mul_(2)
    assert real.grad_fn.name() == "ViewAsRealBackward0"
    assert real.grad_fn.next_functions[0][0] is y.grad_fn
    assert pairs.grad_fn.name() == "ViewAsRealBackward0"
    (real * torch.tensor([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [2 + 20j, 2 + 20j]


def _loaded(tensor):
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    return torch.load(file)


REPEATED = {
    "expanded": lambda: torch.ones(1).expand(3),
    "detached": lambda: torch.ones(1).expand(3).detach(),
    "data": lambda: torch.ones(1).expand(3).data,
    "data of a parameter": lambda: torch.nn.Parameter(torch.ones(1).expand(3)).data,
    "set": lambda: torch.empty(0).set_(torch.ones(1).untyped_storage(), 0, (3,), (0,)),
    "empty": lambda: torch.empty_strided((3,), (0,)),
    "unpickled": lambda: pickle.loads(pickle.dumps(torch.ones(1).expand(3))),
    "loaded": lambda: _loaded(torch.ones(1).expand(3)),
    "of NumPy": lambda: torch.from_numpy(numpy.lib.stride_tricks.as_strided(numpy.ones(1, numpy.float32), (3,), (0,))),
}


@pytest.mark.parametrize("made", REPEATED)
@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.mul_(2),
        lambda x: x.add_(torch.ones(3)),
        lambda x: x.add_(x),
        lambda x: x.exp_(),
        lambda x: x.relu_(),
        lambda x: x.copy_(torch.ones(3)),
        lambda x: x.clamp_(0, 1),
        lambda x: x.uniform_(),
    ],
)
def test_elements_in_one_place_are_not_changed(made, change):
    with pytest.raises(
        RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"
    ):
        change(REPEATED[made]())


@pytest.mark.parametrize("change", [lambda g: g.zero_(), lambda g: g.fill_(2.0), lambda g: g.masked_fill_(g > 0, 3.0)])
@pytest.mark.parametrize("size", [3, 2000])
def test_the_gradient_of_a_sum_can_be_filled_and_the_next_one_is_ones(change, size):
    x = torch.ones(size, requires_grad=True)
    for _ in range(2):
        (grad,) = torch.autograd.grad(x.sum(), x)
        assert grad.unique().tolist() == [1.0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the warning about writes to expanded tensors
            change(grad)
        assert len(grad.unique()) == 1
        assert grad.unique().item() != 1.0
