"""Checks of derivatives: `gradcheck`, `gradgradcheck` and their comparisons."""
