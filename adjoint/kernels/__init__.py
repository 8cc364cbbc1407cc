"""Computation on arrays: plain functions from arrays to arrays, named as PyTorch names them. No tensors, no graph."""
