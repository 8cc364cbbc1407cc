"""`torch.backends.cusparselt`: a library that is not used."""

from .switches import never as is_available


def version() -> int | None:
    """The version of the library; None."""
    return None
