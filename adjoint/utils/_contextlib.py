"""PyTorch's private base classes of contexts that also decorate functions, generators and classes; libraries derive from them."""

from __future__ import annotations

from typing import Any

from ..autograd.grad_mode import Decorating

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager"]


class _DecoratorContextManager(Decorating):
    """A context that decorates. A subclass defines `__enter__` and `__exit__`, and `clone` if its constructor has parameters."""


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A context without parameters: it decorates with and without parentheses."""

    def __new__(cls, orig_func: Any = None) -> Any:  # noqa: D102
        return super().__new__(cls) if orig_func is None else cls()(orig_func)
