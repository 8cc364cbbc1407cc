"""Automatic differentiation: `backward`, `grad`, modes, `Function`, and the graph they work on."""
