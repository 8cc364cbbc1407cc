"""`torch.ops`: operators by the names that PyTorch's dispatcher has for them; names, no logic."""

from types import SimpleNamespace

from . import autograd
from .operators.overloads import OpOverload, OpOverloadPacket, aten

__all__ = ["OpOverload", "OpOverloadPacket", "aten"]


def __getattr__(name: str) -> SimpleNamespace:
    if name != "profiler":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    functions = autograd.profiler
    enter, leave = functions._record_function_enter, functions._record_function_exit
    return SimpleNamespace(_record_function_enter=enter, _record_function_enter_new=enter, _record_function_exit=leave)
