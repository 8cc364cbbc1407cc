"""Operators that change shapes and leave elements alone: views, parts, joining."""
