"""Transforms of functions: `vmap`, forward mode, reverse mode, and how operators run within them.

What a single operator needs said about it stands in its declaration, not here.
"""
