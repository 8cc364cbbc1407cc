"""Names that programs and libraries written for PyTorch expect, and `adjoint run`.

Python finds these modules as `adjoint.x`. The same modules are called `adjoint.torch_names.x` for type checkers. These
modules use relative imports among themselves, and import the rest of the package by its full name.
"""
