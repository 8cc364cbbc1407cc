"""The library that experiments try: `RELIABILITY_LIBRARY=torch` makes the same tries with PyTorch."""

import importlib
import os
from typing import Any

NAME = os.environ.get("RELIABILITY_LIBRARY", "adjoint")

library: Any = importlib.import_module(NAME)
