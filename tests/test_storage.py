"""Released storages: the memory is freed, the tensor's shape stays."""

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
    number = numpy.float64(2.0)  # what NumPy gives for arithmetic on arrays of no dimension
    once = view_kernels.expand(number, (3,))
    assert view_kernels.expand(once.reshape(3, 1), (3, 2)).tolist() == [[2.0, 2.0]] * 3
