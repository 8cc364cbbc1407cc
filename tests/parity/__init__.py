"""Comparison with PyTorch itself. Everything here calls PyTorch and is skipped where it is not installed."""
