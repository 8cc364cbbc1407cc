"""Comparisons with PyTorch. All tests here call PyTorch. They are skipped if PyTorch is not installed."""
