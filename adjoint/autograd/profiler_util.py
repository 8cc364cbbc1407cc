"""PyTorch's name for the contents of profiles."""

from .debug.profiler_util import (
    DeviceType,
    EventList,
    FormattedTimesMixin,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
)
from .debug.profiler_util import _format_memory as _format_memory
from .debug.profiler_util import _format_time as _format_time

__all__ = ["DeviceType", "EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval"]
