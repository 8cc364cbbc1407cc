"""Sizes, integers and memory that NumPy refuses.

The errors have PyTorch's messages, and tracebacks end at the line of the call.
"""

from __future__ import annotations

import sys
import traceback

import pytest

import adjoint as torch
from adjoint.kernels.memory.bounds import AllocationError

TOO_LARGE = [
    lambda: torch.zeros(2**62),
    lambda: torch.empty(2**31, 2**31, 4),
    lambda: torch.full((2**62,), 1.0),
    lambda: torch.ones(3).new_zeros(2**62),
    lambda: torch.rand(2**62),
    lambda: torch.arange(2**62),
    lambda: torch.eye(2**40),
    lambda: torch.ones(3).repeat(2**62),
    lambda: torch.nn.functional.one_hot(torch.tensor(2**62)),
    lambda: torch.repeat_interleave(torch.tensor([2**62] * 4)),  # the 64-bit sum of these repeats is 0
    lambda: torch.repeat_interleave(torch.ones(2), torch.tensor([2**62, 1])),
]

TOO_WIDE = [
    lambda: torch.sum(torch.ones(3), 2**63),
    lambda: torch.ones(3).cumsum(2**63),
    lambda: torch.mvlgamma(torch.ones(3), 2**63),
]


@pytest.mark.parametrize("call", TOO_LARGE)
def test_sizes_beyond_64_bits(call) -> None:
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed") as caught:
        call()
    assert traceback.extract_tb(caught.value.__traceback__)[-1].filename == __file__


@pytest.mark.parametrize("call", TOO_WIDE)
def test_integers_beyond_64_bits(call) -> None:
    with pytest.raises(ValueError, match="Overflow when unpacking long long") as caught:
        call()
    assert traceback.extract_tb(caught.value.__traceback__)[-1].filename == __file__


@pytest.mark.skipif(sys.maxsize < 2**32, reason="what 32 bits address may be granted")
def test_memory_that_is_not_granted() -> None:
    for error in (RuntimeError, MemoryError):
        with pytest.raises(error, match=f"can't allocate memory: you tried to allocate {2**52} bytes"):
            torch.zeros(2**50)
    with pytest.raises(AllocationError):
        torch.ones(3)[:, None].expand(3, 2**50) + 1


def test_mvlgamma_of_wrong_dimensions() -> None:
    x = torch.full((3,), 5.0)
    with pytest.raises(RuntimeError, match="p has to be greater than or equal to 1"):
        torch.mvlgamma(x, 0)
    with pytest.raises(TypeError, match="must be int, not bool"):
        x.mvlgamma_(True)
    with pytest.raises(RuntimeError, match="too large"):
        torch.mvlgamma(x, 2**40)
