"""Turning declarations into functions and nodes: decorators, registry, code generation, slow path, wrappers.

The code here applies to every operator. No module here imports a family of operators.
"""
