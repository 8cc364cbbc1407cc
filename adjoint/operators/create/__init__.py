"""Functions that create tensors: from data, filled, in ranges, random."""
