"""Creation of arrays: from Python data, filled, in ranges, random."""
