"""PyTorch's name for anomaly detection."""

from .debug.anomaly_mode import (
    detect_anomaly,
    set_detect_anomaly,
)

__all__ = ["detect_anomaly", "set_detect_anomaly"]
