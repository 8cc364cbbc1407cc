"""From a declaration to functions and nodes: decorators, registry, code generation, slow path, wrappers.

The code here applies to every operator; no module here imports a family of operators.
"""
