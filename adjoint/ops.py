"""`torch.ops`: operators under the names of PyTorch's dispatcher; names, no logic."""

from types import SimpleNamespace

from .dispatch.overload_names import OpOverload, OpOverloadPacket, aten

__all__ = ["OpOverload", "OpOverloadPacket", "aten"]


def __getattr__(name: str) -> SimpleNamespace:
    if name != "profiler":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .autograd.debug.profiler import _record_function_enter as enter
    from .autograd.debug.profiler import _record_function_exit as leave

    return SimpleNamespace(_record_function_enter=enter, _record_function_enter_new=enter, _record_function_exit=leave)
