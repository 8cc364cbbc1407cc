"""Compiled functions behave like the original functions, whether or not the compiler captures them."""
