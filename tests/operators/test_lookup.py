"""Membership, coordinates of indices, reductions at indices, and window functions."""

import numpy
import pytest

import adjoint as torch
from adjoint._runtime import tracebacks


@pytest.mark.parametrize("count", [0, 3, 200])
def test_isin_is_numpys(count):
    generator = numpy.random.default_rng(0)
    elements, tests = generator.integers(0, 300, (10, 4)), generator.integers(0, 300, count)
    for invert in (False, True):
        found = torch.isin(torch.from_numpy(elements), torch.from_numpy(tests), invert=invert)
        assert (found.numpy() == numpy.isin(elements, tests, invert=invert)).all()


def test_isin_of_numbers():
    assert torch.isin(torch.tensor([1, 2]), 2).tolist() == [False, True]
    assert torch.isin(2, torch.tensor([1, 2])).item() is True
    assert torch.isin(torch.tensor([float("nan")]), torch.tensor([float("nan")])).tolist() == [False]
    with pytest.raises(RuntimeError, match=r"Unsupported input type encountered for isin\(\): Bool"):
        torch.isin(torch.tensor([True]), torch.tensor([True]))
    with pytest.raises(TypeError, match=r"invalid combination of arguments - got \(int, int\)"):
        torch.isin(1, 2)


def test_unravel_index_is_numpys():
    indices = torch.tensor([[0, 5], [23, 11]])
    for ours, theirs in zip(
        torch.unravel_index(indices, (2, 3, 4)), numpy.unravel_index(indices.numpy(), (2, 3, 4)), strict=True
    ):
        assert (ours.numpy() == theirs).all()
    with pytest.raises(TypeError, match=r"expected 'indices' to be integer dtype, but got torch\.float32"):
        torch.unravel_index(torch.ones(1), (2,))
    for shape in (torch.tensor([1, 2, 3]), 1.5, {1, 2}):
        with pytest.raises(TypeError, match="expected 'shape' to be int or sequence of ints, but got <class"):
            torch.unravel_index(torch.tensor([1]), shape)


def test_nonzero_of_a_given_size():
    x = torch.tensor([[1, 0], [0, 2]])
    assert torch.nonzero_static(x, size=3).tolist() == [[0, 0], [1, 1], [-1, -1]]
    assert x.nonzero_static(size=1, fill_value=9).tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("name", "parameters"), [("bartlett", ()), ("blackman", ()), ("hamming", ()), ("hanning", ()), ("kaiser", (12.0,))]
)
def test_windows_are_numpys(name, parameters):
    function = getattr(torch, {"hanning": "hann"}.get(name, name) + "_window")
    for length in (1, 2, 7):
        window = function(length, False, dtype=torch.float64)
        numpy.testing.assert_allclose(window.numpy(), getattr(numpy, name)(length, *parameters), atol=1e-15)
        longer = getattr(numpy, name)(length + 1, *parameters)[:-1] if length > 1 else [1.0]
        numpy.testing.assert_allclose(function(length, dtype=torch.float64).numpy(), longer, atol=1e-15)
    assert function(0).shape == (0,)
    with pytest.raises(RuntimeError, match="requires non-negative window_length, got window_length=-1"):
        function(-1)


@pytest.mark.parametrize(
    ("reduce", "combine"), [("prod", numpy.prod), ("amax", numpy.max), ("amin", numpy.min), ("mean", numpy.mean)]
)
@pytest.mark.parametrize("include_self", [True, False])
def test_index_reduce_combines_slices(reduce, combine, include_self):
    generator = numpy.random.default_rng(0)
    x, source, index = (
        generator.standard_normal((3, 4)),
        generator.standard_normal((5, 4)),
        numpy.array([0, 2, 0, 0, 2]),
    )
    expected = x.copy()
    for row in (0, 2):
        parts = [*([x[row]] if include_self else []), *source[index == row]]
        expected[row] = combine(parts, axis=0)
    ours = torch.index_reduce(
        torch.from_numpy(x), 0, torch.from_numpy(index), torch.from_numpy(source), reduce, include_self=include_self
    )
    numpy.testing.assert_allclose(ours.numpy(), expected)


def test_frexp():
    x = torch.tensor([5.0, -0.75, 0.0, float("inf")], requires_grad=True)
    mantissa, exponent = torch.frexp(x)
    assert mantissa.tolist() == [0.625, -0.75, 0.0, float("inf")] and exponent.tolist() == [3, 0, 0, 0]
    mantissa[:2].sum().backward()
    assert x.grad.tolist() == [0.125, 1.0, 0.0, 0.0]
    with pytest.raises(RuntimeError, match=r"torch\.frexp\(\) only supports floating-point dtypes"):
        torch.frexp(torch.tensor([1]))


@pytest.mark.parametrize("rows", [1, 5, 63, 64, 300])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("right", [False, True])
def test_rows_are_searched_one_by_one_or_at_once_with_the_same_result(rows, dtype, right):
    torch.manual_seed(0)
    dtype = getattr(torch, dtype)
    sequences = (torch.rand(rows, 9) * 20).to(dtype).sort(-1).values
    values = (torch.rand(rows, 4) * 22 - 1).to(dtype)
    values[0, 0] = sequences[0, 3]
    expected = [
        numpy.searchsorted(*pair, "right" if right else "left")
        for pair in zip(sequences.numpy(), values.numpy(), strict=True)
    ]
    assert torch.searchsorted(sequences, values, right=right).tolist() == numpy.array(expected).tolist()


def test_searchsorted_warns_of_inputs_that_it_copies(monkeypatch):
    monkeypatch.setattr(tracebacks, "_given", set())
    rows = torch.arange(6.0).reshape(2, 3)
    columns = rows.T
    for name, call in {
        "input value": lambda: torch.bucketize(columns, rows[0]),
        "boundary": lambda: torch.searchsorted(rows[:, 0], 2.0),
        "sorter": lambda: torch.searchsorted(rows.T.contiguous(), rows.T.contiguous(), sorter=rows.argsort(0).T),
    }.items():
        with pytest.warns(UserWarning, match=rf"searchsorted\(\): {name} tensor is non-contiguous"):
            call()
        call()


def test_gather_can_write_to_its_index_but_not_to_its_input():
    x, index = torch.tensor([[3, 4, 5]]), torch.tensor([[2, 0, 1]])
    assert torch.gather(x, 1, index.clone(), out=(out := index.clone())) is out and out.tolist() == [[5, 3, 4]]
    assert torch.gather(x, 1, index, out=index).tolist() == [[5, 3, 4]] == index.tolist()
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.gather(x, 1, torch.tensor([[2, 0, 1]]), out=x)
    memory = torch.zeros(1, 4, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.gather(x, 1, memory[:, :3], out=memory[:, 1:])


_VECTOR, _COLUMN, _MASK = [2, 0, 1], [[1], [0]], [True, False, True, True]
MIXED_KEYS = [
    (_VECTOR, slice(1, 4)), (slice(1, 4), _VECTOR), (0, _VECTOR), (_VECTOR, 0), (..., _VECTOR), (_VECTOR, ..., None),
    (None, _VECTOR), (slice(None, None, 2), _VECTOR, None), (_COLUMN, _VECTOR), (_COLUMN, slice(1, 3), _VECTOR),
    (_MASK, slice(1, 3)), (_MASK, 2, _VECTOR), (slice(1, None), None, _VECTOR, 3), (..., _COLUMN, 0), ([-1, -4], -1),
]  # fmt: skip


@pytest.mark.parametrize("tensors", [False, True])
@pytest.mark.parametrize("key", MIXED_KEYS, ids=str)
def test_keys_of_basic_parts_and_indices_are_numpys_after_the_basic_parts(key, tensors):
    """PyTorch makes the views of all basic parts first, and then one `index`."""
    array = numpy.arange(120.0).reshape(4, 5, 6)
    given = tuple(torch.tensor(part) if tensors and isinstance(part, list) else part for part in key)
    first, index, dim = array, [], 0
    for part in key:
        if part is ...:
            length = array.ndim - sum(other is not None and other is not ... for other in key)
            index += [slice(None)] * length
            dim += length
        elif isinstance(part, list):
            index.append(numpy.array(part))
            dim += 1
        else:
            first = first[(*[slice(None)] * dim, part)]
            if not isinstance(part, int):
                index.append(slice(None))
                dim += 1
    expected = first[tuple(index)]
    x = torch.tensor(array, requires_grad=True)
    found = x[given]
    assert found.shape == expected.shape
    numpy.testing.assert_array_equal(found.detach().numpy(), expected)
    found.sum().backward()
    counts = numpy.zeros(array.shape)
    numpy.add.at(counts.reshape(-1), expected.astype(int).reshape(-1), 1)
    numpy.testing.assert_array_equal(x.grad.numpy(), counts)
    changed = torch.tensor(array)
    changed[given] = -1.0
    numpy.testing.assert_array_equal(changed.numpy(), numpy.where(counts > 0, -1, array))
