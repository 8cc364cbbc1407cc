"""`torch.utils.benchmark`: how long a statement takes; names, no logic."""

from .timer import Compare, Measurement, Timer

__all__ = ["Compare", "Measurement", "Timer"]
