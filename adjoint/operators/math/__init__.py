"""Elementwise operators (arithmetic, comparison, powers, special functions), and Fourier transforms."""
