"""Sparse tensors: the same text, gradients, errors, optimizer steps and files as PyTorch's."""

import io
import re
import warnings

import numpy
import pytest

torch = pytest.importorskip("torch")

import adjoint

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def shown(value):
    """Return the value as text that does not depend on the library."""
    if isinstance(value, (tuple, list)):
        return [shown(item) for item in value]
    return re.sub(r"0x[0-9a-f]+", "0x", str(value))


def outcome(module, program):
    """Return the result of a program as text, or the type and the beginning of its error."""
    module.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return shown(program(module))
        except Exception as error:
            return type(error).__name__, str(error).split("backend. ")[0][:120]


def s(t, grad=True):
    indices = t.tensor([[0, 1, 1], [2, 0, 2]])
    return t.sparse_coo_tensor(indices, t.tensor([3.0, 4.0, 5.0]), (2, 3)).requires_grad_(grad)


def u(t):
    return t.sparse_coo_tensor([[1, 0, 0], [1, 1, 1]], t.tensor([1.0, 2.0, 4.0]), (2, 3))


def fused_step(t):
    table = t.nn.Embedding(3, 2, sparse=True)
    table(t.tensor([1])).sum().backward()
    t.optim.SGD(table.parameters(), fused=True).step()


def h(t):
    """Return a hybrid tensor with a dense dimension."""
    return t.sparse_coo_tensor([[2, 0]], t.tensor([[1.0, 2.0], [3.0, 4.0]]), (3, 2))


def c(t):
    return t.arange(6.0).reshape(2, 3).to_sparse_csr()


def e(t):
    """Return a matrix with an empty row."""
    return t.tensor([[0, 2.0, -1, 2.5], [0, 0, 0, 0], [-1, -1, 0, -1]]).to_sparse_csr()


def d(t):
    return t.arange(6.0).reshape(2, 3)


def after(t, result, *leaves):
    """Return the gradients of the sum of a result."""
    dense = result.to_dense() if result.layout is not t.strided else result
    (dense * (t.arange(dense.numel()) + 1.0).reshape(dense.shape)).sum().backward()
    return [leaf.grad for leaf in leaves]


def differentiated(call, *makers):
    def program(t):
        leaves = [make(t).detach().requires_grad_() for make in makers]
        result = call(t, *leaves)
        return result, after(t, result, *leaves)

    return program


VALUES = {
    "text": lambda t: [s(t), u(t), h(t), c(t), u(t).coalesce(), c(t).to_sparse_csc(), t.ones(4, 4).to_sparse_bsr((2, 2))],
    "text of many": lambda t: t.arange(5000.0).reshape(50, 100).to_sparse(),
    "text of nothing": lambda t: [t.zeros(2, 3).to_sparse(), t.zeros(2, 3).to_sparse_csr(), t.zeros(0, 3).to_sparse()],
    "dtypes": lambda t: [s(t).detach().to(k) for k in (t.float64, t.int64, t.bool, t.complex64, t.bfloat16, t.uint8)],
    "attributes": lambda t: [
        (x.layout, x.is_sparse, x.is_sparse_csr, x.shape, x.dtype, x._nnz(), x.dense_dim(), x.sparse_dim(), x.numel())
        for x in (s(t), h(t), c(t))
    ],
    "strides": lambda t: s(t).stride(),
    "parts": lambda t: [h(t).coalesce().indices(), h(t).coalesce().values(), s(t)._indices(), s(t)._values()],
    "parts of csr": lambda t: [c(t).crow_indices(), c(t).col_indices(), c(t).values()],
    "parts of csc": lambda t: [c(t).to_sparse_csc().ccol_indices(), c(t).to_sparse_csc().row_indices()],
    "conversions": lambda t: [
        x.to_sparse(layout=layout)
        for x in (s(t, False), c(t), d(t))
        for layout in (t.sparse_coo, t.sparse_csr, t.sparse_csc)
    ],
    "sparse_dim": lambda t: [t.arange(8.0).reshape(2, 2, 2).to_sparse(n) for n in (1, 2, 3)],
    "to_dense": lambda t: [x.to_dense() for x in (s(t, False), u(t), h(t), c(t), d(t))],
    "add": lambda t: [s(t, False) + u(t), u(t) + s(t, False), u(t) + u(t), d(t) + u(t), c(t) + c(t)],
    "add, scaled": lambda t: s(t, False).add(u(t), alpha=2),
    "sub": lambda t: [s(t, False) - u(t), d(t) - u(t)],
    "mul": lambda t: [s(t, False) * 2, 2.5 * u(t), s(t, False) * d(t), u(t) * s(t, False), c(t) * 3, s(t, False) * t.tensor(2.0)],
    "div": lambda t: [s(t, False) / 2, u(t) / t.tensor(4.0)],
    "unary": lambda t: [
        getattr(s(t, False), name)()
        for name in "abs neg sin tan asin atan sinh tanh asinh atanh sqrt log1p floor ceil trunc round sign sgn erf isnan "
        "isinf signbit deg2rad rad2deg relu square".split()
    ],
    "expm1": lambda t: s(t, False).double().expm1(),  # the last bit of NumPy's float32 results depends on the processor
    "unary of csr": lambda t: [getattr(c(t), name)() for name in "abs neg sin sqrt floor relu".split()],
    "pow": lambda t: [s(t, False) ** 2, s(t, False).pow(0.5)],
    "transposed": lambda t: [s(t, False).t(), s(t, False).mT, c(t).t(), c(t).transpose(0, 1), s(t, False).permute(1, 0)],
    "parts of dims": lambda t: [s(t, False)[1], h(t)[0], h(t)[2, 1], s(t, False).index_select(1, t.tensor([2, 0]))],
    "joined": lambda t: [t.cat([s(t, False), u(t)]), t.cat([h(t), h(t)], 1)],
    "stacked": lambda t: [t.stack([s(t, False), s(t)], dim) for dim in (0, 1, -1)],
    "unsqueeze": lambda t: [s(t, False).unsqueeze(0), h(t).unsqueeze(2)],
    "mm": lambda t: [x @ t.ones(3, 2) for x in (s(t, False), u(t), c(t))],
    "mm dense first": lambda t: [t.ones(3, 2) @ s(t, False), t.ones(3, 2) @ c(t)],
    "mv": lambda t: [s(t, False) @ t.arange(3.0), c(t) @ t.arange(3.0), t.mv(u(t), t.ones(3))],
    "sparse.mm": lambda t: [t.sparse.mm(s(t, False), t.ones(3, 2)), t.sparse.mm(s(t, False), u(t).t())],
    "hspmm": lambda t: [t.hspmm(x, t.ones(3, 2)) for x in (s(t, False), u(t))],
    "spmm": lambda t: t.spmm(s(t, False), t.ones(3, 2)),
    "smm": lambda t: t.smm(s(t, False), t.ones(3, 2)),
    "nbytes": lambda t: s(t).nbytes,
    "nbytes of csr": lambda t: c(t).nbytes,
    "copy_ of dense": lambda t: s(t, False).copy_(t.ones(2, 3)),
    "copy_ to dense": lambda t: t.ones(2, 3, dtype=t.float64).copy_(s(t, False)),
    "a fused step": lambda t: fused_step(t),
    "addmm": lambda t: [
        t.sparse.addmm(t.ones(2, 2), s(t, False), t.ones(3, 2), beta=2, alpha=3),
        t.addmm(t.ones(2, 2), s(t, False), t.ones(3, 2), alpha=2),
        t.addmm(t.ones(2, 2), c(t), t.ones(3, 2), beta=0),
    ],
    "sampled_addmm": lambda t: t.sparse.sampled_addmm(c(t), t.ones(2, 4), t.ones(4, 3), beta=0.5),
    "sums": lambda t: [s(t, False).sum(), u(t).sum(), s(t, False).sum(0), t.sparse.sum(h(t), 1), t.sparse.sum(u(t)), c(t).sum()],
    "sums in dtype": lambda t: t.sparse.sum(s(t, False), dtype=t.float64),
    "softmax": lambda t: [t.sparse.softmax(s(t, False), n) for n in (0, 1)] + [t.sparse.log_softmax(h(t), 1)],
    "spdiags": lambda t: t.sparse.spdiags(t.arange(9.0).reshape(3, 3), t.tensor([0, -1, 2]), (3, 4)),
    "sparse_mask": lambda t: [d(t).sparse_mask(u(t)), d(t).sparse_mask(c(t)), s(t, False).sparse_mask(u(t).coalesce())],
    "like": lambda t: [t.zeros_like(s(t)), t.zeros_like(c(t)), t.empty_like(s(t)), t.zeros_like(s(t), dtype=t.int64)],
    "clone": lambda t: [s(t).clone(), c(t).clone(), s(t).detach()],
    "in place": lambda t: [s(t, False).mul_(2), s(t, False).add_(u(t)), s(t, False).neg_(), s(t, False).zero_()],
    "in place of dense": lambda t: d(t).add_(u(t), alpha=2),
    "copy_": lambda t: s(t, False).copy_(u(t)),
    "any": lambda t: [s(t, False).any(), t.zeros(2).to_sparse().any()],
    "zero-dimensional": lambda t: [t.sparse_coo_tensor(t.empty(0, 1, dtype=t.int64), t.tensor([3.0]), ())],
    "constructors": lambda t: [
        t.sparse_coo_tensor((2, 3)),
        t.sparse_coo_tensor([[0, 1]], [[1.0, 2.0], [3.0, 4.0]]),
        t.sparse_coo_tensor([[0, 1]], [1, 2], (3,), dtype=t.float64, requires_grad=True),
        t.sparse_csr_tensor([0, 2, 4], [0, 1, 0, 1], [1.0, 2, 3, 4]),
        t.sparse_csc_tensor([0, 2, 4], [0, 1, 0, 1], [1.0, 2, 3, 4], (3, 2)),
        t.sparse_compressed_tensor([0, 1], [0], [1.0], layout=t.sparse_csr),
        t.zeros(2, 3, layout=t.sparse_coo),
        t.ones(2).new_empty(3, layout=t.sparse_coo),
        t.zeros_like(d(t), layout=t.sparse_csr),
        t.ones(2, 3, layout=t.jagged),
    ],
    "deepcopy": lambda t: __import__("copy").deepcopy(s(t)),
    "pickle": lambda t: __import__("pickle").loads(__import__("pickle").dumps(u(t))),
    "dense mul_": lambda t: d(t).mul_(s(t, False)),
    "fill_ of csr": lambda t: c(t).fill_(3.0),
    "transposed csr": lambda t: (lambda x: (x.t().mul_(3), x))(c(t)),
    "t_": lambda t: [s(t, False).t_(), s(t, False).transpose_(0, 1)],
    "out": lambda t: [t.add(u(t), u(t), out=u(t)), t.mul(u(t), 2, out=u(t)), t.add(c(t), c(t), out=c(t))],
    "out of one": lambda t: t.neg(s(t, False), out=u(t)),
    "csr add dense": lambda t: c(t) + d(t),
    "part of csr": lambda t: [c(t)[1], c(t)[1, 2], c(t).select(1, 0), c(t).unbind()[0]],
    "divided and rounded": lambda t: u(t) // 2,
    "sums of integers": lambda t: [t.sparse.sum(u(t).int(), 0), t.sparse.sum(u(t).int()), u(t).int().coalesce().dtype],
    "bmm": lambda t: [t.bmm(t.stack([s(t, False)] * 2), t.ones(2, 3, 2)), t.addmv(t.ones(2), c(t), t.ones(3))],
    "addmm of csr": lambda t: t.addmm(t.ones(2, 2), c(t), c(t).t().to_dense().to_sparse_csr()),
    "real": lambda t: t.real(s(t, False) * (1 + 2j)),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    assert outcome(adjoint, VALUES[name]) == outcome(torch, VALUES[name])


ones = lambda rows, columns: lambda t: t.ones(rows, columns)
three = lambda t: t.tensor([3.0, 4.0, 5.0])
INDICES = [[0, 1, 1], [2, 0, 2]]
GRADIENTS = {
    "to_dense": differentiated(lambda t, x: x.to_dense(), s),
    "to_dense, unmasked": differentiated(lambda t, x: x.to_dense(masked_grad=False), s),
    "to_sparse": differentiated(lambda t, x: x.to_sparse(), d),
    "to_sparse 1": differentiated(lambda t, x: x.to_sparse(1), d),
    "to_sparse_csr": differentiated(lambda t, x: x.to_sparse_csr(), d),
    "csr of coo": differentiated(lambda t, x: x.to_sparse_csr(), s),
    "of values": differentiated(lambda t, v: t.sparse_coo_tensor(INDICES, v, (2, 3)), three),
    "of repeated values": differentiated(lambda t, v: t.sparse_coo_tensor([[0, 1, 0]], v, (2,)), three),
    "of values of csr": differentiated(lambda t, v: t.sparse_csr_tensor([0, 1, 3], [2, 0, 2], v, (2, 3)) @ t.ones(3, 2), three),
    "values": differentiated(lambda t, x: x.coalesce().values(), s),
    "coalesce": differentiated(lambda t, x: x.coalesce(), u),
    "mul by number": differentiated(lambda t, x: x * 3, s),
    "mul by dense": differentiated(lambda t, x, y: x * y, s, d),
    "mul": differentiated(lambda t, x, y: x * y, s, u),
    "add": differentiated(lambda t, x, y: x + y, s, u),
    "add to dense": differentiated(lambda t, x, y: x + y, d, s),
    "sub": differentiated(lambda t, x, y: x - y, s, u),
    "div": differentiated(lambda t, x: x / 4, s),
    "neg": differentiated(lambda t, x: -x, s),
    "t": differentiated(lambda t, x: x.t(), s),
    "t of csr": differentiated(lambda t, x: x.t(), c),
    "mm": differentiated(lambda t, x, y: t.mm(x, y), s, ones(3, 2)),
    "sparse.mm": differentiated(lambda t, x, y: t.sparse.mm(x, y), s, ones(3, 2)),
    "sparse.mm of csr": differentiated(lambda t, x, y: t.sparse.mm(x, y), c, ones(3, 2)),
    "matmul of csr": differentiated(lambda t, x, y: x @ y, c, ones(3, 2)),
    **{
        f"sparse.mm {reduce}": differentiated(
            lambda t, x, y, reduce=reduce: t.sparse.mm(x, y, reduce) * 1, e, lambda t: (t.arange(8.0) * 2).sin().reshape(4, 2)
        )
        for reduce in ("sum", "mean", "amax", "amin", "max", "min")
    },
    "addmm": differentiated(lambda t, b, x, y: t.addmm(b, x, y, alpha=2), ones(2, 2), s, ones(3, 2)),
    "sparse.addmm": differentiated(lambda t, b, x, y: t.sparse.addmm(b, x, y, beta=3, alpha=2), ones(2, 2), s, ones(3, 2)),
    "sum": differentiated(lambda t, x: x.sum(), s),
    "relu": differentiated(lambda t, x: x.relu().to_dense(), s),
    "pow": differentiated(lambda t, x: (x**2).to_dense(), s),
    "sparse.sum": differentiated(lambda t, x: t.sparse.sum(x), s),
    "select": differentiated(lambda t, x: x[0], s),
    "complex": differentiated(lambda t, x: x * (s(t, False) * (1 + 2j)).to_dense().real, s),
    "two sparse": lambda t: [
        grad.to_dense() for grad in differentiated(lambda t, x, y: t.sparse.mm(x, y), s, lambda t: s(t, False).t())(t)[1]
    ],
    "written to dense": differentiated(lambda t, x, y: (x * 1).mul_(y), d, s),
    "bmm": differentiated(lambda t, x, y: t.bmm(x, y), lambda t: t.stack([s(t, False)] * 2), lambda t: t.ones(2, 3, 2)),
    "gather": differentiated(lambda t, x: x.gather(1, t.tensor([[0, 0], [2, 1]]), sparse_grad=True), d),
}  # fmt: skip


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    assert outcome(adjoint, GRADIENTS[name]) == outcome(torch, GRADIENTS[name])


ERRORS = {
    "ones": lambda t: t.ones(2, 3, layout=t.sparse_coo),
    "full": lambda t: t.full((2, 3), 2.0, layout=t.sparse_coo),
    "blocks": lambda t: t.zeros(2, 3, layout=t.sparse_bsr),
    "hspmm": lambda t: t.hspmm(s(t), t.ones(2, 3)),
    "hspmm of a vector": lambda t: t.hspmm(s(t), t.ones(3)),
    "hspmm of csr": lambda t: t.hspmm(c(t), t.ones(3, 2)),
    "hspmm of dense": lambda t: t.hspmm(d(t), t.ones(3, 2)),
    "reduce of another layout": lambda t: t.sparse.mm(c(t).to_sparse_csc(), t.ones(3, 2), "sum"),
    "reduce of coordinates": lambda t: t.sparse.mm(s(t), t.ones(3, 2), "sum"),
    "reduce of another shape": lambda t: t.sparse.mm(c(t), t.ones(2, 2), "amax"),
    "reduce of another dtype": lambda t: t.sparse.mm(c(t), t.ones(3, 2).double(), "amax"),
    "reduce of integers": lambda t: t.sparse.mm(c(t).int(), t.ones(3, 2).int(), "amax"),
    "reduce with a sparse matrix": lambda t: t.sparse.mm(c(t), c(t), "amax"),
    "reduce by products": lambda t: t.sparse.mm(c(t), t.ones(3, 2), "prod"),
    "reduce by nothing known": lambda t: t.sparse.mm(c(t), t.ones(3, 2), "median"),
    "reduce by None": lambda t: t.sparse.mm(c(t), t.ones(3, 2), None),
    "add to sparse": lambda t: s(t) + d(t),
    "number": lambda t: s(t) + 1,
    "shapes": lambda t: s(t) + s(t).t(),
    "exp": lambda t: s(t).exp(),
    "cos": lambda t: s(t).cos(),
    "values": lambda t: u(t).values(),
    "indices": lambda t: u(t).indices(),
    "of dense": lambda t: d(t).values(),
    "coalesce": lambda t: d(t).coalesce(),
    "coalesce csr": lambda t: c(t).coalesce(),
    "crow": lambda t: s(t).crow_indices(),
    "ccol": lambda t: c(t).ccol_indices(),
    "numpy": lambda t: s(t, False).numpy(),
    "storage": lambda t: s(t).untyped_storage(),
    "data_ptr": lambda t: s(t).data_ptr(),
    "strides of csr": lambda t: c(t).stride(),
    "contiguous": lambda t: s(t).contiguous(),
    "reshape": lambda t: s(t).reshape(6),
    "item": lambda t: s(t).item(),
    "nnz": lambda t: t.sparse_coo_tensor([[0, 1]], [1.0, 2.0, 3.0], (3,)),
    "size": lambda t: t.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3, 3)),
    "negative": lambda t: t.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,), check_invariants=True),
    "too large": lambda t: t.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,), check_invariants=True),
    "starts": lambda t: t.sparse_csr_tensor([1, 2, 4], [0, 1, 0, 1], [1.0, 2, 3, 4], (2, 2), check_invariants=True),
    "end": lambda t: t.sparse_csr_tensor([0, 2, 5], [0, 1, 0, 1], [1.0, 2, 3, 4], (2, 2), check_invariants=True),
    "columns": lambda t: t.sparse_csr_tensor([0, 2, 4], [0, 1, 0, 3], [1.0, 2, 3, 4], (2, 2), check_invariants=True),
    "bsr": lambda t: t.ones(3, 4).to_sparse_bsr((2, 2)),
    "softmax": lambda t: t.sparse.softmax(c(t), 1),
    "assigned": lambda t: c(t).__setitem__(0, 1.0),
    "assigned element": lambda t: u(t).__setitem__((0, 1), 5.0),
    "dimension": lambda t: u(t).sum(2),
    "dimension of select": lambda t: u(t).select(-3, 0),
    "dimension of transpose": lambda t: u(t).transpose(5, 0),
    "repeated dimension": lambda t: u(t).permute(0, 0),
    "dimensions missing": lambda t: u(t).permute(0),
    "dimension of cat": lambda t: t.cat([u(t), u(t)], 2),
    "cat of other shapes": lambda t: t.cat([u(t), u(t).t()], 1),
    "cat of other densities": lambda t: t.cat([u(t), d(t).to_sparse(1)]),
    "sum of other densities": lambda t: u(t) + d(t).to_sparse(1),
    "unbind of nothing": lambda t: u(t).sum().to_sparse().unbind(),
    "exp_": lambda t: u(t).exp_(),
    "fill_": lambda t: u(t).fill_(0),
    "mask": lambda t: u(t).sparse_mask(d(t)),
    "bmm of matrices": lambda t: t.bmm(u(t), t.ones(2, 3, 2)),
    "bmm of other sizes": lambda t: t.bmm(t.stack([u(t)] * 2), t.ones(2, 2, 2)),
    "bmm of sparse": lambda t: t.bmm(t.ones(2, 2, 2), t.stack([u(t)] * 2)),
    "Adam": lambda t: step(t, t.optim.Adam),
    "Muon": lambda t: step(t, t.optim.Muon),
    "RMSprop": lambda t: step(t, t.optim.RMSprop),
    "NAdam": lambda t: step(t, t.optim.NAdam),
    "Adafactor": lambda t: step(t, t.optim.Adafactor),
    "Adagrad": lambda t: step(t, t.optim.Adagrad, weight_decay=0.1),
    "SparseAdam": lambda t: t.optim.SparseAdam([s(t)]),
    "betas": lambda t: t.optim.SparseAdam([d(t)], betas=(0.5, 1.0)),
    "eps": lambda t: t.optim.SparseAdam([d(t)], eps=0),
}  # fmt: skip


@pytest.mark.parametrize("make", ["rand", "randn", "arange", "eye"])
def test_new_sparse_tensors_store_nothing(make):
    for library in (torch, adjoint):
        with pytest.raises(RuntimeError):
            getattr(library, make)(3, layout=library.sparse_coo)


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    expected = outcome(torch, ERRORS[name])
    assert isinstance(expected, tuple), expected
    assert outcome(adjoint, ERRORS[name]) == expected


def table(t, **options):
    layer = t.nn.Embedding(6, 2, sparse=True, **options)
    with t.no_grad():
        layer.weight.copy_(t.arange(12.0).reshape(6, 2))
    return layer


def step(t, kind, steps=3, **options):
    """Take some steps of an optimizer on a table with sparse gradients."""
    layer = table(t, padding_idx=1)
    optimizer = kind(layer.parameters(), lr=0.1, **options)
    for number in range(steps):
        optimizer.zero_grad()
        (layer(t.tensor([[0, 3, 0], [1, number, 3]])) ** 2).sum().backward()
        optimizer.step()
    return layer.weight, list(optimizer.state.values())


OPTIMIZERS = {
    "SGD": lambda t: step(t, t.optim.SGD),
    "SGD with momentum": lambda t: step(t, t.optim.SGD, momentum=0.9),
    "SGD with Nesterov's": lambda t: step(t, t.optim.SGD, momentum=0.9, nesterov=True),
    "SGD, maximized": lambda t: step(t, t.optim.SGD, maximize=True),
    "Adagrad": lambda t: step(t, t.optim.Adagrad),
    "Adagrad with decay": lambda t: step(t, t.optim.Adagrad, lr_decay=0.1, initial_accumulator_value=1.0),
    "SparseAdam": lambda t: step(t, t.optim.SparseAdam),
    "SparseAdam, maximized": lambda t: step(t, t.optim.SparseAdam, maximize=True, betas=(0.8, 0.9)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name):
    assert outcome(adjoint, OPTIMIZERS[name]) == outcome(torch, OPTIMIZERS[name])


def accumulated(t):
    layer, seen = table(t, padding_idx=1), []
    for taken in ([[0, 3, 0], [1, 3, 3]], [[4, 0, 1]], [[1]]):
        layer(t.tensor(taken)).sum().backward()
        seen.append(str(layer.weight.grad))
    layer.weight.sum().backward()
    return [*seen, layer.weight.grad]


def bag(t):
    layer = t.nn.EmbeddingBag(6, 2, mode="sum", sparse=True)
    layer(t.tensor([1, 2, 4, 5, 4, 3]), t.tensor([0, 4])).sum().backward()
    return layer.weight.grad.coalesce()


def functional(t):
    weight = t.arange(8.0).reshape(4, 2).requires_grad_()
    (t.nn.functional.embedding(t.tensor([1, 1, 3]), weight * 2, sparse=True) ** 2).sum().backward()
    return weight.grad


def created(t):
    weight = t.arange(8.0).reshape(4, 2).requires_grad_()
    result = (t.nn.functional.embedding(t.tensor([1, 1, 3]), weight, sparse=True) ** 2).sum()
    (grad,) = t.autograd.grad(result, weight, create_graph=True)
    return grad, t.autograd.grad(grad.coalesce().values().sum(), weight)


def scaled(t):
    layer, scaler = table(t), t.amp.GradScaler("cpu", init_scale=4.0)
    optimizer, seen = t.optim.SGD(layer.parameters(), lr=0.5), []
    for factor in (1.0, float("inf")):
        optimizer.zero_grad()
        scaler.scale((layer(t.tensor([0, 3, 0])) * factor).sum()).backward()
        seen.append(str(layer.weight.grad))
        scaler.unscale_(optimizer)
        seen.append(str(layer.weight.grad))
        scaler.step(optimizer)
        scaler.update()
        seen += [str(layer.weight), scaler.get_scale()]
    return seen


@pytest.mark.parametrize("program", [accumulated, bag, functional, created, scaled])
def test_sparse_gradients_of_tables(program):
    assert outcome(adjoint, program) == outcome(torch, program)


def saved(t):
    file = io.BytesIO()
    t.save({"coo": s(t), "uncoalesced": u(t), "hybrid": h(t), "csr": c(t), "csc": c(t).to_sparse_csc()}, file)
    return file.getvalue()


@pytest.mark.parametrize(("writer", "reader"), [(torch, adjoint), (adjoint, torch), (adjoint, adjoint)])
def test_files(writer, reader):
    loaded = reader.load(io.BytesIO(saved(writer)))
    expected = torch.load(io.BytesIO(saved(torch)))
    assert {name: str(value) for name, value in loaded.items()} == {
        name: str(value) for name, value in expected.items()
    }
    assert not loaded["uncoalesced"].is_coalesced()
    assert loaded["csr"].layout == reader.sparse_csr


@pytest.mark.parametrize("seed", range(30))
def test_random_matrices(seed):
    """Test products, sums and conversions with repeated coordinates."""
    generator = numpy.random.default_rng(seed)
    rows, columns, count = generator.integers(1, 7, 3)
    indices = numpy.stack([generator.integers(0, rows, count), generator.integers(0, columns, count)])
    values, dense = generator.integers(-4, 5, count).astype("f8"), generator.integers(-4, 5, (columns, 3)).astype("f8")

    def program(t):
        x = t.sparse_coo_tensor(t.tensor(indices), t.tensor(values), (int(rows), int(columns)))
        y = t.tensor(dense)
        full = x.to_dense()
        return [
            x.coalesce(), x @ y, x.to_sparse_csr() @ y, t.sparse.mm(x, x.t().coalesce()).to_dense(),
            x.sum(0).to_dense(),
            x.sum(1).to_dense(), (x * full), x.to_sparse_csr(), x.to_sparse_csc(), t.sparse.softmax(x, 1).to_dense(),
            (x + x.coalesce()).coalesce(),
            x.index_select(0, t.tensor([0, int(rows) - 1])).to_dense(), (x * x).to_dense(),
        ]  # fmt: skip

    assert outcome(adjoint, program) == outcome(torch, program)
