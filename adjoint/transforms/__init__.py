"""Function transforms (`vmap`, forward mode, reverse mode). Rules for a single operator are in its declaration."""
