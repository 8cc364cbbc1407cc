"""`torch._dynamo.utils`: names that libraries ask."""

from typing import Any


def is_compile_supported(device_type: Any) -> bool:
    """Whether `torch.compile` compiles; never: it returns functions themselves."""
    return False
