"""Names that exist so that programs and libraries written for PyTorch find them; `adjoint run`.

Python finds these modules as `adjoint.x`, which is the same module as `adjoint.torch_names.x`: the second name is for type
checkers. So they import one another relatively, and the rest of the package by its full name.
"""
