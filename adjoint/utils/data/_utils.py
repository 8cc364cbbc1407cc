"""PyTorch's names for parts of data loading that other libraries import. This file contains names only."""

from ..._runtime.first_use import further_names
from . import collate, worker

__all__ = ["HAS_NUMPY", "IS_WINDOWS", "MP_STATUS_CHECK_INTERVAL", "collate", "worker"]

HAS_NUMPY = True
IS_WINDOWS = False
MP_STATUS_CHECK_INTERVAL = 5.0

further_names(__name__, {"collate": collate, "worker": worker})
