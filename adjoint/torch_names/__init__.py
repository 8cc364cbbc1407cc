"""Names that programs and libraries written for PyTorch expect; `adjoint run`.

Python finds these modules as `adjoint.x`, which is the same module as `adjoint.torch_names.x`: the second name is for
type checkers. These modules import one another relatively, and the rest of the package by its full name.
"""
