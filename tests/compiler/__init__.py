"""Compiled functions do the same as the functions without `torch.compile`, whatever is captured."""
