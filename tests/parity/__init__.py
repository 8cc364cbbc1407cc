"""Comparison with PyTorch itself. All tests here call PyTorch, and are skipped if PyTorch is not installed."""
