"""Comparison with PyTorch: each case is a function of a module, and runs for both libraries in turn in one process."""
