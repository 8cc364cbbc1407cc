"""Operators that read or write where indices, masks or conditions point."""
