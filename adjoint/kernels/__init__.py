"""Computation on arrays: functions from arrays to arrays with PyTorch's names.

This package contains no tensors and no graph.

The folders have the names of the folders in `adjoint.operators`. `runtime` is the lowest layer.
"""
