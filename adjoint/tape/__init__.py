"""The data structures of recording: nodes, edges, saved tensors, versions, views, modes and hooks.

This package neither computes derivatives (`adjoint.operators`) nor walks the graph (`adjoint.autograd`).
"""
