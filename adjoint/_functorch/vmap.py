"""PyTorch's name for the module of `vmap`; transforms use the same module."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("adjoint.transforms.vmap")
