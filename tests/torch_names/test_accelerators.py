"""Programs written for machines with a GPU run on machines without a GPU."""

import pytest

import adjoint as torch


def test_there_is_no_gpu():
    assert not torch.cuda.is_available()
    assert torch.cuda.device_count() == 0
    assert not torch.backends.mps.is_available()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    assert torch.ones(2).to(device).device.type == "cpu"


def test_seeding_and_emptying_caches_do_nothing():
    state = torch.get_rng_state()
    torch.cuda.manual_seed(0)
    torch.cuda.manual_seed_all(0)
    torch.cuda.empty_cache()
    assert torch.equal(torch.get_rng_state(), state)


def test_switches_of_backends_are_kept():
    before = torch.backends.cudnn.deterministic
    torch.backends.cudnn.deterministic = True
    assert torch.backends.cudnn.deterministic
    torch.backends.cudnn.deterministic = before


@pytest.mark.parametrize("use", [torch.cuda.synchronize, torch.cuda.current_device, lambda: torch.ones(2).cuda()])
def test_using_a_gpu_says_that_there_is_none(use):
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        use()


def test_types_of_tensors_on_a_gpu_can_be_named():
    kind = torch.cuda.FloatTensor
    assert repr(kind) == "<class 'adjoint.cuda.FloatTensor'>"
    assert (kind.is_cuda, kind.dtype, torch.FloatTensor.is_cuda) == (True, torch.float32, False)
    assert not isinstance(torch.ones(2), kind) and isinstance(torch.ones(2), torch.FloatTensor)
    with pytest.raises(
        TypeError, match=r"^type torch.cuda.FloatTensor not available. Torch not compiled with CUDA enabled.$"
    ):
        kind([1.0])
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        torch.ones(2).type(kind)
    assert not hasattr(torch.cuda, "QuaternionTensor")


def test_versions_of_what_it_is_not_built_with():
    assert torch.version.__version__ == torch.__version__
    assert (torch.version.cuda, torch.version.hip, torch.version.debug) == (None, None, False)
