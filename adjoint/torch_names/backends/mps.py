"""`torch.backends.mps`: Apple's GPUs, which are not used."""

from .switches import never as is_available

is_built = is_available


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Return whether the system supports Apple GPUs. The answer is always False."""
    return False


is_macos_or_newer = is_macos13_or_newer
