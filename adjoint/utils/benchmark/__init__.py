"""`torch.utils.benchmark` measures the time of a statement. This file contains names only."""

from .timer import Compare, Measurement, Timer

__all__ = ["Compare", "Measurement", "Timer"]
