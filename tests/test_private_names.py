"""Private and rare names of PyTorch that other programs import."""

import importlib

import pytest

import adjoint as torch
from adjoint import _utils
from adjoint.utils import _foreach_utils


@pytest.mark.parametrize(
    "name",
    [
        "_utils",
        "utils._foreach_utils",
        "profiler.itt",
        "autograd._functions",
        "autograd._functions.utils",
        "autograd._functions.tensor",
    ],
)
def test_modules_are_imported_by_their_names(name):
    module = importlib.import_module(f"adjoint.{name}")
    found = torch
    for part in name.split("."):
        found = getattr(found, part)
    assert found is module


def test_types_of_arguments_have_their_private_names():
    assert torch.types._dtype is torch.dtype and torch.types._layout is torch.layout
    assert torch.types._device is torch.device and torch.types._int is int


def test_nothing_is_traced_or_fake():
    fake = importlib.import_module("adjoint._subclasses.fake_tensor")
    assert not fake.is_fake(torch.ones(1)) and not isinstance(torch.ones(1), fake.FakeTensor)
    assert torch._C._get_tracing_state() is None and not torch.jit.is_tracing()


def test_a_buffer_of_tensors_gives_them_back_as_views():
    tensors = [torch.arange(6.0).reshape(2, 3), torch.tensor(7.0)]
    flat = _utils._flatten_dense_tensors(tensors)
    parts = _utils._unflatten_dense_tensors(flat, tensors)
    flat.mul_(2)
    assert [part.tolist() for part in parts] == [[[0, 2, 4], [6, 8, 10]], 14]


def test_an_exception_is_raised_again_with_its_traceback():
    def fails():
        raise KeyError("lost")

    try:
        fails()
    except KeyError:
        wrapped = _utils.ExceptionWrapper(where="in worker 0")
    with pytest.raises(KeyError, match="Caught KeyError in worker 0") as caught:
        wrapped.reraise()
    assert "in fails" in str(caught.value)


def test_tensors_are_grouped_by_dtype():
    single, double = torch.ones(2), torch.ones(2, dtype=torch.float64)
    groups = _foreach_utils._group_tensors_by_device_and_dtype([[single, double], [None, double]], with_indices=True)
    assert groups == {
        (torch.device("cpu"), torch.float32): ([[single], [None]], [0]),
        (torch.device("cpu"), torch.float64): ([[double], [double]], [1]),
    }


def test_the_current_level_of_forward_mode():
    forward_ad = torch.autograd.forward_ad
    levels = [forward_ad._current_level]
    with forward_ad.dual_level():
        levels.append(forward_ad._current_level)
    assert levels == [-1, 0]
    assert isinstance(torch.ones(1, requires_grad=True).exp().grad_fn._raw_saved_result, torch.autograd.SavedTensor)


def test_nothing_hears_ranges():
    itt = torch.profiler.itt
    assert not itt.is_available()
    with itt.range("step {}", 3):
        itt.mark("here")
    with pytest.raises(KeyError, match="step"), itt.range("{step}"):
        pass
