"""`adjoint.testing`: closeness, messages about differences, and tensors of random values."""

import numpy
import pytest

import adjoint as torch
from adjoint.testing import assert_allclose, assert_close, make_tensor


def test_close_values_raise_nothing():
    assert_close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0 + 1e-7]))
    assert_close({"a": [1, None], "b": (2.0, True)}, {"a": (1, None), "b": [2.0, True]})
    assert_close(numpy.array([1.0]), numpy.array([1.0]))
    assert_close(torch.tensor([float("nan")]), torch.tensor([float("nan")]), equal_nan=True)
    assert_close(torch.tensor([1]), torch.tensor([1.0]), check_dtype=False)
    assert_close(torch.tensor([1.0]), torch.tensor([1.5]), rtol=0, atol=0.5)


def test_the_message_says_where_and_how_much():
    with pytest.raises(AssertionError) as caught:
        assert_close([torch.tensor([1.0, 2.0, 3.0])], [torch.tensor([1.0, 2.0, 4.0])])
    assert str(caught.value) == (
        "Tensor-likes are not close!\n\nMismatched elements: 1 / 3 (33.3%)\n"
        "Greatest absolute difference: 1.0 at index (2,) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.25 at index (2,) (up to 1.3e-06 allowed)\n\nThe failure occurred for item [0]"
    )


@pytest.mark.parametrize(
    ("actual", "expected", "words"),
    [
        (torch.ones(1), torch.ones(2), "'shape' do not match: torch.Size([1]) != torch.Size([2])"),
        (torch.ones(1), torch.ones(1).double(), "'dtype' do not match: torch.float32 != torch.float64"),
        (1, 2, "Scalars are not equal!"),
        (1.0, float("nan"), "Scalars are not close!"),
        (1, 1.0, "The (d)types do not match: <class 'int'> != <class 'float'>."),
        (True, False, "Booleans mismatch: True is not False"),
        (None, 1, "None mismatch: None is not 1"),
        ([1], [1, 2], "The length of the sequences mismatch: 1 != 2"),
        ({"a": 1}, {"b": 1}, "Missing keys in the actual mapping: ['b']"),
    ],
)
def test_messages_of_assert_close(actual, expected, words):
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, expected)
    assert words in str(caught.value)


def test_objects_that_cannot_be_compared():
    with pytest.raises(TypeError, match="No comparison pair was able to handle"):
        assert_close(1.0, torch.tensor(1.0))
    with pytest.raises(ValueError, match="Both 'rtol' and 'atol' must be either specified or omitted"):
        assert_close(1.0, 1.0, rtol=0.1)


def test_messages_of_ones_own():
    with pytest.raises(AssertionError, match=r"^mine$"):
        assert_close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match=r"^seen: Scalars"):
        assert_close(1, 2, msg=lambda text: f"seen: {text}")


def test_the_older_comparison_minds_no_dtypes():
    with pytest.warns(FutureWarning, match="assert_allclose"):
        assert_allclose(torch.ones(1), torch.ones(1).double())


def test_created_tensors_have_the_requested_properties():
    x = make_tensor((3, 4), dtype=torch.float64, device="cpu", low=2, high=3, requires_grad=True)
    assert x.shape == (3, 4) and x.requires_grad and ((x >= 2) & (x < 3)).all()
    apart = make_tensor(3, 4, dtype=torch.int64, device="cpu", noncontiguous=True, exclude_zero=True)
    assert apart.stride() == (8, 2) and (apart != 0).all()
    assert set(make_tensor(100, dtype=torch.bool, device="cpu").tolist()) == {True, False}
    with pytest.raises(ValueError, match="`low` must be less than `high`"):
        make_tensor(2, dtype=torch.float32, device="cpu", low=2, high=1)
    with pytest.raises(ValueError, match="not supported for boolean and integral dtypes"):
        make_tensor(2, dtype=torch.int64, device="cpu", requires_grad=True)
