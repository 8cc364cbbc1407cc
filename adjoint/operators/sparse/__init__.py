"""Operators of sparse layouts: tensors that are made of parts, their parts, and conversion."""
