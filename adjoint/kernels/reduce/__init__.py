"""Reductions, scans and sorting of arrays."""
