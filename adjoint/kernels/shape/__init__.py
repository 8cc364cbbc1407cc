"""Views of arrays, and joining of arrays."""
