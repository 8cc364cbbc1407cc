"""`DataParallel`: a model in several threads at once; names, no logic."""

from .data_parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "data_parallel"]
