"""Elementwise functions on arrays, and Fourier transforms."""
