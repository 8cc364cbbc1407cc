"""Elementwise operators: arithmetic, comparison, powers, special functions; also Fourier transforms."""
