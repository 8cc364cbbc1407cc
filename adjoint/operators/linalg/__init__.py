"""Operators on vectors and matrices: products, decompositions, systems of equations, distances."""
