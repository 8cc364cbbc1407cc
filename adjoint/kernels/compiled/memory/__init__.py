"""Compiled copies."""
