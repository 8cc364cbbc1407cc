"""Compiled work around matrix products."""
