"""Compiled random numbers."""
