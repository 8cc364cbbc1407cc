"""adjoint beside PyTorch: each case is one function of the module, run for both in turn in one process."""
