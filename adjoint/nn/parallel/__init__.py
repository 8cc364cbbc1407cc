"""`DataParallel` runs a model in several threads. This file contains names only."""

import sys

from ..._runtime.first_use import further_names
from .data_parallel import DataParallel, data_parallel, parallel_apply, replicate
from .distributed import DistributedDataParallel
from .scatter_gather import gather, scatter

__all__ = [
    "DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter",
]  # fmt: skip

further_names(__name__, dict.fromkeys(("parallel_apply", "replicate"), sys.modules[DataParallel.__module__]))
