"""Compiled forms of kernels, in the same folders. They are imported when an array first reaches the threshold."""
