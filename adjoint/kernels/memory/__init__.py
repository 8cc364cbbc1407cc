"""The memory behind arrays, and copies of them."""
