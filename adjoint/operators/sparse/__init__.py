"""Operators on sparse tensors: creation from parts, access to the parts, and conversion."""
