"""Turning declarations into functions and nodes: code for every operator. It imports no family of operators."""
