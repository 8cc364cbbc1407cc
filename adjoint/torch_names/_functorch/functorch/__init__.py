"""`functorch`, a package that PyTorch includes: function transforms under older names than in `torch.func`."""

from .. import deprecated
from ..deprecated import *
from ..make_functional import FunctionalModule, FunctionalModuleWithBuffers
from . import experimental

__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "experimental"]
__all__ += deprecated.__all__
