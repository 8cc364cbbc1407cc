"""What the package itself runs on: late binding, first use, forks, interrupts, tracebacks, warnings, settings; no tensors."""
