"""The kernel language: scalar expressions and row programs, traced once, and run on NumPy arrays in tiles.

`expression` defines the graph, and `tracing` creates it from a Python function. `schedule` lowers it for a dtype.
`source` writes its steps as Python, and `numpy_tiles` runs that code over large arrays. `pointwise` is the
decorator that turns an expression into a `Kernel`. `backend` knows which kernel computes an operator. `rows` is the
decorator of row programs. `row_tiles` implements their operations for NumPy arrays, and runs their code over large
arrays. Nothing is imported here: `import adjoint` needs only `kernel` and `backend`.
"""
