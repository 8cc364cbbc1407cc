"""The device `meta`, whose tensors have no elements, and the default device of new tensors."""

import copy
import io
import pickle
import sys
import threading
import time

import pytest

import adjoint as torch
from adjoint._runtime.platform import mmap
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


LARGE = {
    "products": lambda: linear(meta(9000, 8000), meta(7000, 8000), meta(7000)),
    "a convolution": lambda: torch.conv2d(leaf32(60, 240, 127, 128), leaf32(500, 24, 3, 3), stride=2, padding=1, groups=10),
    "a patch embedding": lambda: torch.conv2d(leaf32(64, 3, 224, 224), leaf32(768, 3, 16, 16), stride=16),
    "windows": lambda: nn.functional.max_pool2d(leaf32(64, 256, 129, 128), 3, 2, 1),
    "norms": lambda: nn.functional.group_norm(nn.functional.layer_norm(leaf32(2000, 64, 3000), (3000,)), 32),
    "attention": lambda: nn.functional.scaled_dot_product_attention(*[leaf32(8, 16, 4096, 128)] * 3, is_causal=True),
    "columns": lambda: leaf32(300, 20000).t() + 1,
    "a sort": lambda: leaf32(20000, 20000).sort(0).values,
    "a choice": lambda: leaf32(20000, 20000).topk(500).values,
    "parts": lambda: torch.cat([leaf32(20000, 20000)[100:15000:3], leaf32(300, 20000)]),
    "indices": lambda: leaf32(20000, 2000).gather(1, meta(20000, 100, dtype=int)),
    "a Fourier transform": lambda: torch.fft.rfft(leaf32(20000, 2001)).real,
    "a decomposition": lambda: torch.linalg.svd(leaf32(3000, 2000), full_matrices=False).S,
    "a product of sizes": lambda: torch.kron(leaf32(2000, 200), leaf32(300, 20)),
    "a copy in another order": lambda: leaf32(2000, 300, 400).transpose(0, 1).reshape(-1, 400),
    "a loss": lambda: nn.functional.cross_entropy(leaf32(64, 2100, 512, 51), meta(64, 512, 51, dtype=int), reduction="none"),
    "pixels": lambda: nn.functional.interpolate(leaf32(64, 256, 128, 130), scale_factor=1.5),
    "padding": lambda: nn.functional.pad(leaf32(64, 256, 128, 128), (1, 2, 300, 4)),
    "recurrence": lambda: nn.LSTM(3000, 2000, device="meta")(meta(3, 640, 3000))[0],
}  # fmt: skip

SHAPES = {
    "products": (9000, 7000), "a convolution": (60, 500, 64, 64), "a patch embedding": (64, 768, 14, 14),
    "windows": (64, 256, 65, 64), "norms": (2000, 64, 3000), "attention": (8, 16, 4096, 128), "columns": (20000, 300),
    "a sort": (20000, 20000), "a choice": (20000, 500), "parts": (5267, 20000), "indices": (20000, 100),
    "a Fourier transform": (20000, 1001), "a decomposition": (2000,), "a product of sizes": (600000, 4000),
    "a copy in another order": (600000, 400), "a loss": (64, 512, 51), "pixels": (64, 256, 192, 195),
    "padding": (64, 256, 432, 131), "recurrence": (3, 640, 2000),
}  # fmt: skip


def leaf32(*shape):
    return meta(*shape, requires_grad=True)


def linear(x, weight, bias):
    return nn.functional.linear(x, weight.requires_grad_(), bias.requires_grad_())


@pytest.mark.parametrize("name", LARGE)
def test_large_results_take_neither_time_nor_memory(name):
    resource = pytest.importorskip("resource")
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    result = LARGE[name]()
    assert tuple(result.shape) == SHAPES[name] and result.is_meta
    result.sum().backward()
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * (
        1 if sys.platform == "darwin" else 1024
    ) < 1 << 28
    assert time.process_time() - start < 20  # the products alone would take minutes


def test_columns_keep_the_order_of_their_elements():
    assert LARGE["columns"]().stride() == (1, 20000)
    assert meta(64, 256, 128, 128, memory_format=torch.channels_last).exp().stride() == (4194304, 1, 32768, 256)


CREATED = {
    "empty": lambda n: meta(n, n),
    "ones": lambda n: torch.ones(n, n, device="meta"),
    "full": lambda n: torch.full((n, n), 2, device="meta"),
    "randn": lambda n: torch.randn(n, n, device="meta"),
    "randint": lambda n: torch.randint(3, (n, n), device="meta"),
    "arange": lambda n: torch.arange(n * n, device="meta").view(n, n),
    "linspace": lambda n: torch.linspace(0, 1, n * n, device="meta").view(n, n),
    "eye": lambda n: torch.eye(n, device="meta"),
    "randperm": lambda n: torch.randperm(n * n, device="meta").view(n, n),
    "ones_like": lambda n: torch.ones_like(meta(n, n)),
    "rand_like": lambda n: torch.rand_like(meta(n, n)),
    "new_full": lambda n: meta(1).new_full((n, n), 2),
    "empty_strided": lambda n: torch.empty_strided((n, n), (2 * n, 1), device="meta"),
    "a layer": lambda n: nn.Linear(n, n, device="meta").weight,
    "a copy": lambda n: copy.deepcopy(meta(n, n)).clone().double(),
}


@pytest.mark.parametrize("name", CREATED)
@pytest.mark.skipif(not mmap, reason="the platform cannot reserve addresses")
def test_more_elements_than_memory(name):
    assert CREATED[name](200_000).shape == (200_000, 200_000)


def test_rules_with_remainders_and_masks():
    for size in range(2000, 2008):
        x = meta(size, 40)
        assert nn.functional.max_pool1d(x.t(), 5, 4, padding=1, ceil_mode=True).shape == (40, -(-(size - 3) // 4) + 1)
        assert x[torch.arange(size) % 3 == 0].shape == (-(-size // 3), 40)
        assert x.repeat(30, 2).shape == (30 * size, 80)
        assert torch.diagonal_copy(x, -30).shape == (40,) and torch.diagonal_copy(x, 30).shape == (10,)
        assert x.topk(1500, 0).values.shape == (1500, 40)
    with pytest.raises(RuntimeError, match=r"selected index k out of range"):
        meta(1000, 20).topk(2000, 0)


def test_random_operators_draw_nothing():
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    p = meta(3, 4)
    torch.bernoulli(p), p.multinomial(2), torch.randn_like(p), torch.normal(p, p), torch.poisson(p), p.bernoulli()
    torch.native_dropout(p, 0.5, True), nn.functional.rrelu(p, training=True)
    p.bernoulli_(), p.exponential_(), p.random_(), nn.functional.gumbel_softmax(p), torch.binomial(p, p)
    nn.functional.alpha_dropout(p, training=True), torch.randperm(5, device="meta")
    assert torch.equal(torch.rand(1), expected)


def test_products_of_tensors_in_different_places_have_no_elements():
    layer = nn.Linear(3, 5, bias=False, device="meta")
    assert layer(torch.ones(2, 3)).is_meta and layer(torch.ones(2, 3)).shape == (2, 5)
    assert (torch.ones(4, 3) @ layer.weight.t()).shape == (4, 5)


def test_allclose_names_the_reason_why_it_has_no_answer():
    with pytest.raises(RuntimeError, match=r"item\(\) cannot be called on meta"):
        torch.allclose(meta(2), meta(2))
    with pytest.raises(NotImplementedError, match=r"'aten::eq\.Tensor' with arguments from the 'SparseCPU'"):
        torch.allclose(torch.eye(2).to_sparse(), torch.eye(2))
    with pytest.raises(RuntimeError, match=r"vmap over torch\.allclose"):
        torch.vmap(lambda x: torch.allclose(x, x))(torch.ones(2, 2))
