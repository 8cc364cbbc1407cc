"""Sparse tensors: derivatives of each operator, products with and without SciPy, inconsistent parts, files."""

import io
import pickle

import numpy
import pytest

import adjoint as torch
from adjoint.autograd import gradcheck, gradgradcheck
from adjoint.kernels.sparse import products
from adjoint.operators import OPERATORS, load_all

load_all()

INDICES = torch.tensor([[0, 1, 1], [2, 0, 2]])
REPEATED = torch.tensor([[1, 0, 1], [0, 2, 0]])


def values(*shape):
    generator = numpy.random.default_rng(0)
    return torch.from_numpy(generator.uniform(0.5, 2.0, shape)).requires_grad_()


def made(elements, indices=INDICES):
    return torch.sparse_coo_tensor(indices, elements, (2, 3))


def csr(elements):
    return torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], elements, (2, 3))


def operator(name, *args, **options):
    return OPERATORS[name].function(*args, **options)


# For each operator: a function of dense tensors that uses the operator, and the shapes of these tensors.
DERIVATIVES = {
    "coo_of_parts": (lambda v: made(v, REPEATED).to_dense(), (3,)),
    "elements_at": (lambda x: operator("elements_at", x, REPEATED, ()), (2, 3)),
    "compressed_of_parts": (lambda v: csr(v).to_dense(), (3,)),
    "with_values": (lambda v: operator("with_values", csr(torch.ones(3).double()), v).to_dense(), (3,)),
    "values": (lambda v: made(v, REPEATED).coalesce().values() ** 2, (3,)),
    "coalesced": (lambda v: made(v, REPEATED).coalesce().to_dense(), (3,)),
    "in_layout": (lambda x: operator("in_layout", x, "sparse_csc").to_dense(), (2, 3)),
    "to_dense_from": (lambda v: made(v).to_dense(masked_grad=False), (3,)),
    "to_sparse_dims": (lambda x: x.to_sparse(1).to_dense(), (2, 3)),
    "to_sparse_whole": (lambda x: x.to_sparse().to_dense(), (2, 3)),
    "to_sparse_csr_from": (lambda x: x.to_sparse_csr().to_dense(), (2, 3)),
    "to_sparse_csc_from": (lambda x: x.to_sparse_csc().to_dense(), (2, 3)),
    "to_sparse_bsr_from": (lambda x: x.to_sparse_bsr((1, 3)).to_dense(), (2, 3)),
    "to_sparse_bsc_from": (lambda x: x.to_sparse_bsc((2, 1)).to_dense(), (2, 3)),
    "sparse_mask": (lambda x: x.sparse_mask(made(torch.ones(3).double())).to_dense(), (2, 3)),
    "_sparse_addmm": (lambda a, v, b: torch.sparse.addmm(a, made(v), b, beta=2, alpha=3), (2, 2), (3,), (3, 2)),
    "sparse_product_gradient": (lambda g, b: operator("sparse_product_gradient", g, b, values(2, 3)), (2, 4), (3, 4)),
    "_sparse_sparse_matmul": (lambda v, w: torch.sparse.mm(made(v), made(w).t().coalesce()).to_dense(), (3,), (3,)),
    "sampled_addmm": (
        lambda v, a, b: torch.sparse.sampled_addmm(csr(v), a, b, beta=2, alpha=3).to_dense(),
        *((3,), (2, 4), (4, 3)),
    ),
    "_sparse_sum": (lambda v: torch.sparse.sum(made(v), 1).to_dense(), (3,)),
    "_sparse_softmax": (lambda v: torch.sparse.softmax(made(v), 1).to_dense(), (3,)),
    "_sparse_log_softmax": (lambda v: torch.sparse.log_softmax(made(v), 1).to_dense(), (3,)),
    "gather_sparse_backward": (
        lambda g: operator("gather_sparse_backward", g, 1, torch.tensor([[0, 0], [2, 1]]), (2, 3)).to_dense(),
        (2, 2),
    ),
    "embedding_sparse_backward": (
        lambda g: operator("embedding_sparse_backward", g, torch.tensor([1, 1, 3]), 4, 3).to_dense(),
        (3, 2),
    ),
}
WITHOUT = {
    "_on_diagonals",
    "_sparse_log_softmax_backward",
    "_sparse_softmax_backward",
    "_sparse_sum_backward",  # the operator of this helper has its own tests
}
TWICE = set(DERIVATIVES) - {"_sparse_log_softmax", "_sparse_softmax", "_sparse_sparse_matmul", "_sparse_sum"}


def test_every_operator_is_differentiated():
    declared = {name for name, op in OPERATORS.items() if ".operators.sparse." in op.declaration.__module__}
    assert declared == set(DERIVATIVES) | WITHOUT


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name):
    function, *shapes = DERIVATIVES[name]
    inputs = [values(*shape) for shape in shapes]
    assert gradcheck(function, inputs)
    if name in TWICE:
        assert gradgradcheck(function, inputs)


@pytest.mark.parametrize("by_scipy", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.complex64, torch.bfloat16])
def test_products_with_and_without_scipy(by_scipy, dtype, monkeypatch):
    if by_scipy:
        pytest.importorskip("scipy")
    else:
        monkeypatch.setattr(products, "_is_for_scipy", lambda *arrays: False)
    generator = numpy.random.default_rng(1)
    for rows, inner, columns in ((3, 4, 2), (1, 1, 1), (5, 2, 0), (0, 3, 2)):
        left = torch.tensor(generator.integers(-2, 3, (rows, inner))).to(dtype)
        right = torch.tensor(generator.integers(-2, 3, (inner, columns))).to(dtype)
        expected = left @ right
        for first in (left.to_sparse(), left.to_sparse_csr(), left.to_sparse_csc()):
            assert (first @ right).equal(expected)
            assert (first @ right.to_sparse()).to_dense().equal(expected)
        assert (left @ right.to_sparse()).equal(expected)
        assert (left.to_sparse() @ right.sum(1)).equal(left @ right.sum(1))


def test_dense_operators_on_sparse_tensors_are_refused():
    x = torch.eye(2).to_sparse()
    with pytest.raises(
        NotImplementedError, match=r"Could not run 'aten::exp' with arguments from the 'SparseCPU' backend"
    ) as e:
        x.exp()
    assert "to_dense()" in e.value.__notes__[0]
    with pytest.raises(NotImplementedError, match="SparseCsrCPU"):
        torch.eye(2).to_sparse_csr().sort()
    with pytest.raises(RuntimeError, match="copy_\\(\\) between dense and sparse Tensors is not implemented"):
        torch.eye(2).copy_(x)


def test_a_refused_change_changes_nothing():
    x, y = torch.eye(2).to_sparse(), torch.ones(3, 2).to_sparse()
    before = str(x)
    with pytest.raises(RuntimeError):
        x.add_(y)
    assert str(x) == before
    assert x._version == 0
    dense = torch.ones(2, 2)
    with pytest.raises(RuntimeError):
        dense.add_(y)
    assert dense.equal(torch.ones(2, 2))


def test_aliases_see_changes():
    x = torch.eye(2).to_sparse()
    y = x.detach()
    x.mul_(2)
    assert y._version == 1
    assert y.to_dense().equal(2 * torch.eye(2))
    x._values().zero_()
    assert y.to_dense().equal(torch.zeros(2, 2))


def test_a_saved_tensor_that_has_been_changed_is_noticed():
    x, w = torch.eye(2).to_sparse(), torch.ones(2, 2, requires_grad=True)
    y = torch.sparse.mm(x, w)
    x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize(
    "parts",
    [
        lambda: torch.sparse_coo_tensor([[0, 3]], [1.0, 2.0], (3,)),
        lambda: torch.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,)),
        lambda: torch.sparse_coo_tensor([[0]], [1.0, 2.0], (3,)),
        lambda: torch.sparse_csr_tensor([0, 5], [0], [1.0], (1, 1)),
        lambda: torch.sparse_csr_tensor([0, 1], [7], [1.0], (1, 1)),
        lambda: torch.sparse_csr_tensor([0, 2, 1], [0], [1.0], (2, 1)),
        lambda: torch.sparse_csr_tensor([0, 1], [-1], [1.0], (1, 1)),
        lambda: torch.sparse_csr_tensor([], [], [], (0, 1)),
    ],
)
def test_parts_that_reach_outside_are_refused(parts):
    with pytest.raises(RuntimeError):
        parts()


def test_a_file_whose_indices_reach_outside_is_refused():
    x = torch.eye(2).to_sparse()
    x._indices()[0, 0] = 7
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        torch.load(file)


def test_a_false_mark_of_sorted_coordinates_is_ignored():
    x = torch.sparse_coo_tensor([[1, 0]], [1.0, 2.0], (2,))
    x._coalesced_(True)
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    assert not torch.load(file).is_coalesced()


def test_pickles():
    for x in (torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr()):
        again = pickle.loads(pickle.dumps(x))
        assert (again.layout, again.is_sparse) == (x.layout, x.is_sparse)
        assert again.to_dense().equal(torch.eye(2))


def test_a_large_shape_takes_no_memory():
    x = torch.sparse_coo_tensor([[0, 10**6 - 1], [10**6 - 1, 0]], [1.0, 2.0], (10**6, 10**6))
    assert (x + x).coalesce().values().tolist() == [2.0, 4.0]
    assert (x.t() @ torch.ones(10**6))[[0, -1]].tolist() == [2.0, 1.0]


def test_invariants_are_a_switch():
    check = torch.sparse.check_sparse_tensor_invariants
    assert not check.is_enabled()
    wanted = check()
    with wanted:
        assert check.is_enabled()
        with pytest.raises(RuntimeError, match="already activated"), wanted:
            pass
    assert not check.is_enabled()


def test_a_table_is_trained_by_the_rows_that_were_taken():
    table = torch.nn.Embedding(1000, 4, sparse=True)
    before = table.weight.detach().clone()
    optimizer = torch.optim.SGD(table.parameters(), lr=1.0)
    table(torch.tensor([3, 5, 3])).sum().backward()
    assert table.weight.grad.is_sparse
    optimizer.step()
    change = before - table.weight.detach()
    assert change.sum(1).nonzero().flatten().tolist() == [3, 5]
    assert change[3].tolist() == pytest.approx([2.0] * 4)


@pytest.mark.thorough
@pytest.mark.parametrize("reduce", ["mean", "amax", "amin"])
def test_reduced_products(reduce, monkeypatch):
    monkeypatch.setattr(products, "PART", 1)
    torch.manual_seed(0)
    dense = torch.rand(5, 4, dtype=torch.float64) * (torch.rand(5, 4) < 0.6) + 0.0
    matrix, other = dense.to_sparse_csr(), torch.rand(4, 3, dtype=torch.float64)
    terms = (dense[:, :, None] * other).masked_fill(dense[:, :, None] == 0, torch.nan)
    wanted = {"mean": numpy.nanmean, "amax": numpy.nanmax, "amin": numpy.nanmin}[reduce](terms.numpy(), axis=1)
    numpy.testing.assert_allclose(torch.sparse.mm(matrix, other, reduce).numpy(), wanted)
    values = matrix.values().clone().requires_grad_()

    def product(values, other):
        return torch.sparse.mm(
            torch.sparse_csr_tensor(matrix.crow_indices(), matrix.col_indices(), values, (5, 4)), other, reduce
        )

    assert gradcheck(product, (values, other.requires_grad_()))
    assert gradgradcheck(product, (values, other))


def test_gradients_of_half_products():
    matrix = torch.tensor([[1.0, 0.0], [2.0, 3.0]], dtype=torch.bfloat16).to_sparse_csr().requires_grad_()
    other = torch.ones(2, 3, dtype=torch.bfloat16, requires_grad=True)
    to_matrix, to_other = torch.autograd.grad(torch.sparse.mm(matrix, other, "amax").sum(), (matrix, other))
    assert to_matrix.values().tolist() == [3.0, 0.0, 3.0] and to_matrix.dtype is torch.bfloat16
    assert to_other.tolist() == [[1.0] * 3, [3.0] * 3]


W = torch.arange(6.0, dtype=torch.float64).reshape(3, 2)
DIRECTIONAL = {
    "to_dense": lambda x: x.to_dense(),
    "coalesce": lambda x: x.coalesce(),
    "sum": lambda x: x.sum(),
    "sum over a dimension": lambda x: torch.sparse.sum(x, 0),
    "mm": lambda x: torch.mm(x, W),
    "two sparse": lambda x: torch.sparse.mm(x, x.t()),
    "addmm": lambda x: torch.addmm(W[:2], x, W, beta=2, alpha=3),
    "sparse.addmm": lambda x: torch.sparse.addmm(W[:2], x, W, beta=2, alpha=3),
    "mv": lambda x: torch.mv(x, W[:, 0]),
    "softmax": lambda x: torch.sparse.softmax(x, 1),
    "log_softmax": lambda x: torch.sparse.log_softmax(x, 1),
    "add": lambda x: x + x * x,
    "add to dense": lambda x: W.t() + x,
    "pow": lambda x: x**3,
    "relu": lambda x: (x * 2).relu(),
    "joined": lambda x: torch.cat([x, x.neg()]),
}


OF_COORDINATES = ("coalesce", "softmax", "log_softmax", "joined", "sum over a dimension")


@pytest.mark.parametrize(
    ("name", "make"),
    [(n, make) for n in DIRECTIONAL for make in (made, csr) if make is made or n not in OF_COORDINATES],
)
def test_forward_mode(name, make):
    function = DIRECTIONAL[name]
    point, along = values(3).detach(), torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)

    def dense(elements):
        result = function(make(elements))
        return result if result.layout is torch.strided else result.to_dense()

    expected = (dense(point + 1e-6 * along) - dense(point - 1e-6 * along)) / 2e-6
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(make(point), make(along))
        primal, tangent = torch.autograd.forward_ad.unpack_dual(function(dual))
    assert primal.layout is tangent.layout
    assert torch.allclose(tangent if tangent.layout is torch.strided else tangent.to_dense(), expected, atol=1e-8)
    assert torch.allclose(torch.func.jvp(dense, (point,), (along,))[1], expected, atol=1e-8)


@pytest.mark.parametrize("make", [made, csr])
def test_jacobians_and_vmap_of_products_with_sparse_matrices(make):
    sparse = make(values(3).detach())
    whole = torch.vmap(lambda w: sparse @ w)(torch.stack([W, W + 1]))
    assert torch.allclose(whole, sparse.to_dense() @ torch.stack([W, W + 1]))
    for jacobian in (torch.func.jacfwd, torch.func.jacrev):
        found = jacobian(lambda w: sparse @ w)(W)
        assert torch.allclose(found, jacobian(lambda w: sparse.to_dense() @ w)(W))


@pytest.mark.parametrize("size", [(2, 3), (4,), torch.Size((1, 0))])
def test_a_size_alone_gives_a_tensor_without_elements(size):
    for x in (torch.sparse_coo_tensor(size), torch.sparse_coo_tensor(size=size, dtype=torch.float32)):
        assert x.shape == size and x._nnz() == 0 and x.to_dense().count_nonzero() == 0
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        torch.sparse_coo_tensor()


@pytest.mark.parametrize(
    "other", [torch.ones(2, 2).to_sparse(), torch.ones(2, 2).to_sparse_csr(), torch.ones(2, 2, device="meta")]
)
def test_data_of_another_layout_or_device_are_refused(other):
    tensor = torch.ones(2, 2)
    for receiver, value in ((tensor, other), (other, tensor)):
        assert not torch._has_compatible_shallow_copy_type(receiver, value)
        with pytest.raises(RuntimeError, match="incompatible tensor type"):
            receiver.data = value
    other.data = other.detach().double()
    assert other.dtype == torch.float64


def test_data_may_change_from_one_compressed_layout_to_another():
    tensor = torch.eye(2).to_sparse_csr()
    tensor.data = torch.ones(2, 2).to_sparse_csc()
    assert tensor.layout is torch.sparse_csc


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (torch.ones_like, [1, 1, 1]),
        (lambda x: torch.full_like(x, 2, dtype=torch.float64), [2, 2, 2]),
        (lambda x: torch.randn_like(x, generator=torch.Generator().manual_seed(0)), [1.5410, -0.2934, -2.1788]),
    ],
)
def test_tensors_like_a_compressed_one_store_the_same_elements(make, values):
    x = torch.tensor([[5.0, 0.0], [6.0, 7.0]]).to_sparse_csr()
    found = make(x)
    assert found.layout == x.layout
    assert found.col_indices().tolist() == x.col_indices().tolist()
    torch.testing.assert_close(found.values(), torch.tensor(values, dtype=found.dtype), rtol=0, atol=1e-4)
    assert x.values().tolist() == [5, 6, 7]
    with pytest.raises(RuntimeError, match="self is SparseCsr but you requested Strided"):
        torch.ones_like(x, layout=torch.strided)


def test_coordinates_are_not_filled():
    for make in (torch.ones_like, torch.rand_like, lambda x: torch.full_like(x, 2.0)):
        with pytest.raises(NotImplementedError, match="Could not run 'aten::"):
            make(torch.eye(2).to_sparse())
    assert torch.ones_like(torch.eye(2).to_sparse(), layout=torch.strided).tolist() == [[1, 1], [1, 1]]


def test_sampled_products_of_integers_are_refused():
    ones = torch.ones(2, 2, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="Expected self to be a floating-point or complex tensor, but got Long"):
        torch.sparse.sampled_addmm(ones.to_sparse_csr(), ones, ones)


def test_a_compressed_matrix_changes_its_size_in_place():
    x = torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]).to_sparse_csr()
    x.resize_(3, 4)
    assert x.to_dense().tolist() == [[1, 0, 2, 0], [0, 3, 0, 0], [0, 0, 0, 0]]
    assert x.resize_(1, 4).crow_indices().tolist() == [0, 3]
    with pytest.raises(
        RuntimeError, match="The original number of columns is 4 while the requested new number of columns is 2"
    ):
        x.resize_(1, 2)
    with pytest.raises(RuntimeError, match="Only batched sparse CSR matrices are supported"):
        x.resize_(4)
    assert x.resize_as_sparse_(torch.eye(2).to_sparse_csr()).to_dense().tolist() == [[1, 0], [0, 2]]
    with pytest.raises(RuntimeError, match="expected sparse compressed tensor layout but got Sparse"):
        x.resize_as_sparse_(torch.eye(2).to_sparse())


def test_parts_with_fewer_than_two_elements_are_coalesced():
    assert torch.sparse_coo_tensor([[1]], [2.0], (3,)).is_coalesced()
    assert torch.sparse_coo_tensor([[0, 1]], [2.0, 3.0], (3,)).is_coalesced() is False


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (torch.randn_like, "aten::normal_"),
        (lambda x: x.normal_(), "aten::normal_"),
        (lambda x: x.sqrt_(), "sqrt_ requires coalesced input"),
        (lambda x: x.share_memory_(), "Cannot access storage of SparseTensorImpl"),
        (lambda x: torch.equal(x, x), "aten::equal"),
    ],
)
def test_coordinates_refuse(change, words):
    x = torch.sparse_coo_tensor([[0, 0], [1, 1]], [2.0, 3.0], (2, 2))
    with pytest.raises(RuntimeError, match=words):
        change(x)
    assert x.layout is torch.sparse_coo and x.to_dense().tolist() == [[0.0, 5.0], [0.0, 0.0]]


def test_check_invariants_refuses_what_is_not_sorted():
    with pytest.raises(RuntimeError, match="sorted and distinct"):
        torch.sparse_csr_tensor([0, 2], [1, 0], [1.0, 2.0], (1, 2), check_invariants=True)
    assert torch.sparse_csr_tensor([0, 2], [1, 0], [1.0, 2.0], (1, 2)).to_dense().tolist() == [[2.0, 1.0]]
    parts = [[0, 0]], [1.0, 2.0], (2,)
    with pytest.raises(RuntimeError, match="cannot set is_coalesced to true"):
        torch.sparse_coo_tensor(*parts, is_coalesced=True, check_invariants=True)


@pytest.mark.parametrize(
    "function",
    [
        lambda s, dense: torch.sparse.mm(s, dense),
        lambda s, dense: torch.sparse.addmm(dense, s, dense),
        lambda s, dense: torch.sparse.sum(s, 1).to_dense(),
    ],
)
def test_each_of_several_elements_at_one_coordinate_has_the_gradient_of_their_sum(function):
    dense = torch.rand(3, 3)
    elements, same = (torch.tensor([1.0, 2.0, 3.0], requires_grad=True) for _ in range(2))
    function(torch.sparse_coo_tensor(REPEATED, elements, (3, 3)), dense).pow(2).sum().backward()
    function(torch.sparse_coo_tensor(REPEATED, same, (3, 3)).coalesce(), dense).pow(2).sum().backward()
    assert torch.allclose(elements.grad, same.grad)


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "bsc"])
def test_batches_of_matrices_are_compressed(layout):
    dense = torch.arange(1.0, 49.0).reshape(2, 4, 6) * (torch.arange(6) % 2)
    options = {"blocksize": (2, 2)} if layout[0] == "b" else {}
    x = getattr(dense, f"to_sparse_{layout}")(**options)
    assert x._nnz() == (6 if options else 12) and x.dense_dim() == 0
    assert torch.equal(x.to_dense(), dense) and torch.equal(x[1].to_dense(), dense[1])
    assert torch.equal(x.mT.to_dense(), dense.mT)
    assert torch.equal((dense + 1).sparse_mask(x).to_sparse().to_dense(), (dense + 1).sparse_mask(x).to_dense())
    assert torch.equal(pickle.loads(pickle.dumps(x)).to_dense(), dense)


def test_matrices_of_a_batch_store_equally_many_elements():
    with pytest.raises(RuntimeError, match="same number of specified elements per batch"):
        torch.tensor([[[1.0, 0.0]], [[1.0, 1.0]]]).to_sparse_csr()
