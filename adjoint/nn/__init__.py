"""`torch.nn`: modules, parameters, and the functions they call; names, no logic."""

from ..first_use import late_names
from . import functional, init, utils
from .modules import *
from .modules import LATE
from .parallel import DataParallel as DataParallel
from .parameter import Buffer as Buffer
from .parameter import Parameter as Parameter
from .parameter import UninitializedBuffer as UninitializedBuffer
from .parameter import UninitializedParameter as UninitializedParameter

__getattr__ = late_names(__name__, {name: f"modules.{place}" for name, place in LATE.items() if name != place})


def __dir__() -> list[str]:
    return sorted({*globals(), *LATE})
