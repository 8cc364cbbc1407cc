"""Checking of derivatives: `gradcheck`, `gradgradcheck` and what they compare."""
