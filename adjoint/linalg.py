"""`torch.linalg`: solving, determinants, factorizations and norms. This file contains names only."""

from .dispatch.registry import PUBLIC
from .kernels.linalg import LinAlgError as LinAlgError

__getattr__, __dir__ = PUBLIC["linalg"].as_module(globals())
