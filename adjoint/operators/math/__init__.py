"""Elementwise operators and Fourier transforms: arithmetic, comparison, powers, special functions."""
