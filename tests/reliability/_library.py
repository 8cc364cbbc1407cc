"""The library under test. `RELIABILITY_LIBRARY=torch` runs the same experiments with PyTorch."""

import importlib
import os
from typing import Any

NAME = os.environ.get("RELIABILITY_LIBRARY", "adjoint")

library: Any = importlib.import_module(NAME)
