"""`torch.backends.mps`: Apple's graphics processors, which are not used."""

from .switches import never as is_available

is_built = is_available


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Return whether the system supports Apple GPUs. It never does."""
    return False


is_macos_or_newer = is_macos13_or_newer
