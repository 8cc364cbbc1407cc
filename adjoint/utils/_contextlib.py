"""PyTorch's private base classes of contexts that also decorate functions, generators and classes. Libraries derive from them."""

from __future__ import annotations

from typing import Any

import adjoint as torch

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager"]


class _DecoratorContextManager(torch.autograd.grad_mode.Decorating):
    """A context manager that also decorates functions. It needs `clone` if its constructor has parameters."""


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A context without parameters. It decorates with and without parentheses."""

    def __new__(cls, orig_func: Any = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)
