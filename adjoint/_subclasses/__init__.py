"""Names of `torch._subclasses` that libraries look at: there are no fake tensors, but tensors on the device `meta`."""

from __future__ import annotations

import sys
from typing import Any

import adjoint as torch

from ..first_use import further_names

__all__ = ["FakeTensor", "is_fake"]

fake_tensor = sys.modules[__name__]
further_names(__name__, {"fake_tensor": fake_tensor})


class FakeTensor(torch.Tensor):
    """The class of PyTorch's tensors without data, for `isinstance`: nothing is of this class."""


def is_fake(x: Any) -> bool:
    """False: there are no fake tensors."""
    return False
