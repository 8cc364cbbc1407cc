"""Transforms of functions: `vmap`, forward mode, reverse mode, and the rules of operators within them."""
