"""`torch.backends.mkldnn`: options of oneDNN, which is not used."""

from contextlib import AbstractContextManager
from types import SimpleNamespace

from .switches import flags_of, set_flags_of

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2

enabled, deterministic, allow_tf32, fp32_precision = True, False, True, "none"
matmul, conv, rnn = (SimpleNamespace(fp32_precision="none") for _ in range(3))
flags = flags_of(__name__, enabled=False, deterministic=False, allow_tf32=True, fp32_precision="none")
set_flags = set_flags_of(__name__, "enabled", "deterministic", "allow_tf32", "fp32_precision")


def is_available() -> bool:
    """Return False, because oneDNN is not used."""
    return False


class verbose(AbstractContextManager[None]):
    """A context in which the library would report its work."""

    def __init__(self, level: int) -> None:
        self.level = level

    def __exit__(self, *exception: object) -> None: ...
