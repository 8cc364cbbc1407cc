"""Compiled code around matrix products."""
