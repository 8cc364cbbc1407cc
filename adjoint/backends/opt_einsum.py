"""`torch.backends.opt_einsum`: the order of products in `torch.einsum`: from left to right. The switches have no effect."""

from .switches import flags_of, set_flags_of

enabled, strategy = True, "auto"
flags = flags_of(__name__, enabled=None, strategy=None)
set_flags = set_flags_of(__name__, "enabled", "strategy")


def get_opt_einsum() -> None:
    """The package in use; None."""
    return
