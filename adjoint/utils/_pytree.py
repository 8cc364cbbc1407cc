"""PyTorch's name for the module that flattens and unflattens nested containers. Transforms use the same module."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("adjoint.transforms.tree")
