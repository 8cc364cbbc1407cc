"""`torch.utils.deterministic`: a module with one setting, `fill_uninitialized_memory`."""

import sys
from types import ModuleType

from ..torch_names import settings


class _Deterministic(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `torch.empty` and similar functions fill memory while deterministic algorithms are requested."""
        return settings.fills_uninitialized_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        settings.set_fill_uninitialized_memory(mode)


sys.modules[__name__].__class__ = _Deterministic
