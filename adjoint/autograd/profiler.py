"""PyTorch's name for the profiler of operators."""

from .debug.profiler import EventList, FunctionEvent, ProfilerActivity, profile, record_function

__all__ = ["EventList", "FunctionEvent", "ProfilerActivity", "profile", "record_function"]
