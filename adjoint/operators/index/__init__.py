"""Operators that read or write elements selected by indices, masks or conditions."""
