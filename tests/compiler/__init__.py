"""Compiled functions: whatever they capture, they do what the functions do without `torch.compile`."""
