"""`torch.linalg`: solving, determinants, factorizations and norms; names, no logic."""

from .kernels.runtime.errors import LinAlgError as LinAlgError
from .operators import PUBLIC

__getattr__, __dir__ = PUBLIC["linalg"].as_module(globals())
