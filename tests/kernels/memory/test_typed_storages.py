"""Typed storages, storages on the device `meta`, and tensors made from storages."""

import copy
import io
import warnings

import pytest

import adjoint as torch
from adjoint.torch_names import storage as names


@pytest.fixture(autouse=True)
def _warns_again():
    names._reset_warn_typed_storage_removal()
    yield
    names._set_always_warn_typed_storage_removal(False)


def warnings_of(*uses):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for use in uses:
            use()
    return [warning.filename for warning in caught]


def test_the_first_use_of_a_typed_storage_warns_at_the_line_of_the_user():
    assert warnings_of(torch.FloatStorage, torch.ones(2).storage, lambda: torch.FloatStorage.dtype) == [__file__]


def test_each_public_use_warns_once_if_asked_for_and_internal_names_never_do():
    storage = torch.FloatStorage(3, _internal=True)
    names._set_always_warn_typed_storage_removal(True)
    public = [
        lambda: storage.fill_(0),
        lambda: storage.size(),
        lambda: storage.is_cuda,
        lambda: len(storage),
        lambda: storage[0],
    ]
    assert [len(warnings_of(use)) for use in public] == [1] * len(public)
    internal = [storage._size, storage._nbytes, storage._data_ptr, storage._is_shared, lambda: storage._resize_(4)]
    assert (
        warnings_of(*internal, lambda: torch.ones(2)._typed_storage(), lambda: torch.save(storage, io.BytesIO())) == []
    )


def test_a_tensor_made_from_a_storage_shares_its_memory_and_checks_its_dtype():
    storage = torch.UntypedStorage([0, 0, 128, 63])
    tensor = torch.tensor(storage, dtype=torch.float32)
    assert tensor.tolist() == [1.0]
    tensor.fill_(2.0)
    assert storage.tolist() == [0, 0, 0, 64] and torch.as_tensor(storage).dtype is torch.int64
    with pytest.raises(RuntimeError, match="Expected a Storage of type Float or an UntypedStorage, but got Int"):
        torch.tensor(torch.IntStorage([1]))


def test_a_storage_on_meta_has_a_size_and_no_elements():
    storage = torch.TypedStorage([1, 2, 3], dtype=torch.float32, device="meta")
    assert (storage.nbytes(), storage.size(), storage.data_ptr(), storage.is_shared()) == (12, 3, 0, False)
    assert storage.resize_(5).size() == 5 and storage.clone().device.type == "meta" and "..." in repr(storage)
    for use in (lambda: storage[0], storage.tolist):
        with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
            use()
    other = torch.TypedStorage(5, dtype=torch.float32)
    for use in (storage.cpu, lambda: other.copy_(storage), lambda: storage._write_file(io.BytesIO(), False, True, 4)):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
            use()
    for use in (storage.share_memory_, storage._share_fd_cpu_, storage._share_filename_cpu_):
        with pytest.raises(RuntimeError, match="only available on CPU"):
            use()


def test_a_deep_copy_keeps_what_shares_memory():
    x = torch.arange(4.0)
    tensor, storage = copy.deepcopy([x, x.untyped_storage()])
    tensor.fill_(7.0)
    assert torch.tensor(storage, dtype=torch.float32).tolist() == [7.0] * 4 and x[1] == 1


def test_storages_exchange_their_memory():
    x, y = torch.zeros(2), torch.ones(2)
    x.untyped_storage()._swap_data_ptr_(y.untyped_storage())
    assert (x.tolist(), y.tolist()) == ([1.0, 1.0], [0.0, 0.0])
    with pytest.raises(RuntimeError, match="same nbytes or one must have 0, got 8 and 4"):
        x.untyped_storage()._swap_data_ptr_(torch.ones(1).untyped_storage())


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: torch.TypedStorage(0, 0), RuntimeError, "Too many positional arguments"),
        (lambda: torch.TypedStorage(wrap_storage=torch.UntypedStorage(1)), RuntimeError, "'dtype' must be specified"),
        (lambda: torch.TypedStorage(wrap_storage=torch.UntypedStorage(1), dtype=0), TypeError, "must be torch.dtype"),
        (lambda: torch.TypedStorage(torch.ones(1), dtype=torch.int8), TypeError, "Argument type not recognized"),
        (lambda: torch.FloatStorage(device="cpu"), RuntimeError, "'device' cannot be specified"),
        (lambda: torch.FloatStorage(elements=1), TypeError, "unexpected keyword argument 'elements'"),
        (lambda: torch.FloatStorage("12"), TypeError, "invalid data type 'str'"),
        (lambda: torch.FloatStorage(1).fill_(torch.FloatStorage(1)), RuntimeError, "cannot set item with value type"),
        (torch._C.StorageBase, RuntimeError, "Cannot directly construct StorageBase"),
        (
            lambda: type("Kind", (torch.FloatTensor,), {}),
            TypeError,
            "'torch.FloatTensor' is not an acceptable base type",
        ),
    ],
)
def test_arguments_that_make_no_storage(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_set_keeps_within_a_storage_unless_the_size_changes():
    x = torch.ones(1)
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 4"):
        x.set_(x.untyped_storage(), 9, x.size())
    assert x.set_(x.untyped_storage(), 9, (2,)).storage_offset() == 9
