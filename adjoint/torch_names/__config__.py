"""`torch.__config__`: the libraries and threads that this package uses."""

from adjoint.inspect.installation import installation


def show() -> str:
    """Return the versions and settings, one per line."""
    return "".join(f"  - {name}: {value}\n" for name, value in installation().items())


def _cxx_flags() -> str:
    """Return an empty string, because no C++ is compiled."""
    return ""


def parallel_info() -> str:
    """Return the number of threads, and the libraries that use them."""
    return show()
