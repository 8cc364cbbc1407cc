"""Compressed layouts with batch, block and dense dimensions: the same parts, results and errors as PyTorch's."""

import re
import warnings

import pytest

torch = pytest.importorskip("torch")

import adjoint

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

LAYOUTS = ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
SHAPES = {"matrix": ((4, 6), 0), "batch": ((2, 4, 6), 0), "batches": ((2, 3, 4, 2), 0), "hybrid": ((2, 4, 4, 3), 1)}


def shown(value):
    """Return the value as text that does not depend on the library."""
    if isinstance(value, (tuple, list)):
        return [shown(item) for item in value]
    if not hasattr(value, "layout") or not hasattr(value, "shape"):
        return str(value).replace("adjoint", "torch")
    layout = str(value.layout).removeprefix("torch.").removeprefix("adjoint.")
    if layout == "strided":
        return str(value.dtype).split(".")[1], tuple(value.shape), value.tolist()
    if layout == "sparse_coo":
        parts = (value._indices(), value._values())
    elif layout in ("sparse_csr", "sparse_bsr"):
        parts = (value.crow_indices(), value.col_indices(), value.values())
    else:
        parts = (value.ccol_indices(), value.row_indices(), value.values())
    return layout, tuple(value.shape), [shown(part) for part in parts]


def outcome(module, program, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return shown(program(module, *args))
        except Exception as error:
            return type(error).__name__, re.sub(r"^select_copy", "select", str(error).split("backend. ")[0][:120])


def block(layout):
    return (2, 2) if layout in ("sparse_bsr", "sparse_bsc") else None


def made(t, layout, shape, dense_dim):
    """Return a tensor with zeros in every fourth row."""
    x = t.arange(1.0, 1 + t.Size(shape).numel()).reshape(shape)
    x[..., 3, :] = 0 if not dense_dim else x[..., 3, :]
    return x.to_sparse(layout=getattr(t, layout), blocksize=block(layout), dense_dim=dense_dim)


OPERATIONS = {
    "itself": lambda t, x: (x, x.to_dense(), x._nnz(), x.sparse_dim(), x.dense_dim(), str(x)),
    "copies": lambda t, x: (x.clone(), x.to(t.float64), t.zeros_like(x), t.empty_like(x)._nnz(), x.clone().copy_(x)),
    "coordinates": lambda t, x: x.to_sparse(),
    "arithmetic": lambda t, x: (-x, x * 2, x.sum(), x.abs()),
    "masked": lambda t, x: (x.to_dense() + 1).sparse_mask(x),
    "other layout": lambda t, x: t.empty_like(x, layout=t.sparse_coo),
    "to csr": lambda t, x: x.to_sparse(layout=t.sparse_csr),
    "to bsc": lambda t, x: x.to_sparse(layout=t.sparse_bsc, blocksize=(2, 2)),
    "to other blocks": lambda t, x: x.to_sparse(layout=t.sparse_bsr, blocksize=(1, 2)),
    "dense copied": lambda t, x: x.copy_(x.to_dense()),
    "to dense copied": lambda t, x: x.to_dense().copy_(x),
    **{f"select {dim}": lambda t, x, dim=dim: t.select_copy(x, dim, 1) for dim in range(4)},
    **{
        f"transpose {dims}": lambda t, x, dims=dims: (x.transpose(*dims), x.transpose(*dims).to_dense())
        for dims in ((0, 1), (-1, -2), (0, -1), (0, 0))
    },
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_compressed_tensor_is_pytorchs(layout, shape, name):
    answers = [
        outcome(module, lambda t: OPERATIONS[name](t, made(t, layout, *SHAPES[shape]))) for module in (torch, adjoint)
    ]
    assert answers[1] == answers[0]


def blocks_of(t, layout, elements):
    return t.tensor([[[element]] for element in elements]) if block(layout) else t.tensor(elements)


INVALID = {
    "strided starts": ([0, -1, 2, -1, 4], 2, [0, 1, 0, 2], (2, 3)),
    "scalar starts": (0, 1, [0, 1, 0, 2], (2, 3)),
    "batch of starts alone": ([[0, 2, 4]], 1, [0, 1, 0, 2], (2, 3)),
    "batch without values": ([[0, 2, 4]], 1, [[0, 1, 0, 2]], (2, 3)),
    "vector": ([0, 2, 4], 1, [0, 1, 0, 2], (2,)),
    "many starts": ([0, 2, 3, 4], 1, [0, 1, 0, 2], (2, 3)),
    "many places": ([0, 2, 4], 1, [0, 1, 0, 1, 2], (2, 3)),
    "late start": ([1, 2, 4], 1, [0, 1, 0, 2], (2, 3)),
    "late end": ([0, 2, 5], 1, [0, 1, 0, 2], (2, 3)),
    "full row": ([0, 0, 4], 1, [0, 1, 0, 2], (2, 3)),
    "decreasing": ([0, 5, 4], 1, [0, 1, 0, 2], (2, 3)),
    "negative place": ([0, 2, 4], 1, [0, -1, 0, 3], (2, 3)),
    "large place": ([0, 2, 4], 1, [0, 1, 0, 3], (2, 3)),
    "unsorted": ([0, 2, 4], 1, [1, 0, 0, 2], (2, 3)),
}


@pytest.mark.parametrize("case", INVALID)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_invalid_parts_raise_pytorchs_error(layout, case):
    starts, step, places, shape = INVALID[case]
    if layout in ("sparse_csc", "sparse_bsc"):
        shape = shape[::-1]

    def program(t):
        strided = t.tensor(starts)[::step] if isinstance(starts, list) else t.tensor(starts)
        elements = blocks_of(t, layout, [1, 2, 3, 4])
        kind = getattr(t, layout)
        return t.sparse_compressed_tensor(
            strided, t.tensor(places), elements, shape, layout=kind, check_invariants=True
        )

    assert outcome(adjoint, program) == outcome(torch, program)


def scattered(t, shape, sparse_dim=None):
    """Return coordinates with zeros at a third of the places."""
    x = t.arange(t.Size(shape).numel()).remainder(3).reshape(shape).float()
    return x.to_sparse(sparse_dim) if sparse_dim else x.to_sparse()


FURTHER = {
    "product broadcast to a dense factor": lambda t: (scattered(t, (3, 2)) * t.ones(2, 3, 2)).to_dense(),
    "product of dense dimensions": lambda t: (scattered(t, (3, 1), 1) * scattered(t, (3, 2), 1)).to_dense(),
    "product with a sparse number": lambda t: (scattered(t, (3, 2)) * t.tensor(2.0).to_sparse()).to_dense(),
    "product of other shapes": lambda t: scattered(t, (3, 2)) * scattered(t, (2, 2)),
    "conjugate": lambda t: t.tensor([1 + 2j, 0]).to_sparse().conj(),
    "blocks of one length": lambda t: t.ones(2, 2).to_sparse(layout=t.sparse_bsr, blocksize=(1,)),
    "blocks without height": lambda t: t.ones(2, 2).to_sparse(layout=t.sparse_bsr, blocksize=(0, 1)),
    "three sparse dimensions": lambda t: t.ones(2, 2, 2).to_sparse().to_sparse_csr(),
    "numbers of dimensions": lambda t: (t.eye(2).to_sparse()._dimI(), t.eye(2).to_sparse()._dimV()),
    "unequal counts": lambda t: t.tensor([[[1.0, 0.0]], [[1.0, 1.0]]]).to_sparse_csr(),
    "empty batch": lambda t: t.ones(0, 2, 2).to_sparse_csr(),
    "empty": lambda t: t.zeros(2, 3, 4, layout=t.sparse_csc),
    "empty vector": lambda t: t.empty(5, layout=t.sparse_csr),
    "indices of 32 bits": lambda t: (lambda x: (x + x, x.to_sparse_csc(), x.mT))(
        t.sparse_csr_tensor(t.tensor([0, 1, 2], dtype=t.int32), t.tensor([1, 0], dtype=t.int32), t.ones(2), (2, 2))
    ),
    "numbers of elements": lambda t: t.eye(2).to_sparse_csr().copy_(t.ones(2, 2).to_sparse_csr()),
    "numbers of blocks": lambda t: t.ones(2, 4).to_sparse_bsr((2, 2)).copy_(t.ones(2, 4).to_sparse_bsr((1, 4))),
    "shapes": lambda t: t.eye(2, 2).to_sparse_csr().copy_(t.eye(3, 2).to_sparse_csr()),
    "sums of shapes": lambda t: t.eye(2).to_sparse_csr() + t.ones(2, 1).to_sparse_csr(),
    "broadcast sum": lambda t: t.eye(2).to_sparse_csr() + t.ones(2, 1),
    "blocksize": lambda t: t.ones(4, 4).to_sparse_csr().to_sparse_bsr((3, 3)),
    "resized": lambda t: (lambda x: (x.shape, x._nnz()))(t.ones(2, 2, 3).to_sparse_csr().resize_(2, 1, 5)),
    "resized to a matrix": lambda t: (lambda x: (x.shape, x._nnz()))(t.ones(2, 2, 3).to_sparse_csr().resize_(1, 5)),
    "rows of a batch": lambda t: t._convert_indices_from_csr_to_coo(
        t.tensor([[0, 2, 3], [0, 1, 3]]), t.tensor([[0, 1, 1], [1, 0, 1]])
    ),
    "complex32": lambda t: t.tensor([[1 + 2j]], dtype=t.complex32).to_sparse_csr().conj_physical(),
}


@pytest.mark.parametrize("name", FURTHER)
def test_further_program_is_pytorchs(name):
    assert outcome(adjoint, FURTHER[name]) == outcome(torch, FURTHER[name])
