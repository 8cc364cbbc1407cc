"""PyTorch's name for nested containers taken apart and put together again: the same module that transforms use."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("adjoint.transforms.tree")
