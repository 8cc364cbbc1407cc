"""Operators on the memory of tensors: copies, conversions, views of a storage, and queries."""
