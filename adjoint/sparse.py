"""`torch.sparse`: products, sums and softmax of sparse tensors; names, and the switch that PyTorch has for its checks."""

from __future__ import annotations

from typing import Any

from .dispatch.registry import PUBLIC


class check_sparse_tensor_invariants:
    """Context manager and switch: whether the parts of sparse tensors are checked. They always are; it is kept as a state."""

    _enabled = False

    def __init__(self, enable: bool = True) -> None:
        self._wanted = enable

    @staticmethod
    def is_enabled() -> bool:
        """Whether a program has asked for checks."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        """Ask for checks."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Ask for no checks."""
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self) -> None:
        self._before = self._enabled
        check_sparse_tensor_invariants._enabled = self._wanted

    def __exit__(self, *exception: object) -> None:
        check_sparse_tensor_invariants._enabled = self._before

    def __call__(self, function: Any) -> Any:
        """Decorate a function that runs with the state that was asked for."""

        def checked(*args: Any, **names: Any) -> Any:
            with type(self)(self._wanted):
                return function(*args, **names)

        return checked


__getattr__, __dir__ = PUBLIC["sparse"].as_module(globals())
