"""Checks of derivatives: `gradcheck`, `gradgradcheck` and what they compare."""
