"""Reductions of sparse tensors by masks: the stored elements that the mask selects, in the layout of the tensor."""

import pytest

import adjoint as torch
from adjoint import masked

X = torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 4.0]])
MASK = torch.tensor([[True, True, True], [False, False, True]])
LAYOUTS = {torch.sparse_coo: torch.Tensor.to_sparse, torch.sparse_csr: torch.Tensor.to_sparse_csr}


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("dim", [0, 1, (0, 1), None])
@pytest.mark.parametrize("of_mask", [*LAYOUTS, torch.strided], ids=str)
def test_reductions_are_those_of_dense_tensors(layout, name, dim, of_mask):
    if name == "mean" and layout is torch.sparse_coo:
        with pytest.raises(ValueError, match="masked mean expects strided or sparse_csr tensor"):
            masked.mean(X.to_sparse(), 0, mask=MASK)
        return
    mask = LAYOUTS[of_mask](MASK) if of_mask in LAYOUTS else MASK
    reduction = getattr(masked, name)
    found = reduction(LAYOUTS[layout](X), dim, keepdim=True, mask=mask)
    assert found.layout is layout
    torch.testing.assert_close(found.to_dense(), reduction(X, dim, keepdim=True, mask=MASK))


def test_results_store_an_element_for_each_group_of_selected_elements():
    found = masked.sum(X.to_sparse(), 1, mask=torch.tensor([[False, True, False], [False, False, False]]))
    assert found._indices().tolist() == [[0]]
    assert found._values().tolist() == [0]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_mask_keeps_the_selected_elements_of_a_sparse_tensor(layout):
    mask = LAYOUTS[layout](MASK)
    kept = masked._combine_input_and_mask(masked.amax, LAYOUTS[layout](X), mask)
    assert kept.layout is layout
    assert kept.values().tolist() == [1, 0, 2, 4]
    assert masked._combine_input_and_mask(masked.amax, X, MASK).tolist()[1] == [-torch.inf, -torch.inf, 4]


def test_what_needs_a_dense_tensor_or_a_mask_says_so():
    with pytest.raises(ValueError, match=r"masked softmax expects strided tensor \(got torch.sparse_coo tensor\)"):
        masked.softmax(X.to_sparse(), 0)
    with pytest.raises(ValueError, match="masked prod expects explicit mask for sparse_csr tensor input"):
        masked.prod(X.to_sparse_csr(), 0)
    with pytest.raises(AssertionError, match="keepdim=False is unsupported"):
        masked.amax(X.to_sparse_csr(), 0, mask=MASK)


def test_identities_of_reductions():
    assert masked._reduction_identity("norm", X, -torch.inf) == torch.inf
    assert masked._reduction_identity("amin", X.to(torch.uint8)) == 255
    assert masked._reduction_identity("mean", X) is None
    with pytest.raises(NotImplementedError, match=r"identity of amax on torch.bool input"):
        masked._reduction_identity("amax", MASK)
    with pytest.raises(AssertionError, match=r"input must be floating point, got torch.int32"):
        masked.norm(X.to(torch.int32), -torch.inf, mask=MASK)
