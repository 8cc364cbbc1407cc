"""Compiled forms of kernels, in the same folders as these; imported when an array is first large enough for one."""
