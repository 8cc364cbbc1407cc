"""Operators that neural networks are made of: activations, convolutions, pooling, normalization, losses, optimizer steps."""
