"""`torch.backends.cudnn`: options of cuDNN, which is not used."""

from typing import Any

from .switches import flags_of, set_flags_of

enabled, benchmark, deterministic, allow_tf32, benchmark_limit = True, False, False, True, 10
fp32_precision = "none"
flags = flags_of(__name__, enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True)
set_flags = set_flags_of(__name__, "enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")


def version() -> int | None:
    """Return the version of the library, which is None."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """Return whether the library could compute with the tensor. The answer is always False."""
    return False
