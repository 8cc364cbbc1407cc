"""Operators that change shapes and keep elements: views, parts, joining."""
