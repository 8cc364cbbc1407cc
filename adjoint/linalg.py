"""`torch.linalg`: solving, determinants, factorizations and norms; names, no logic."""

from .kernels.linalg import LinAlgError
from .operators import PUBLIC

globals().update(PUBLIC["linalg"])

__all__ = ["LinAlgError", *PUBLIC["linalg"]]
