"""From a declaration to functions and nodes: decorators, registry, code generation, slow path, wrappers.

What is written here holds for every operator; no module here imports one.
"""
