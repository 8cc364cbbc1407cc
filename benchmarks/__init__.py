"""Comparison with PyTorch: each case is one function of a module, which runs for both libraries in turn in one process."""
