"""Modules that contain parameters in order or by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

import adjoint as torch
from adjoint import Tensor

from ..._runtime.tracebacks import end_methods_at_caller
from ..parameter import Parameter
from .container import absolute_index, pairs
from .module import Module

__all__ = ["ParameterDict", "ParameterList"]


def _as_parameter(value: Any) -> Any:
    """Convert plain tensors to parameters. Return other values unchanged."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


class ParameterList(Module):
    """A list of registered parameters. Tensors become parameters, and other values are stored unchanged."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(getattr(self, str(i)) for i in range(*idx.indices(len(self))))
        return getattr(self, str(absolute_index(idx, len(self))))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, str(absolute_index(idx, len(self))), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, parameters: Iterable[Any]) -> ParameterList:
        return self.extend(parameters)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value: Any) -> ParameterList:
        """Add a value at the end."""
        self._size += 1
        self[-1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add values at the end. Raise TypeError if `values` is a tensor or is not iterable."""
        if isinstance(values, Tensor) or not isinstance(values, Iterable):
            raise TypeError("ParameterList.extend should be called with an iterable, but got " + type(values).__name__)
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(
            f"  ({i}): {_describe(value, str(value.dtype) if isinstance(value, torch.Tensor) else '')}"
            for i, value in enumerate(self)
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of registered parameters by name, in the order of insertion.

    Tensors become parameters, and other values are stored unchanged.
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key: str, value: Any) -> None:
        attribute = self._key_to_attr(key)
        self._keys[attribute] = None
        setattr(self, attribute, _as_parameter(value)) if attribute in self._stored() else self._add(attribute, value)

    def _stored(self) -> set[str]:
        return {*self._parameters, *self._modules, *self._buffers, *self.__dict__}

    def _add(self, attribute: str, value: Any) -> None:
        value = _as_parameter(value)
        if isinstance(value, Parameter):
            self.register_parameter(attribute, value)
        else:
            setattr(self, attribute, value)

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Return a new dictionary with the same values."""
        return ParameterDict(OrderedDict((key, self[key]) for key in self._keys))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value of `key`. If `key` does not exist, set it to `default` first."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all values."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove and return the value of `key`."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the pair that was added last."""
        key, _ = self._keys.popitem()
        # The key is put back, so that `pop` can remove it in the usual way.
        self._keys[key] = None
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of `key`, or `default` if the key does not exist."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a new dictionary with the value `default` for each key."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Any:
        """The names."""
        return self._keys.keys()

    def items(self) -> Iterator[tuple[str, Any]]:
        """The pairs of name and value."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterator[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add the values of a mapping or of an iterable of pairs, and replace values with the same names.

        The values of a mapping without a defined order, such as a `dict`, are added in the order of the sorted keys.
        """
        added = pairs(parameters, "ParametersDict", "ParameterDict")
        has_order = not isinstance(parameters, Mapping) or isinstance(parameters, OrderedDict)
        for key, value in added if has_order else sorted(added, key=itemgetter(0)):
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(
            f"  ({key}): {_describe(value, value.type() if isinstance(value, torch.Tensor) else '')}"
            for key, value in self.items()
        )

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: Any) -> ParameterDict:
        joined = self.copy()
        joined.update(other)
        return joined

    def __ror__(self, other: Any) -> Any:
        joined = other.copy()
        joined.update(self)
        return joined

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self


def _describe(value: Any, kind: str) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    name = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{name} containing: [{kind} of size {'x'.join(map(str, value.size()))}]"


for _kind in (ParameterList, ParameterDict):
    end_methods_at_caller(_kind)
