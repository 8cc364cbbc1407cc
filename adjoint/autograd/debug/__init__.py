"""Debugging: anomaly detection, `explain`, the profiler."""
