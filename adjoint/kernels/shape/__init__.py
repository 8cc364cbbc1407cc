"""Views of arrays, and joining them."""
