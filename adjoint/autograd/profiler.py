"""PyTorch's name for the profiler of operators."""

from .._runtime.absent import absent
from ..profiler.operator_calls import OperatorCalls
from ..profiler.recording import EventList, FunctionEvent, ProfilerActivity, profile, record_function

__all__ = ["EventList", "FunctionEvent", "OperatorCalls", "ProfilerActivity", "profile", "record_function"]

emit_nvtx = absent("torch.autograd.profiler.emit_nvtx", "there is no GPU; use torch.profiler")
emit_itt = absent("torch.autograd.profiler.emit_itt", "use torch.profiler")
