"""The steps of plans, each with its two readings: `run`, and the `lines` that print it."""
