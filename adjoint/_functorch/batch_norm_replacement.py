"""PyTorch's module that takes running statistics out of batch normalizations."""

from ..func import replace_all_batch_norm_modules_

__all__ = ["replace_all_batch_norm_modules_"]
