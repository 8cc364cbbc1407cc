"""Sparse gradients in sums, hooks, views, custom functions, modes, `.grad`, clipping and optimizers."""

import pytest

import adjoint as torch
from adjoint.autograd.gradcheck import GradcheckError
from adjoint.nn import functional

DENSE = [[0.0, 2.0], [3.0, 0.0], [0.0, 0.0]]


def sparse(*dims, **options):
    return torch.tensor(DENSE, **options).to_sparse(*dims)


def leaf(**options):
    return (torch.arange(6.0).reshape(3, 2) / 10 + 0.1).to(**options).requires_grad_()


def taken(x, rows=(0, 2, 0)):
    """Return rows of a table by a lookup. The gradient of the table is sparse."""
    return functional.embedding(torch.tensor(rows), x, sparse=True)


class Doubled(torch.autograd.Function):
    """Twice the input.

    The backward of this function records the layout of the incoming gradient, and returns a sparse gradient.
    """

    seen = []

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        Doubled.seen.append(grad.layout)
        return (grad.to_dense() * 2).to_sparse()


def changed(x):
    y = x * 1
    y[0] = 5.0
    y[1].mul_(3)
    return y


def saved_by_hooks(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda saved: saved.clone(), lambda saved: saved):
        return x.softmax(1).exp()


def with_hook(x):
    y = x.softmax(1)
    y.register_hook(lambda grad: grad.to_dense().to_sparse() if grad.is_sparse else grad.clone())
    return y


def checkpointed(x, reentrant=False):
    return torch.utils.checkpoint.checkpoint(lambda t: t.softmax(1).exp(), x, use_reentrant=reentrant)


PROGRAMS = {
    "softmax": lambda x: x.softmax(1),
    "parts": lambda x: torch.cat([x[2:], x[:2]]),
    "written to": changed,
    "saved by hooks": saved_by_hooks,
    "hook": with_hook,
    "custom function": lambda x: Doubled.apply(x.softmax(1)),
    "checkpoint": checkpointed,
    "reentrant checkpoint": lambda x: checkpointed(x, True),
    "broadcast": lambda x: x[:1] + x,
    "another dtype": lambda x: x.double().softmax(1).float(),
    "embedding of an expression": lambda x: taken(x.softmax(1), (2, 0, 0)),
    "bag": lambda x: functional.embedding_bag(torch.tensor([[2, 1], [0, 0], [1, 0]]), x * x, mode="mean", sparse=True),
    "used twice": lambda x: taken(x * x) + x.softmax(1) + taken(x, (1, 1, 2)),
}


@pytest.mark.parametrize("dims", [(), (1,)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_the_dense_gradient(name, dims):
    function, expected, found = PROGRAMS[name], leaf(), leaf()
    function(expected).backward(torch.tensor(DENSE))
    function(found).backward(sparse(*dims))
    torch.testing.assert_close(found.grad.to_dense(), expected.grad.to_dense())


@pytest.mark.parametrize(
    "name", ["softmax", "saved by hooks", "hook", "checkpoint", "another dtype", "bag", "used twice"]
)
def test_second_derivatives(name):
    results = []
    for grad in (torch.tensor(DENSE), sparse()):
        x = leaf()
        (first,) = torch.autograd.grad(PROGRAMS[name](x), x, grad, create_graph=True)
        first = first.to_dense()
        results.append((first, *torch.autograd.grad(first.square().sum(), x)))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("function", "layout"),
    [
        (lambda x: x * 2, torch.sparse_coo),
        (lambda x: x * leaf().detach(), torch.sparse_coo),
        (lambda x: -x.exp() / 2, torch.sparse_coo),
        (lambda x: x.t().permute(1, 0), torch.sparse_coo),
        (lambda x: torch.stack([x, x])[0], torch.strided),
        (lambda x: x.softmax(1), torch.strided),
    ],
)
def test_gradients_stay_sparse_where_operators_have_sparse_kernels(function, layout):
    x = leaf()
    function(x).backward(sparse())
    assert x.grad.layout is layout


def test_gradients_that_users_see_are_sparse():
    x = leaf()
    y = x * 2
    z = y.softmax(1)
    seen = []
    z.retain_grad()
    z.register_hook(lambda grad: seen.append(grad.layout))
    z.grad_fn.register_prehook(lambda grads: seen.append(grads[0].layout))
    Doubled.seen.clear()
    w = Doubled.apply(z)
    assert torch.autograd.grad(w, [w, z], sparse(), retain_graph=True)[1].layout is torch.sparse_coo
    w.backward(sparse())
    assert seen == [torch.sparse_coo] * 3
    assert Doubled.seen == [torch.sparse_coo] * 2
    assert z.grad.to_dense().equal(4 * torch.tensor(DENSE))  # the sum of two backward passes


@pytest.mark.parametrize("first", [torch.tensor(DENSE), sparse(), sparse(1), sparse().to_sparse_csr()])
@pytest.mark.parametrize("second", [torch.tensor(DENSE), sparse(), sparse(1), sparse().to_sparse_csr()])
def test_gradients_accumulate(first, second):
    x = leaf()
    x.backward(first)
    dims = {each.sparse_dim() for each in (first, second) if each.layout is not torch.strided}
    if len(dims) > 1:
        with pytest.raises(
            RuntimeError, match=r"to have same density, but 'self' has . sparse dimensions while 'other' has"
        ):
            x.backward(second)
        return
    x.backward(second)
    assert x.grad.to_dense().equal(2 * torch.tensor(DENSE))


def test_complex_gradients_of_real_tensors():
    for create_graph in (False, True):
        x = leaf()
        y = x * torch.tensor(1 + 2j)
        (grad,) = torch.autograd.grad(y, x, sparse() * (1 + 1j), create_graph=create_graph)
        assert grad.is_sparse
        assert grad.to_dense().equal(3 * torch.tensor(DENSE))


def test_nodes_called_alone():
    node = leaf().softmax(1).grad_fn
    expected = node(torch.tensor(DENSE))
    assert node(sparse()).equal(expected)
    with torch.no_grad():
        assert node(sparse()).equal(expected)


@pytest.mark.filterwarnings("ignore:Anomaly")
def test_anomaly_detection_reads_what_is_stored():
    x = torch.tensor([[-1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    nan = pytest.raises(RuntimeError, match="returned nan values")
    with torch.autograd.detect_anomaly(), pytest.warns(UserWarning, match="Error detected"), nan:
        (x.sqrt() * 1).backward(torch.eye(2).to_sparse())


def test_a_sparse_operand_written_to_a_dense_tensor():
    x, s = leaf(), sparse().requires_grad_()
    y = x * 1
    y.mul_(s)
    assert y.equal(x * torch.tensor(DENSE))
    y.backward(torch.ones(3, 2))
    assert x.grad.to_dense().equal(torch.tensor(DENSE))
    torch.testing.assert_close(s.grad.to_dense(), x.detach())


def scaled_step(kind, overflow):
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    weight = torch.nn.Parameter(torch.zeros(3, 2))
    optimizer = kind([weight], lr=0.5)
    factors = torch.tensor([[1.0, 2.0], [float("inf") if overflow else 3.0, 4.0], [5.0, 6.0]])
    scaler.scale((taken(weight) * factors).sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    return weight, scaler.get_scale()


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adagrad, torch.optim.SparseAdam])
def test_scaled_gradients(kind):
    weight, scale = scaled_step(kind, overflow=False)
    assert weight.grad.to_dense().equal(torch.tensor([[6.0, 8.0], [0.0, 0.0], [3.0, 4.0]]))
    assert (weight[0] < 0).all()
    assert scale == 4
    weight, scale = scaled_step(kind, overflow=True)
    assert not weight.any()
    assert scale == 2


def test_elements_that_overflow_together_are_noticed():
    weight = torch.nn.Parameter(torch.zeros(2, 1))
    optimizer, scaler = torch.optim.SGD([weight], lr=1.0), torch.amp.GradScaler("cpu", init_scale=1.0)
    weight.grad = torch.sparse_coo_tensor([[0, 0]], [[3e38], [3e38]], (2, 1))
    scaler.scale(torch.ones(()))
    scaler.step(optimizer)
    scaler.update()
    assert not weight.any()
    assert scaler.get_scale() == 0.5


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("dims", [(), (1,)])
def test_clipping(norm_type, dims):
    sparsely, densely = torch.nn.Parameter(torch.zeros(3, 2)), torch.nn.Parameter(torch.zeros(3, 2))
    sparsely.grad, densely.grad = sparse(*dims), torch.tensor(DENSE)
    clip = torch.nn.utils.clip_grad_norm_
    torch.testing.assert_close(clip(sparsely, 1.0, norm_type), clip(densely, 1.0, norm_type))
    assert sparsely.grad.is_sparse
    torch.testing.assert_close(sparsely.grad.to_dense(), densely.grad)


@pytest.mark.parametrize("size", [3, 700])
@pytest.mark.parametrize("kind", ["SGD", "Adagrad", "LBFGS"])
def test_steps_are_those_of_the_dense_gradient(kind, size):
    expected = two_steps(kind, torch.zeros(size, size))
    torch.testing.assert_close(two_steps(kind, torch.zeros(size, size).to_sparse()), expected)


def two_steps(kind, grad):
    """Return a weight after two steps with gradients of the layout of `grad`."""
    weight = torch.nn.Parameter(torch.ones(grad.shape))
    optimizer = getattr(torch.optim, kind)([weight], lr=0.5)
    elements = torch.sparse_coo_tensor([[1, 1], [0, 1]], [2.0, -3.0], grad.shape)

    def closure():
        weight.grad = grad + elements
        return torch.ones(())

    for _ in range(2):
        closure()
        optimizer.step(closure) if kind == "LBFGS" else optimizer.step()
    return weight.detach()


@pytest.mark.parametrize("kind", "Adam AdamW Adamax NAdam RAdam RMSprop Rprop ASGD Adadelta Adafactor Muon".split())
def test_optimizers_that_refuse_sparse_gradients(kind):
    weight = torch.nn.Parameter(torch.zeros(3, 2))
    weight.grad = sparse()
    with pytest.raises(RuntimeError, match=f"{'Adam' if kind == 'AdamW' else kind} does not support sparse gradients"):
        getattr(torch.optim, kind)([weight]).step()


def source(layout, elements=((0.0, 1.5, 0.0), (2.0, 0.0, -1.0))):
    x = torch.tensor(elements, dtype=torch.float64)
    options = ((1, 1),) if layout.startswith("bs") else ()
    return getattr(x, f"to_sparse_{layout}")(*options).detach().requires_grad_()


CHECKED = {
    "to_dense": (lambda x: x.to_dense(), {True}),
    "to_dense, unmasked": (lambda x: x.to_dense(masked_grad=False), {False}),
    "product": (lambda x: torch.sparse.mm(x, torch.ones(3, 2, dtype=torch.float64)), {True}),
    "matmul": (lambda x: x @ torch.ones(3, 2, dtype=torch.float64), {False}),
    "square": (lambda x: x.to_dense().square(), {True, False}),
}


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "bsc"])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("name", CHECKED)
def test_gradcheck_of_sparse_inputs(name, masked, layout):
    function, right = CHECKED[name]
    check = torch.autograd.gradcheck
    found = check(function, source(layout), masked=masked, raise_exception=False)
    assert found is (masked in right)
    assert check(function, source(layout), masked=masked, fast_mode=True)
    assert torch.sparse.as_sparse_gradcheck(check)(function, source(layout), masked=masked)


def test_gradcheck_finds_wrong_gradients_of_sparse_inputs():
    wrong = [lambda x: x.to_dense() + x.detach().to_dense(), lambda x: (x.detach() * 2).to_dense() + 0 * x.to_dense()]
    for check in (torch.autograd.gradcheck, torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)):
        for function in wrong:
            for options in ({"masked": True}, {"masked": True, "fast_mode": True}):
                with pytest.raises(GradcheckError, match="Jacobian mismatch"):
                    check(function, source("coo"), **options)


def test_gradcheck_of_sparse_results():
    with pytest.raises(ValueError, match="Sparse output is not supported at gradcheck yet"):
        torch.autograd.gradcheck(lambda x: x * 2, source("coo"))
    assert torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)(lambda x: [x * 2, x.t()], (source("coo"),))


@pytest.mark.parametrize(
    ("first", "second", "stays"), [("coo", "coo", True), ("coo", None, False), (None, "coo", True)]
)
def test_who_holds_a_sparse_gradient_keeps_it_sparse(first, second, stays):
    def gradient(layout):
        dense = torch.tensor([1.0, 0.0, 2.0])
        return dense if layout is None else dense.to_sparse()

    x = torch.ones(3, requires_grad=True)
    x.grad = held = gradient(first)
    x.backward(gradient(second))
    assert (x.grad is held) == stays
    assert held.is_sparse == (first is not None)
    assert x.grad.to_dense().tolist() == [2, 0, 4]


@pytest.mark.parametrize(
    ("size", "places"), [((4,), ()), ((), (2,)), ((), ()), ((), (0,)), ((4,), (3,)), ((4, 2), (3, 1))]
)
def test_sparse_gradients_of_gathered_elements_of_few_dimensions(size, places):
    grads = []
    for sparse in (False, True):
        x = torch.arange(8.0)[: torch.Size(size).numel()].reshape(size).requires_grad_()
        index = torch.zeros(places, dtype=torch.int64)
        out = torch.gather(x, 0, index, sparse_grad=sparse)
        out.backward(torch.arange(1.0, 1.0 + out.numel()).reshape(out.shape))
        assert x.grad.is_sparse == sparse
        grads.append(x.grad.to_dense())
    assert torch.equal(*grads)


def test_embedding_bag_takes_its_arguments_in_the_former_order():
    table, offsets = torch.arange(12.0).reshape(4, 3).requires_grad_(), torch.tensor([0, 2])
    index = torch.tensor([1, 2, 2, 3])
    with pytest.warns(UserWarning, match="Argument order of nn.functional.embedding_bag was changed"):
        former = torch.nn.functional.embedding_bag(table, index, offsets, sparse=True)
    assert torch.equal(former, torch.nn.functional.embedding_bag(index, table, offsets))
    former.sum().backward()
    assert table.grad.is_sparse


@pytest.mark.parametrize("layout", ["bsr", "bsc"])
def test_one_size_of_blocks_is_that_of_square_blocks(layout):
    blocks = getattr(torch.eye(4), f"to_sparse_{layout}")
    assert torch.equal(blocks(2).values(), blocks((2, 2)).values())
    whole = torch.eye(4).to_sparse(layout=getattr(torch, f"sparse_{layout}"), blocksize=2)
    assert torch.equal(whole.values(), blocks((2, 2)).values())


@pytest.mark.parametrize(("rows", "columns", "places"), [(0, 0, (0,)), (5, 0, (2, 3)), (5, 2, (0,)), (5, 2, (0, 3))])
def test_sparse_gradients_of_embeddings_without_elements(rows, columns, places):
    table = torch.nn.Embedding(rows, columns, sparse=True)
    table(torch.zeros(places, dtype=torch.int64)).sum().backward()
    grad = table.weight.grad
    assert grad.is_sparse and grad.shape == (rows, columns)
    assert grad._values().shape == (torch.Size(places).numel(), columns)
