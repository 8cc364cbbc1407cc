"""Functions that make tensors: from data, regular ones, random ones."""
