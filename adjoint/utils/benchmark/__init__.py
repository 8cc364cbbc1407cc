"""`torch.utils.benchmark` measures the time of a statement. This file contains names only."""

from ..._runtime.tracebacks import end_public_at_caller
from .timer import Compare, Measurement, Timer

__all__ = ["Compare", "Measurement", "Timer"]


end_public_at_caller(globals())
