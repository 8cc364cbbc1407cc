"""`torch.onnx.symbolic_helper`: names that libraries use during their import."""

from collections.abc import Callable
from typing import Any


def parse_args(*arg_descriptors: str) -> Callable[[Any], Any]:
    """Return a decorator that returns the function itself."""
    return lambda function: function
