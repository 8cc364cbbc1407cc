"""Masked tensors with sparse data: functions of the stored elements, conversions between layouts, and refusals."""

import pytest

import adjoint as torch
from adjoint.masked import masked_tensor
from adjoint.masked.maskedtensor.core import _masks_match, _tensors_match

DATA = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
MASK = torch.tensor([[True, False, True], [False, True, False]])
LAYOUTS = {"to_sparse": torch.sparse_coo, "to_sparse_csr": torch.sparse_csr}


def sparse(convert):
    return masked_tensor(getattr(DATA, convert)(), getattr(MASK, convert)())


@pytest.mark.parametrize("convert", LAYOUTS)
def test_elementwise_functions_change_the_stored_elements(convert):
    x, dense = sparse(convert), masked_tensor(DATA, MASK)
    for function in (torch.exp, lambda t: t + t, lambda t: 2 * t, torch.ops.aten.log, lambda t: t < 4):
        found, expected = function(x), function(dense)
        assert found.layout is LAYOUTS[convert]
        assert _masks_match(found, x)
        torch.testing.assert_close(found.get_data().to_dense()[MASK], expected.get_data()[MASK])
    x.neg_()
    assert x.get_data().values().tolist() == [-1, -3, -5]


@pytest.mark.parametrize("convert", LAYOUTS)
def test_reductions_of_all_stored_elements(convert):
    x, dense = sparse(convert), masked_tensor(DATA, MASK)
    for name in ("sum", "mean", "amax", "argmax", "prod"):
        assert getattr(torch, name)(x).get_data() == getattr(torch, name)(dense).get_data(), name
    with pytest.raises(TypeError, match="no implementation found for 'sum'"):
        x.sum(0)


@pytest.mark.parametrize("convert", [*LAYOUTS, "to_sparse_coo", "to_dense"])
@pytest.mark.parametrize(
    "make", [lambda: masked_tensor(DATA, MASK), lambda: sparse("to_sparse"), lambda: sparse("to_sparse_csr")]
)
def test_conversions_keep_the_valid_elements(make, convert):
    x = make()
    found = getattr(x, convert)()
    assert (found.is_sparse_coo(), found.is_sparse_csr()) == ("coo" in str(found.layout), "csr" in str(found.layout))
    assert _tensors_match(found.get_mask().to_dense(), MASK)
    assert _tensors_match(found.get_data().to_dense()[MASK], DATA[MASK])
    assert repr(found) == repr(masked_tensor(DATA, MASK))


def test_data_and_mask_have_one_layout():
    with pytest.raises(TypeError, match="data and mask must have the same layout"):
        masked_tensor(DATA.to_sparse(), MASK)
    with pytest.raises(TypeError, match=r"data layout of torch.sparse_bsr is not supported"):
        masked_tensor(DATA.to_sparse_bsr((1, 1)), MASK.to_sparse_bsr((1, 1)))
    with pytest.raises(ValueError, match="Neither `a` nor `b` can be a MaskedTensor"):
        _tensors_match(masked_tensor(DATA, MASK), DATA)


def test_a_valid_element_is_a_python_number():
    x = masked_tensor(DATA, MASK)
    assert float(x[0, 0]) == 1
    assert bool(x[0, 0])
    assert torch.where(MASK, x, DATA).get_mask().all()
