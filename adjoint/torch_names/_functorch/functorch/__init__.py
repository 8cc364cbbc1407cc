"""`functorch`, a package that PyTorch includes: function transforms under older names than in `torch.func`."""

from .. import deprecated
from ..deprecated import *
from ..make_functional import FunctionalModule, FunctionalModuleWithBuffers
from . import einops, experimental

__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "einops", "experimental"]
__all__ += deprecated.__all__
