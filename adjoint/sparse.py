"""`torch.sparse`: products, sums and softmax of sparse tensors. This file contains names only."""

from .dispatch.registry import PUBLIC

__getattr__, __dir__ = PUBLIC["sparse"].as_module(globals())
