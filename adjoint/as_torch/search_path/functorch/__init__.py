"""The package `functorch`, which comes with PyTorch; libraries import it."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("torch._functorch.functorch")
