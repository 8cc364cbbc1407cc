"""The library that is compared with PyTorch.

`ADJOINT_PARITY_CANDIDATE` may name another module. The value `torch` tests the comparison, because it compares PyTorch with
PyTorch.
"""

import importlib
import os
from typing import Any

import torch

# PyTorch's `manual_seed` also records the call stack for each kind of accelerator that may be initialised later. PyTorch's
# tables call `manual_seed` for each sample, and this takes longer than most samples.
for accelerator in (torch.cuda, torch.xpu, torch.mtia):
    if not accelerator.is_available():
        accelerator.manual_seed_all = lambda seed: None

candidate: Any = importlib.import_module(os.environ.get("ADJOINT_PARITY_CANDIDATE", "adjoint"))


def seed(module: Any, number: int) -> None:
    """Seed the library's generator. Do not seed PyTorch's generators of accelerators, because this is slow."""
    if module is torch:
        torch.default_generator.manual_seed(number)
    else:
        getattr(module, "manual_seed", id)(number)


def lookup(module: Any, qualified_name: str) -> Any:
    """Return `module.qualified_name`, or the method of that name, or None if neither exists."""
    found = module
    for part in qualified_name.removeprefix("torch.").split("."):
        found = getattr(found, part, None)
        if found is None:
            return getattr(module.Tensor, qualified_name, None)
    return found
