"""The package `functorch`, which PyTorch includes and libraries import."""

import sys
from importlib import import_module

if "adjoint" not in sys.modules:
    import_module("torch")  # finds adjoint in any location
sys.modules[__name__] = import_module("adjoint._functorch.functorch")
sys.modules[f"{__name__}.experimental"] = sys.modules[__name__].experimental
sys.modules[f"{__name__}.experimental.control_flow"] = sys.modules[__name__].experimental.control_flow
