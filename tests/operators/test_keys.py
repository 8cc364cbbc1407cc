"""Keys of tensors: `x[key]` and `x[key] = value`."""

import pytest

import adjoint as torch


@pytest.mark.parametrize(
    "key",
    [
        (slice(None), ..., 0),
        (slice(None), None, ..., 0),
        (torch.tensor([0]), None, ..., 0),
        ([0, 1], ..., [1]),
        ([True, False], ..., 0),
    ],
)
def test_parts_of_a_key_do_not_cover_a_dimension_twice(key):
    x = torch.arange(2.0)
    with pytest.raises(IndexError, match="too many indices"):
        x[key]
    with pytest.raises(IndexError, match="too many indices"):
        x[key] = 7.0
    assert x.tolist() == [0.0, 1.0]
