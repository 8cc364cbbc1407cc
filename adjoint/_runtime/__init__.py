"""The foundations of the package: late binding, first use, forks, interrupts, tracebacks, warnings, settings.

It contains no tensors.
"""
