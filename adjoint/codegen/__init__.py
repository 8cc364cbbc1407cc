"""The kernel language: scalar expressions and row programs, traced once, scheduled, and run on NumPy arrays in tiles.

`expression` defines the graph, `tracing` makes it from a Python function, `schedule` orders its steps and assigns registers,
`source` writes the steps as Python, `numpy_tiles` runs that code over large arrays, `pointwise` is the decorator that makes a
`Kernel` of an expression, and `backend` knows which kernel computes an operator. `rows` is the decorator of row programs, whose
operations `row_functions` has for NumPy's arrays and whose code `row_tiles` runs over large ones. Nothing is imported here:
`import adjoint` needs `kernel` and `backend` alone.
"""
