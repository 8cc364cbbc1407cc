"""`torch.backends.mkl`: options of MKL, which is not used."""

from contextlib import AbstractContextManager

from .switches import never

is_available = never
VERBOSE_OFF, VERBOSE_ON = 0, 1


class verbose(AbstractContextManager[None]):
    """A context in which the library would report its work."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __exit__(self, *exception: object) -> None: ...
