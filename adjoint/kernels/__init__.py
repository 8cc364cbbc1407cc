"""Computation on arrays: functions from arrays to arrays, named as PyTorch names them; no tensors, no graph.

The folders have the names of the folders in `adjoint.operators`. `runtime` is the lowest layer.
"""
