"""Operators about how tensors lie in memory: copies, conversions, readings of the same storage, questions."""
