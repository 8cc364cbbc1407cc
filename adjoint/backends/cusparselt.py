"""`torch.backends.cusparselt`: a library that is not used."""


def version() -> int | None:
    """The version of the library; None."""
    return None
