"""Function transforms (`vmap`, forward mode, reverse mode), and how operators run within them.

Rules for a single operator are in its declaration, not here.
"""
