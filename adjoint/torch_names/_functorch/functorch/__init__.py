"""`functorch`, a package that PyTorch includes: the function transforms of `torch.func` under older names."""

from .. import deprecated
from ..deprecated import *
from ..make_functional import FunctionalModule, FunctionalModuleWithBuffers
from . import einops, experimental

__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "einops", "experimental"]
__all__ += deprecated.__all__
