"""`torch.distributed.elastic`: what programs for `torchrun` import. If a process fails, all end; none is started again."""

from . import multiprocessing
