"""Debugging what runs: anomaly detection, `explain`, the profiler."""
