"""Operators that reduce, scan or sort: sums, extrema, cumulative sums, order statistics, moments."""
