"""`torch.utils.benchmark` measures how long a statement takes; names, no logic."""

from ..._runtime.tracebacks import end_public_at_caller
from .timer import Compare, Measurement, Timer

__all__ = ["Compare", "Measurement", "Timer"]


end_public_at_caller(globals())
