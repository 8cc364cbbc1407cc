"""Operators that make fewer elements of many, or put them in order: sums, extrema, sorting, statistics of samples."""
