"""The lists `__all__` of modules, from which PyTorch's test helpers read the names of classes."""

from importlib import import_module

import pytest

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("name", ["nn.modules", "nn.utils", "optim", "optim.lr_scheduler"])
def test_the_list_of_public_names_has_those_of_pytorch(name):
    theirs, ours = import_module(f"torch.{name}"), import_module(f"adjoint.{name}")
    assert set(theirs.__all__) <= set(ours.__all__)
    for each in ours.__all__:
        assert getattr(ours, each) is not None
