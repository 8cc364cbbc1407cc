"""`torch.utils.deterministic`: a module with one setting, `fill_uninitialized_memory`."""

import sys
from types import ModuleType

from .._runtime import determinism


class _Deterministic(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `torch.empty` and similar functions fill memory while deterministic algorithms are requested."""
        return determinism.fills_uninitialized_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        determinism.set_fill_uninitialized_memory(mode)


sys.modules[__name__].__class__ = _Deterministic
