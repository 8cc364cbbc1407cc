"""Pairs of features around one operator. Both libraries run a program for each pair, and the results are compared.

    python -m tests.parity.pairs --all                                   # every cell
    python -m tests.parity.pairs --seconds 20 [--seed 20260131]          # different cells each day
    python -m tests.parity.pairs --outer vmap --inner checkpoint --operator exp

An operator (`operators.py`) is a function of tensors. A feature (`features.py`) turns a function of tensors into another
function, so any two features can be combined, in either order: `vmap of checkpoint of exp` is a cell, and so is `checkpoint of
vmap of exp`. `cells.py` runs a cell's function on leaves and backward from its results, and compares values, dtypes, shapes,
gradients and errors.

If PyTorch refuses a cell and adjoint does not, the definition of the composition is the standard. Each feature has a `meaning`,
which is the same function in simpler terms (a loop for `vmap`, no change for `checkpoint`). The cell must agree with PyTorch's
result for the cell in which meanings replace one or both features. If PyTorch refuses the meanings too, adjoint must agree with
its own result for the meanings. `excuses.py` lists the intended differences, each with an example cell. A test fails if this cell
does not need the excuse.

To add an operator, add a line to `operators.py`. To add a feature, add a function to `features.py`. A feature takes the library,
a function and its tensors, and returns a tensor or a tuple of tensors. Run the new cells alone first, and then `--all`.
"""
