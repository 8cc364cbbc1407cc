"""The device `meta`, whose tensors have no elements, and the default device of new tensors."""

import copy
import io
import pickle
import threading

import pytest

import adjoint as torch
from adjoint.tape import modes

nn = torch.nn


def meta(*shape, **names):
    return torch.empty(*shape, device="meta", **names)


@pytest.mark.thorough
def test_operators_give_shapes():
    x = meta(2, 3)
    assert repr(x) == "tensor(..., device='meta', size=(2, 3))"
    assert x.device == torch.device("meta") and x.is_meta and not x.is_cpu
    assert (x @ x.t()).shape == (2, 2) and (x @ x.t()).is_meta
    assert (x.double() * 2).sum(1, keepdim=True).shape == (2, 1)
    assert torch.linalg.inv(meta(4, 3, 3)).shape == (4, 3, 3)
    assert x[:, 1:].t()._base is not None and x[:, 1:].t().stride() == (1, 3)


def test_changes_leave_no_elements():
    x = meta(2, 3)
    x.add_(1).uniform_()
    x[0] = 5.0
    assert x.is_meta and x._version == 3
    x.copy_(torch.ones(2, 3))
    with pytest.raises(RuntimeError):
        x.add_(meta(4))
    assert x._version == 4


@pytest.mark.parametrize(
    ("use", "error", "words"),
    [
        (lambda: meta(2).tolist(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda: meta(2).cpu(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda: meta(2).to("cpu"), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda: torch.ones(2).copy_(meta(2)), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda: meta(1).item(), RuntimeError, "Tensor.item() cannot be called on meta tensors"),
        (lambda: bool(meta(())), RuntimeError, "Tensor.item() cannot be called on meta tensors"),
        (lambda: meta(2).numpy(), TypeError, "can't convert meta device type tensor to numpy."),
        (lambda: meta(2) + torch.ones(2), RuntimeError, "Tensor on device cpu is not on the expected device meta!"),
        (
            lambda: meta(2).nonzero(),
            NotImplementedError,
            "aten::nonzero: attempted to run this operator with Meta tensors",
        ),
        (lambda: meta(2)[meta(2) > 0], NotImplementedError, "aten::nonzero: attempted to run this operator with Meta"),
        (lambda: meta(2).unique(), NotImplementedError, "aten::unique"),
    ],
)
def test_operations_that_need_elements_are_refused(use, error, words):
    with pytest.raises(error) as caught:
        use()
    assert str(caught.value).startswith(words)


def test_backward():
    layer = nn.Linear(3, 4, device="meta")
    for _ in range(2):
        layer(meta(5, 3)).relu().sum().backward()
    assert layer.weight.grad.is_meta and layer.weight.grad.shape == (4, 3)
    w = meta(3, requires_grad=True)
    (grad,) = torch.autograd.grad((w * w).exp().sum(), w, create_graph=True)
    (second,) = torch.autograd.grad(grad.sum(), w)
    assert second.is_meta and not second.requires_grad
    x = torch.ones(2, requires_grad=True)
    (3 * x).sum().backward()  # ordinary tensors work as before
    assert x.grad.tolist() == [3, 3]


def leaf(*shape):
    return meta(*shape, dtype=torch.float64, requires_grad=True)


def _write_view(a, b):
    result = a * 1
    result.t()[1].mul_(b)
    return result


FUNCTIONS = {
    "causal attention": (
        lambda q, k, v: nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        ((2, 3, 4),) * 3,
    ),
    "an operand that is changed": (_write_view, ((3, 4), (3,))),
    "addcmul_": (lambda a, b, c: (a * 2).addcmul_(b, c), ((3, 4), (4,), (3, 1))),
    "bags": (lambda w: nn.functional.embedding_bag(torch.zeros(2, 3, dtype=int, device=w.device), w), ((4, 5),)),
    "bags of any length": (
        lambda w: nn.functional.embedding_bag(meta(4, dtype=int), w, meta(2, dtype=int), mode="mean"),
        ((4, 5),),
    ),
    "embedding": (lambda w: nn.functional.embedding(meta(3, dtype=int), w), ((4, 5),)),
    "index": (lambda a: a[meta(3, dtype=int)], ((3, 4),)),
    "index_put": (lambda a, b: a.index_put((meta(3, dtype=int),), b), ((3, 4), (3, 4))),
    "take": (lambda a: a.take(meta(3, dtype=int)), ((3, 4),)),
    "gather": (lambda a: a.gather(1, meta(3, 2, dtype=int)), ((3, 4),)),
    "dropout": (lambda a: nn.functional.dropout(a), ((3, 4),)),
    "windows of any place": (lambda a: nn.functional.fractional_max_pool2d(a, 2, output_size=2), ((1, 1, 5, 5),)),
    "a new tensor beside one": (lambda a: a + torch.ones(a.shape, device=a.device), ((3, 4),)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_and_batches(name):
    function, shapes = FUNCTIONS[name]
    inputs = [leaf(*shape) for shape in shapes]
    result = function(*inputs)
    grads = torch.autograd.grad(result.sum(), inputs)
    assert [grad.shape for grad in grads] == [one.shape for one in inputs] and all(grad.is_meta for grad in grads)
    primal, tangent = torch.func.jvp(function, tuple(inputs), tuple(torch.empty_like(one) for one in inputs))
    assert primal.is_meta and tangent.is_meta and tangent.shape == result.shape
    batched = torch.vmap(function, randomness="different")(*(torch.stack((one, one)) for one in inputs))
    assert batched.is_meta and batched.shape == (2, *result.shape)


def test_a_model_without_elements_is_the_form_of_an_ensemble():
    nets = [nn.Sequential(nn.Linear(2, 3), nn.Tanh()) for _ in range(3)]
    params, buffers = torch.func.stack_module_state(nets)
    base = copy.deepcopy(nets[0]).to("meta")
    assert all(param.is_meta and param.requires_grad for param in base.parameters())
    x = torch.rand(5, 2)
    found = torch.vmap(lambda p, b: torch.func.functional_call(base, (p, b), (x,)))(params, buffers)
    torch.testing.assert_close(found, torch.stack([net(x) for net in nets]))


def test_nothing_is_drawn():
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    nn.Linear(2, 3, device="meta")
    torch.randn(3, device="meta"), torch.rand_like(meta(2)), torch.randint(3, (2,), device="meta")
    nn.functional.dropout(meta(3))
    assert torch.equal(torch.rand(1), expected)


def test_loading_into_a_model_without_elements():
    layer, full = nn.Linear(3, 4, device="meta"), nn.Linear(3, 4)
    with (
        pytest.warns(UserWarning, match=r"for weight: copying from a non-meta parameter .* which is a no-op"),
        pytest.warns(UserWarning, match="for bias: "),
    ):
        layer.load_state_dict(full.state_dict())
    assert layer.weight.is_meta
    layer.load_state_dict(full.state_dict(), assign=True)
    assert torch.equal(layer.weight, full.weight)
    empty = nn.Linear(3, 4, device="meta").to_empty(device="cpu")
    assert not empty.weight.is_meta and empty.weight.shape == (4, 3)
    with pytest.raises(NotImplementedError, match=r"Please use torch.nn.Module.to_empty\(\) instead"):
        nn.Linear(3, 4, device="meta").to("cpu")


def test_copies_and_files():
    x = meta(2, 3, dtype=torch.float64).t()
    file = io.BytesIO()
    torch.save([x, nn.Parameter(meta(2))], file)
    loaded, parameter = torch.load(io.BytesIO(file.getvalue()))
    assert parameter.is_meta and parameter.requires_grad
    for other in (loaded, copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
        assert (other.is_meta, other.shape, other.stride(), other.dtype) == (True, (3, 2), (1, 3), torch.float64)


def test_views_outlive_their_base():
    x = meta(2, 3)
    view = x.t()
    del x
    assert view.is_meta and view.shape == (3, 2) and not modes.FLAGS.special


def test_the_cpu_as_default_device_is_no_mode():
    torch.set_default_device("cpu")
    assert torch.get_default_device() == torch.device("cpu") and not modes.FLAGS.special


def test_where_new_tensors_are_made():
    plain = torch.ones(2)
    with torch.device("meta") as place:
        assert place == torch.get_default_device() == torch.zeros(2).device == nn.Linear(2, 3).weight.device
        assert plain.new_zeros(1).is_cpu and torch.zeros_like(plain).is_cpu and torch.ones(1, device="cpu").is_cpu
        with torch.device("cpu"):
            assert torch.tensor(1.0).is_cpu
        seen = []
        thread = threading.Thread(target=lambda: seen.append(torch.ones(1).device.type))
        thread.start()
        thread.join()
        assert seen == ["cpu"] and torch.tensor(1.0).is_meta
    assert torch.tensor(1.0).is_cpu
    torch.set_default_device("meta")
    try:
        assert torch.arange(3).is_meta
    finally:
        torch.set_default_device(None)
    assert torch.arange(3).is_cpu and not modes.STATE.places
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        torch.set_default_device("cuda")


def test_an_error_within_restores_the_place():
    with pytest.raises(ZeroDivisionError), torch.device("meta"):
        raise ZeroDivisionError
    assert torch.ones(1).is_cpu
