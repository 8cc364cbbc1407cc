"""Create arrays from Python data, with a fill value, as ranges, or with random numbers."""
