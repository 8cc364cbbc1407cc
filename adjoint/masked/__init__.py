"""`torch.masked`: reductions over the elements that a mask selects, and tensors with a mask.

This file contains names only.
"""

from .._runtime.first_use import late_names
from . import reductions
from .reductions import *
from .reductions import _canonical_dim, _combine_input_and_mask, _input_mask, _output_mask, _reduction_identity, _where

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]
__all__ += reductions.__all__

# A tensor class that overrides functions slows down every call, so it is defined on first use.
__getattr__ = late_names(__name__, dict.fromkeys(__all__[:4], "tensors"))
