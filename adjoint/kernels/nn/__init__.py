"""Activations, convolutions, pooling, normalization, losses and optimizer steps on arrays."""
