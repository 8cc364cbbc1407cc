"""`torch._tensor_str`: the parts of tensor printing that libraries use."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import adjoint as torch
from adjoint import printing
from adjoint.printing import get_printoptions, set_printoptions
from adjoint.tensor import Tensor

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]


class _Options:
    """The settings of `torch.set_printoptions`, as attributes."""

    def __getattr__(self, name: str) -> Any:
        return getattr(printing._options, name)


PRINT_OPTS = _Options()


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """A context in which tensors are printed with these options of `set_printoptions`."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


def _str(self: Tensor, *, tensor_contents: Any = None) -> str:
    return repr(self)


def get_summarized_data(self: Tensor) -> Tensor:
    """Return the elements that are printed of a large tensor: the first and the last `edgeitems` of each dimension."""
    edge = printing._options.edgeitems
    for dim, size in enumerate(self.shape):
        if size > 2 * edge:
            self = torch.cat((self.narrow(dim, 0, edge), self.narrow(dim, size - edge, edge)), dim)
    return self


def _tensor_str(self: Tensor, indent: int) -> str:
    text = repr(self.detach()).removeprefix("tensor(").removesuffix(")")
    return text.replace("\n       ", "\n" + " " * indent)
