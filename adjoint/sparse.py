"""`torch.sparse`: products, sums and softmax of sparse tensors. This file contains names only."""

from ._runtime.settings import check_sparse_tensor_invariants as check_sparse_tensor_invariants
from .dispatch.registry import PUBLIC

__getattr__, __dir__ = PUBLIC["sparse"].as_module(globals())
