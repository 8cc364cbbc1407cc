"""The foundations of the package, without tensors: late binding, first use, forks, interrupts, tracebacks, warnings."""
