"""`torch.__config__`: how this package computes."""

from adjoint.inspect.installation import installation


def show() -> str:
    """The versions and settings, a line each."""
    return "".join(f"  - {name}: {value}\n" for name, value in installation().items())


def parallel_info() -> str:
    """The threads and the libraries that use them."""
    return show()
