"""`torch._tensor_str`: what libraries use of how tensors are printed."""

from typing import Any

from . import printing
from .tensor import Tensor

__all__ = ["PRINT_OPTS"]


class _Options:
    """The settings of `torch.set_printoptions`, as attributes."""

    def __getattr__(self, name: str) -> Any:
        return getattr(printing._options, name)


PRINT_OPTS = _Options()


def _str(self: Tensor, *, tensor_contents: Any = None) -> str:
    return repr(self)


def _tensor_str(self: Tensor, indent: int) -> str:
    text = repr(self.detach()).removeprefix("tensor(").removesuffix(")")
    return text.replace("\n       ", "\n" + " " * indent)
