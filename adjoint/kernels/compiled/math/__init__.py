"""Compiled pointwise operations."""
