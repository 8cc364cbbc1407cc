"""`torch.distributed.elastic.multiprocessing`; names, no logic."""

from . import errors
