"""Released storages: the memory is freed, and the tensor keeps its shape."""

import numpy
import pytest

import adjoint as torch
from adjoint.kernels.shape import view as view_kernels


def test_a_storage_given_back_has_no_elements_to_read():
    x = torch.arange(4.0)
    assert x.storage().resize_(0).size() == 0
    assert x.storage().size() == x.untyped_storage().nbytes() == 0 and x.shape == (4,)
    with pytest.raises(RuntimeError, match="doesn't have storage"):
        x + 1


def test_memory_can_be_had_again():
    x = torch.arange(4.0)
    x.storage().resize_(0)
    x.storage().resize_(4)
    assert x.fill_(3.0).tolist() == [3.0] * 4
    x.storage().resize_(0)
    assert x.set_(torch.ones(4)).tolist() == [1.0] * 4


def test_a_larger_storage_keeps_the_elements():
    x = torch.arange(4.0)
    x.untyped_storage().resize_(32)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0] and x.untyped_storage().nbytes() == 32


def test_a_repeated_number_may_be_repeated_again():
    number = numpy.float64(2.0)  # the type of NumPy's results for zero-dimensional arrays
    once = view_kernels.expand(number, (3,))
    assert view_kernels.expand(once.reshape(3, 1), (3, 2)).tolist() == [[2.0, 2.0]] * 3


def test_a_storage_is_made_of_numbers_and_indexed():
    storage = torch.UntypedStorage([1, 2, 300])
    assert storage.tolist() == [1, 2, 44] and torch.UntypedStorage(5).nbytes() == 5
    storage[0] = 9
    storage[1:] = 7
    assert list(storage) == [9, 7, 7] and storage[-1] == 7
    with pytest.raises(IndexError, match="index 3 out of range for storage of size 3"):
        storage[3]
    with pytest.raises(RuntimeError, match="only a step of 1"):
        storage[::2]
    with pytest.raises(RuntimeError, match="of type float instead of int"):
        torch.UntypedStorage([1, 1.5])


def test_a_slice_of_a_storage_shares_its_memory_and_begins_there():
    storage = torch.UntypedStorage(range(8))
    part = storage[4:8]
    part.fill_(3)
    assert storage.tolist() == [0, 1, 2, 3, 3, 3, 3, 3]
    seen = torch.empty(0, dtype=torch.uint8).set_(part)
    assert seen.storage_offset() == 0 and seen.data_ptr() == storage.data_ptr() + 4
    assert torch.asarray(part, dtype=torch.int32).tolist() == [0x03030303]
    assert torch.asarray(part, dtype=torch.uint8).data_ptr() == part.data_ptr()


def test_storages_are_copied_and_converted():
    storage = torch.UntypedStorage([1, 2])
    assert storage.clone() != storage and storage.clone().tolist() == [1, 2]
    assert storage.float().tolist() == [1.0, 2.0] and storage.float().type() == "torch.FloatStorage"
    assert torch.ones(2).storage().double().nbytes() == 16
    with pytest.raises(RuntimeError, match="size does not match, self was 2 bytes but src was 3 bytes"):
        storage.copy_(torch.UntypedStorage(3))
    assert torch.UntypedStorage.from_buffer(b"abcd", "big", dtype=torch.int16).tolist() == [98, 97, 100, 99]


def test_a_file_is_mapped(tmp_path):
    path = str(tmp_path / "numbers")
    written = torch.from_file(path, shared=True, size=3)
    written.copy_(torch.tensor([1.0, 2.0, 3.0]))
    assert torch.from_file(path, size=2).add_(5).tolist() == [6.0, 7.0]
    assert torch.from_file(path, shared=False, size=3).tolist() == [1.0, 2.0, 3.0]
    storage = torch.UntypedStorage.from_file(path, False, 12)
    assert torch.asarray(storage[4:8], dtype=torch.uint8).view(torch.float32).tolist() == [2.0]
    assert storage.filename is None and torch.UntypedStorage.from_file(path, True, 4).filename == path
    assert written.is_shared() and not written.untyped_storage().resizable()
    with pytest.raises(RuntimeError, match=r"size <12> is smaller than the required mapping size <40>"):
        torch.from_file(path, size=10)
    with pytest.raises(RuntimeError, match="unable to open file"):
        torch.from_file(path + "?", size=1)


@pytest.mark.thorough
def test_storages_move_to_shared_memory_and_take_their_tensors_along():
    x = torch.arange(6.0)
    part, other = x[2:4], x.untyped_storage()
    storage = x.untyped_storage()
    assert storage.share_memory_() is storage
    assert storage.is_shared()
    assert other.is_shared()
    assert x.is_shared()
    assert part.is_shared()
    x[2] = 7.0
    assert part.tolist() == [7.0, 3.0]
    assert storage.data_ptr() == other.data_ptr() == x.data_ptr()
    assert torch.UntypedStorage(0).share_memory_().is_shared()
    assert torch.ones(3).storage().share_memory_().is_shared()
    assert x.storage().share_memory_().data_ptr() == x.data_ptr()
    resized = torch.ones(2)
    resized.untyped_storage().share_memory_()
    assert resized.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="only available on CPU"):
        torch.ones(3, device="meta").untyped_storage().share_memory_()


def test_a_single_complex_number_has_gradients_through_its_parts():
    x = torch.tensor([3.0, 4.0], dtype=torch.float64, requires_grad=True)
    torch.view_as_complex(x).abs().backward()
    assert x.grad.tolist() == [0.6, 0.8]
