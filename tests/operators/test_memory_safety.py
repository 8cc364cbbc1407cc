"""One function checks every size, stride and offset against the existing memory.

`tests/reliability/memory.py` makes random calls of all functions that accept sizes, strides or offsets. The tests here
check the error messages.
"""

import ast
from pathlib import Path

import numpy
import pytest

import adjoint as torch


@pytest.mark.thorough
def test_only_the_storage_looks_where_numpy_does_not_check():
    """Only three modules call `numpy.lib.stride_tricks.as_strided`, which can create arrays outside of any buffer.

    `numpy.ndarray` creates arrays only within a buffer.
    """
    package = Path(
        torch.__file__
    ).parent  # `codegen` repeats operands and `compiler` outlines, but never with sizes from users
    unchecked = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if "stride_tricks" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if "stride_tricks" in (getattr(node, "attr", ""), *str(getattr(node, "module", "")).split("."))
    }
    assert unchecked == {"codegen/numpy_tiles.py", "compiler/blocks.py", "kernels/memory/storage.py"}


def numbers():
    return numpy.arange(24, dtype=numpy.float32)


@pytest.mark.parametrize("source", [lambda x: x, lambda x: x.storage(), lambda x: x.untyped_storage()])
@pytest.mark.parametrize("place", [(0, (3,), (-1,)), (-1, (3,), (1,)), (0, (25,), (1,)), (2**62, (2,), (1,))])
@pytest.mark.parametrize("array", [numbers(), numbers().reshape(4, 6).T, numbers()[::-1].copy()[::2]])
def test_set_stays_within_arrays(array, source, place):
    x = torch.empty(0)
    with pytest.raises(RuntimeError):
        x.set_(source(torch.from_numpy(array)), *place)
    assert x.shape == (0,) and x._version == 0
    assert x.resize_as_(torch.ones(2, 2)).shape == (2, 2)


def test_a_storage_of_an_array_reaches_from_its_first_to_its_last_element():
    assert torch.from_numpy(numbers()[::2]).untyped_storage().nbytes() == 23 * 4
    assert torch.from_numpy(numpy.lib.stride_tricks.as_strided(numbers(), (100,), (0,))).untyped_storage().nbytes() == 4
    transposed = torch.from_numpy(numbers().reshape(4, 6).T)
    assert transposed.as_strided((24,), (1,)).tolist() == list(range(24))
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 96"):
        transposed.as_strided((25,), (1,))


def test_memory_from_outside_is_not_resized():
    x = torch.from_numpy(numbers())
    for grow in (lambda: x.resize_(25), lambda: torch.empty(0).set_(x, 0, (25,)), lambda: x.storage().resize_(2)):
        with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
            grow()
    assert x.shape == (24,) and x.resize_(4, 5).shape == (4, 5)


def test_a_tensor_is_set_to_the_resized_source():
    x = torch.arange(4.0)
    y = torch.empty(0).set_(x, 1, (2, 3))
    y.fill_(7)
    assert x.tolist() == [0, 7, 7, 7] and x.untyped_storage().nbytes() == 28
    z = torch.empty(0).set_(x[2:], 1, (1,))
    assert z.storage_offset() == 3


def test_arrays_that_step_by_parts_of_elements_are_refused():
    array = numpy.zeros(4, dtype=[("a", "f4"), ("b", "i1")])["a"]
    with pytest.raises(ValueError, match="given numpy array strides not a multiple of the element byte size"):
        torch.from_numpy(array)


def test_indices_written_to_an_expanded_tensor_warn():
    x, index = torch.zeros(1).expand(4), torch.tensor([2, 0])
    with pytest.warns(UserWarning, match="Use of index_put_ on expanded tensors is deprecated"):
        x.index_put_((index,), torch.tensor([1.0, 2.0]))
    assert x.tolist() == [2.0] * 4
    with pytest.warns(UserWarning, match="Use of index_fill_ on expanded tensors is deprecated"):
        x.index_fill_(0, index, 3.0)
    assert x.tolist() == [3.0] * 4


def test_indices_and_masks_that_are_written_themselves_are_refused():
    index, mask = torch.tensor([2, 1, 0]), torch.tensor([True, False, True])
    for change in (lambda: index.index_put_((index,), index.clone()), lambda: mask[1:].masked_fill_(mask[:-1], False)):
        with pytest.raises(RuntimeError, match="unsupported operation"):
            change()
