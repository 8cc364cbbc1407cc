"""Weak references that are compared by the identity of their objects, and dictionaries with such keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import ref

from adjoint import Tensor

from .._runtime.weak_keys import WeakKeys

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(ref):  # type: ignore[type-arg]
    """A weak reference that equals all weak references to the same object, regardless of the object's `==`."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        key = self()
        return self is other or (key is not None and isinstance(other, ref) and key is other())

    def __ne__(self, other: object) -> bool:
        return not self == other


class WeakIdKeyDictionary(WeakKeys[Any, Any]):
    """A dictionary whose keys are compared by identity. An entry lives as long as its key.

    >>> import adjoint as torch
    >>> names = torch.utils.weak.WeakIdKeyDictionary()
    >>> x = torch.ones(2)
    >>> names[x] = "x"
    >>> x in names, torch.ones(2) in names
    (True, False)
    >>> del x
    >>> len(names)
    0
    """

    def __init__(self, dict: Mapping[Any, Any] | None = None, ref_type: type[Any] = WeakIdRef) -> None:
        super().__init__()
        self.data = self._entries
        self.ref_type = ref_type
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._forget)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # the key supports no weak references
            return False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def copy(self) -> WeakIdKeyDictionary:
        """Return another dictionary with the same keys and values."""
        return type(self)(self)

    __copy__ = copy

    def keyrefs(self) -> list[Any]:
        """Return weak references to the keys."""
        return list(self.data)


class WeakTensorKeyDictionary(WeakIdKeyDictionary):
    """A `WeakIdKeyDictionary` with tensors as keys."""


class TensorWeakRef:
    """A weak reference to a tensor. Calling it returns the tensor, or None if the tensor no longer exists."""

    __slots__ = ("ref",)

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = ref(tensor)

    def __call__(self) -> Tensor | None:
        """Return the tensor, or None."""
        return self.ref()
