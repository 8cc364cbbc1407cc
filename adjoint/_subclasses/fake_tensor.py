"""Fake tensors, of which there are none."""

from __future__ import annotations

from typing import Any

import adjoint as torch

__all__ = ["FakeTensor", "is_fake"]


class FakeTensor(torch.Tensor):
    """The class of PyTorch's tensors without data, for `isinstance`: nothing is of this class."""


def is_fake(x: Any) -> bool:
    """False: there are no fake tensors."""
    return False
