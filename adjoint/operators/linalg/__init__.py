"""Operators on vectors and matrices: products, decompositions, linear systems, distances."""
