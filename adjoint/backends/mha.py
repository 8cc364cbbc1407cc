"""`torch.backends.mha`: the switch of attention's fast path, which has no effect."""

_fastpath = True


def get_fastpath_enabled() -> bool:
    """The switch."""
    return _fastpath


def set_fastpath_enabled(value: bool) -> None:
    """Set the switch, which has no effect."""
    global _fastpath
    _fastpath = value
