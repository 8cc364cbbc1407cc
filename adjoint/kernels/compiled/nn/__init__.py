"""Compiled convolution, pooling, normalization, attention, recurrent layers and optimizer steps."""
