"""Linear algebra of arrays."""
