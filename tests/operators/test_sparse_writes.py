"""Writes to sparse tensors and from sparse tensors: in place, with `out=`, with other dtypes, at every size."""

import itertools

import pytest

import adjoint as torch

FIRST, SECOND = torch.tensor([[0, 1, 0], [2, 0, 3]]), torch.tensor([[4, 5, 0], [0, 0, 6]])
MAKE = {
    "dense": lambda x: x.clone(),
    "coo": lambda x: x.to_sparse(),
    "rows": lambda x: x.to_sparse(1),
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((1, 1)),
    "bsc": lambda x: x.to_sparse_bsc((1, 1)),
}
LAYOUTS = [layout for layout in MAKE if layout != "dense"]


def matrix(values, layout, dtype=torch.float32, size=(2, 3)):
    """Return a matrix of zeros with the values in its corner."""
    whole = torch.zeros(size, dtype=dtype)
    whole[:2, :3] = values.to(dtype)
    return MAKE[layout](whole)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("key", [0, (0, 1), slice(1), ..., torch.tensor([0]), torch.ones(2, 3).bool()], ids=str)
@pytest.mark.parametrize("value", [1.0, torch.ones(())])
def test_parts_of_sparse_tensors_are_not_assigned_to(layout, key, value):
    x = matrix(FIRST, layout)
    with pytest.raises(TypeError, match="Cannot assign to a sparse tensor"):
        x[key] = value
    assert x.to_dense().equal(FIRST.float())


CHANGES = {
    "mul_ by number": lambda x, y: x.mul_(2),
    "mul_ by dense": lambda x, y: x.mul_(SECOND.float()),
    "mul_": lambda x, y: x.mul_(y),
    "div_": lambda x, y: x.div_(2),
    "add_": lambda x, y: x.add_(y),
    "add_ with alpha": lambda x, y: x.add_(y, alpha=3),
    "sub_": lambda x, y: x.sub_(y),
    "neg_": lambda x, y: x.neg_(),
    "sin_": lambda x, y: x.sin_(),
    "zero_": lambda x, y: x.zero_(),
    "copy_": lambda x, y: x.copy_(y),
    "t_": lambda x, y: x.t_(),
    "transpose_": lambda x, y: x.transpose_(0, 1),
}


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout != "rows"])
@pytest.mark.parametrize("name", CHANGES)
def test_changes_in_place(name, layout):
    x, y, expected = matrix(FIRST, layout), matrix(SECOND, layout), FIRST.float()
    change = CHANGES[name]
    assert change(x, y) is x
    change(expected, SECOND.float())
    torch.testing.assert_close(x.to_dense(), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_dense_tensors_take_sparse_factors_and_terms(layout):
    for name in ("mul_", "add_", "sub_"):
        x, expected = SECOND.double(), SECOND.double()
        getattr(x, name)(matrix(FIRST, layout))
        assert x.equal(getattr(expected, name)(FIRST))


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "bsc"])
def test_transposed_compressed_tensors_share_their_values(layout):
    x = matrix(FIRST, layout)
    x.t().mul_(2)
    assert x.to_dense().equal(2 * FIRST.float())
    x.fill_(1.0)
    assert x.to_dense().equal((FIRST > 0).float())


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("function", [torch.add, torch.sub, torch.mul, torch.sin])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_results_are_written_in_the_layout_of_out(function, layout, dtype):
    x, y = matrix(FIRST, layout), matrix(SECOND, layout)
    args, dense = ((x,), (FIRST.float(),)) if function is torch.sin else ((x, y), (FIRST, SECOND))
    for target in (matrix(SECOND, layout, dtype), torch.zeros(2, 3, dtype=dtype)):
        before = target.layout
        assert function(*args, out=target) is target
        assert target.layout is before
        torch.testing.assert_close(target.to_dense(), function(*dense).to(dtype))


OPERATIONS = {
    "add": lambda x, y: x + y,
    "alpha": lambda x, y: torch.add(x, y, alpha=2),
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "add_": lambda x, y: x.clone().add_(y),
    "sub_": lambda x, y: x.clone().sub_(y),
    "mul_": lambda x, y: x.clone().mul_(y),
    "out": lambda x, y: torch.mul(x, y, out=(x.clone() * y).double()),
    "converted": lambda x, y: y.to(x.dtype),
}
DTYPES = [torch.float32, torch.float64, torch.int64, torch.bfloat16, torch.complex64]


def outcome(function, *args):
    """Return the corner of a result, with its layout and dtype, or the error."""
    try:
        result = function(*args)
    except RuntimeError as error:
        return type(error), str(error).split("[")[0]
    return result.layout, result.dtype, result.to_dense()[:2, :3].tolist()


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("name", OPERATIONS)
def test_sizes_change_no_answers(name):
    for one, other in itertools.product(("dense", "coo", "csr"), repeat=2):
        for kind, another in itertools.product(DTYPES, repeat=2):
            if one != "dense" or other != "dense":
                results = []
                for shape in ((2, 3), (80, 300)):
                    args = matrix(FIRST, one, kind, shape), matrix(SECOND, other, another, shape)
                    results.append(outcome(OPERATIONS[name], *args))
                assert results[0] == results[1], (one, other, kind, another)


def test_a_dense_operand_of_another_dtype_is_added_as_it_is_at_small_sizes():
    x, y = matrix(FIRST, "dense", size=(80, 300)), matrix(SECOND, "coo", torch.int64, (80, 300))
    assert (x + y)[:2, :3].equal((FIRST + SECOND).float())
    assert x.double().add_(y.float())[:2, :3].equal((FIRST + SECOND).double())


ALONG = {
    "sum": lambda x, dim: x.sum(dim, keepdim=True),
    "sparse.sum": lambda x, dim: torch.sparse.sum(x, dim),
    "select": lambda x, dim: x.select(dim, 0),
    "index_select": lambda x, dim: x.index_select(dim, torch.tensor([0])),
    "unbind": lambda x, dim: x.unbind(dim),
    "transpose": lambda x, dim: x.transpose(dim, 0),
    "permute": lambda x, dim: x.permute(dim, 0),
    "cat": lambda x, dim: torch.cat([x, x], dim),
    "softmax": lambda x, dim: torch.sparse.softmax(x, dim),
    "unsqueeze": lambda x, dim: x.unsqueeze(dim + (1 if dim > 0 else -1)),
}


@pytest.mark.parametrize("dim", [5, 2, -3])
@pytest.mark.parametrize("name", ALONG)
def test_dimensions_that_are_none_are_refused(name, dim):
    with pytest.raises(IndexError, match="Dimension out of range"):
        ALONG[name](matrix(FIRST, "coo"), dim)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.uint8, torch.float16])
def test_elements_at_one_place_are_added_up_in_their_dtype(dtype):
    x = torch.sparse_coo_tensor([[0, 0]], torch.tensor([1, 1], dtype=dtype), (2,))
    assert x.coalesce().dtype is dtype
    assert (x // 2).to_dense().tolist() == [1, 0]
    assert torch.sparse.sum(torch.stack([x, x]), 0).dtype is dtype


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.complex64])
def test_stacks_of_products(dtype):
    x = torch.stack([FIRST, SECOND]).to(dtype)
    y = torch.arange(12).reshape(2, 3, 2).to(dtype)
    expected = torch.bmm(x, y)
    for product in (torch.bmm, torch.matmul, lambda x, y: torch.bmm(x, y, out=torch.empty(0, dtype=dtype))):
        assert product(x.to_sparse(), y).equal(expected)
    for wrong in ((x.to_sparse(), y[:1]), (x.to_sparse(), y[:, :2]), (x, y.to_sparse()), (x.to_sparse(2), y)):
        with pytest.raises(RuntimeError, match="bmm_sparse"):
            torch.bmm(*wrong)
