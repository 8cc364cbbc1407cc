"""Elementwise functions of arrays, and Fourier transforms."""
