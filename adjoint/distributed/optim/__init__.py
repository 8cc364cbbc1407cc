"""`torch.distributed.optim`: optimizers whose state is shared out among processes."""

from .zero_redundancy import ZeroRedundancyOptimizer as ZeroRedundancyOptimizer
