"""PyTorch's name for compiled functions on nested containers. Here they are the functions of `_pytree`."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("adjoint.transforms.tree")
