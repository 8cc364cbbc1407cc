"""Operators on the memory of tensors: copies, conversions, views of a storage, and questions about them."""
