"""Comparison with PyTorch. Each case is a function of a library, and runs alternately with both libraries in one process."""
