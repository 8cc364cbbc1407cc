"""Checking derivatives: `gradcheck`, `gradgradcheck` and what they compare."""
