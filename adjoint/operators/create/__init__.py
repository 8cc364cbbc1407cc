"""Functions that create tensors: from data, filled with a number, as ranges, or random."""
