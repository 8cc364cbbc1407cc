"""PyTorch's private package of function transforms: the modules that libraries reach into."""

import sys

from ..func import modules as functional_call
from ..transforms import vmap
from . import apis, eager_transforms, make_functional

__all__ = ["apis", "batch_norm_replacement", "eager_transforms", "functional_call", "make_functional", "vmap"]

batch_norm_replacement = functional_call
for _name in ("batch_norm_replacement", "functional_call", "vmap"):
    sys.modules[f"{__name__}.{_name}"] = globals()[_name]
