"""`torch.nn`: modules, parameters, and the functions that modules call. This file contains names only."""

from .._runtime.first_use import late_names
from . import functional, init, modules, utils
from .modules import *
from .modules import LATE
from .parallel import DataParallel as DataParallel
from .parameter import Buffer as Buffer
from .parameter import Parameter as Parameter

_LATE = {
    **{name: f"modules.{place}" for name, place in LATE.items() if name != place},
    "_reduction": "_reduction",
    "UninitializedBuffer": "uninitialized",
    "UninitializedParameter": "uninitialized",
    "attention": "attention",
    "common_types": "common_types",
    "factory_kwargs": "parameter",
    "grad": "grad",
}
__getattr__ = late_names(__name__, _LATE)
modules.list_late_names()


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
