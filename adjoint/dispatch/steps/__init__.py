"""The steps of plans. Each step has two readings: `run`, and the `lines` that print it."""
