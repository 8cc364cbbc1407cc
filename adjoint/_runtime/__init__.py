"""The foundations of the package: late binding, first use, forks, interrupts, tracebacks, warnings.

It contains no tensors.
"""
