"""PyTorch's names of what worker processes are seeded with and know."""

from ..worker import numpy_state as _generate_state
from ..worker_info import WorkerInfo, get_worker_info

__all__ = ["WorkerInfo", "_generate_state", "get_worker_info"]
