"""Compiled gathers and scatters."""
