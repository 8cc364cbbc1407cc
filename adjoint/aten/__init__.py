"""Operators as PyTorch's dispatcher names them: overloads, their signatures, and the modes and classes that replace operators.

The modules translate calls of operators to calls such as `aten.sum.dim_IntList(x, [1])`, and back.
"""
