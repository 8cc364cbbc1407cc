"""Computation on arrays: functions from arrays to arrays, named as PyTorch names them; no tensors, no graph.

The folders are those of `adjoint.operators`; `runtime` is below them all.
"""
