"""Modules that contain other modules in order or by name."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from ..._runtime.tracebacks import end_methods_at_caller, warn
from .lookup import indented
from .module import Module

__all__ = ["Container", "ModuleDict", "ModuleList", "Sequential"]


def absolute_index(index: Any, length: int) -> int:
    """Return `index` counted from the start. Raise IndexError if the index is out of range."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index + length if index < 0 else index


class Container(Module):
    """A module with named submodules as arguments of its constructor.

    This class exists only for compatibility, because every `Module` may have submodules.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. Subclass that instead.",
            FutureWarning,
        )
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Holder(Module):
    """A module that contains modules under keys or at positions."""

    _modules: dict[str, Module]  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self._modules)

    def pop(self, key: Any) -> Module:
        """Remove and return the module at `key`."""
        own: Any = self
        module: Module = own[key]
        del own[key]
        return module


class _List(_Holder):
    """A module that contains modules at positions, which are also their names."""

    def __delitem__(self, key: Any) -> None:
        names = list(self._modules)
        for name in names[key] if isinstance(key, slice) else [names[absolute_index(key, len(names))]]:
            delattr(self, name)
        self.__dict__["_modules"] = {str(i): module for i, module in enumerate(self._modules.values())}

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]


class Sequential(_List):
    """Calls its modules in order. Each module receives the output of the previous module.

    The arguments are modules, or one ordered dictionary of modules by name.

    >>> import adjoint as torch
    >>> torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Module | OrderedDict[str, Module]) -> None:
        super().__init__()
        named: Any = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name) if isinstance(name, int) else name, module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def _name_at(self, index: Any) -> str:
        names = list(self._modules)
        return names[absolute_index(index, len(names))]

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._name_at(idx)]

    def __setitem__(self, idx: Any, module: Module) -> None:
        setattr(self, self._name_at(idx), module)

    def __add__(self, other: Any) -> Sequential:
        self._require_sequential(other)
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Sequential:
        self._require_sequential(other)
        return self.extend(list(other))

    @staticmethod
    def _require_sequential(other: Any) -> None:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)!s} is given.")

    def __mul__(self, other: Any) -> Sequential:
        self._require_factor(other)
        return Sequential(*(module for _ in range(other) for module in self))

    def __rmul__(self, other: Any) -> Sequential:
        return self.__mul__(other)

    def __imul__(self, other: Any) -> Sequential:
        self._require_factor(other)
        own = list(self)
        for _ in range(other - 1):
            self.extend(own)
        return self

    def _require_factor(self, other: Any) -> None:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")

    def append(self, module: Module) -> Sequential:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Sequential:
        """Add a module before position `index`. Raise IndexError if the position is out of range."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self._modules)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        if index < 0:
            index += n
        for i in range(n, index, -1):
            self._modules[str(i)] = self._modules[str(i - 1)]
        self._modules[str(index)] = module
        return self

    def extend(self, sequential: Iterable[Module]) -> Sequential:
        """Add modules at the end."""
        for module in list(sequential):
            self.append(module)
        return self


class ModuleList(_List):
    """A list of registered modules, without `forward`.

    >>> import adjoint as torch
    >>> layers = torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(3))
    >>> layers
    ModuleList(
      (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[str(absolute_index(idx, len(self)))]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, str(absolute_index(idx, len(self))), module)

    def __iadd__(self, other: Iterable[Module]) -> ModuleList:
        return self.extend(other)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, iter(other)))

    def __repr__(self) -> str:
        """Return the printed form. Consecutive modules with equal text are printed once, with the number of modules."""
        if len(self) == 0:
            return self._get_name() + "()"
        runs: list[tuple[int, int, str]] = []
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], i, text)
            else:
                runs.append((i, i, text))
        lines = [
            f"({start}): {indented(text)}" if start == end else f"({start}-{end}): {end - start + 1} x {indented(text)}"
            for start, end, text in runs
        ]
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"

    def insert(self, index: int, module: Module) -> None:
        """Add a module before position `index`."""
        for i in range(len(self._modules), index, -1):
            self._modules[str(i)] = self._modules[str(i - 1)]
        self._modules[str(index)] = module

    def append(self, module: Module) -> ModuleList:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add modules at the end. Raise TypeError if `modules` is not iterable."""
        if not isinstance(modules, Iterable):
            raise TypeError("ModuleList.extend should be called with an iterable, but got " + type(modules).__name__)
        offset = len(self)
        for i, module in enumerate(list(modules)):
            self.add_module(str(offset + i), module)
        return self


class ModuleDict(_Holder):
    """A dictionary of registered modules by name, in the order of insertion, without `forward`."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """The pairs of name and module."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add the modules of a mapping or of an iterable of pairs. New modules replace modules with the same names."""
        for name, module in pairs(modules, "ModuleDict", "ModuleDict"):
            self[name] = module


def pairs(source: Any, called: str, kind: str) -> Iterator[tuple[str, Any]]:
    """Return the key/value pairs of a mapping or of an iterable of pairs, in order."""
    if not isinstance(source, Iterable):
        raise TypeError(
            f"{called}.update should be called with an iterable of key/value pairs, but got {type(source).__name__}"
        )
    if hasattr(source, "items"):
        yield from source.items()
        return
    for position, pair in enumerate(source):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{kind} update sequence element #{position} should be Iterable; is{type(pair).__name__}")
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(f"{kind} update sequence element #{position} has length {len(pair)}; 2 is required")
        yield pair


for _kind in (_Holder, _List, Sequential, ModuleList, ModuleDict):
    end_methods_at_caller(_kind)
