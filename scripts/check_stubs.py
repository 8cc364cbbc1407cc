"""Check the type stubs against the package: `python scripts/check_stubs.py`. A minute or more.

mypy's `stubtest` imports the package and compares it with the stubs. Differences that are meant, by the kind of message and
the reason, are listed here; anything else fails.
"""
