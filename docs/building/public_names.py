"""The public names: the module, the object, the docstring, and the family of operators that declares each name."""

from __future__ import annotations

import inspect
import pkgutil
import sys
import types
import warnings
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import adjoint
from adjoint._runtime.absent import is_absent
from adjoint.dispatch.operator_index import FAMILIES
from adjoint.missing import names_in

PACKAGE = Path(adjoint.__file__).parent
PYTORCH_NAMES = Path(__file__).parents[2] / "scripts" / "pytorch_names.txt"

FURTHER_MODULES = Path(__file__).parents[1] / "reference" / "further_modules.txt"
"""Modules that PyTorch does not have, and modules of PyTorch that its list of names leaves out."""


@dataclass(frozen=True)
class PublicName:
    """One public name: `torch.linalg.svd` is the name `svd` of the module `torch.linalg`."""

    module: str
    name: str
    value: Any = field(compare=False, hash=False, repr=False)

    @property
    def path(self) -> str:
        """The full name, as in a program that begins with `import adjoint as torch`."""
        return f"{self.module}.{self.name}"

    @cached_property
    def docstring(self) -> str:
        """The docstring of the object without indentation, or '' if only its type has a docstring."""
        value = self.value
        if isinstance(value, (type, property)) or callable(value) or hasattr(type(value), "__get__"):
            own = value.__doc__ if isinstance(value, type) else inspect.getdoc(value)
            if not own and str(getattr(value, "__module__", "")).startswith("multiprocessing"):
                own = "That of Python's package `multiprocessing`."
            return inspect.cleandoc(own) if own else ""
        return ""

    @property
    def kind(self) -> str:
        """The kind of the object: `class`, `exception`, `function`, `method`, `attribute`, or `data`."""
        in_class = isinstance(owner_of(self.module), type)
        if isinstance(self.value, type):
            return "exception" if issubclass(self.value, BaseException) else "class"
        if in_class:
            return "method" if callable(self.value) else "attribute"
        return "function" if callable(self.value) else "data"

    @property
    def is_described(self) -> bool:
        """Whether the reference describes the object. Constants and objects of most third-party packages are not described."""
        if self.kind == "data" or isinstance(self.value, (bool, int, float, str)):
            return False
        package = str(getattr(self.value, "__module__", "adjoint")).partition(".")[0]
        return package in ("adjoint", "torch", "numpy", "None") or package in sys.stdlib_module_names - {"builtins"}

    @property
    def family(self) -> str:
        """The family of operators that declares the name, such as `math.pointwise`, or ''."""
        part = "functional" if self.module == "torch.nn.functional" else self.module.removeprefix("torch.")
        return families().get((part, self.name), "")


@cache
def families() -> dict[tuple[str, str], str]:
    """Return the family that declares each operator, by namespace and name."""
    return {
        (part, name): family
        for family, groups in FAMILIES.items()
        for parts, names in groups.items()
        for part in parts.split()
        for name in names.split()
    }


@cache
def owner_of(module: str) -> Any:
    """Return the module or class of this name, or None if it does not exist."""
    try:
        return pkgutil.resolve_name(f"adjoint{module.removeprefix('torch')}")
    except (ImportError, AttributeError):
        return None


def _value(owner: Any, name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return getattr(owner, name)
        except Exception:  # noqa: BLE001  (missing objects raise errors of many types)
            return None


def _defined_below(package: Any) -> list[str]:
    """Return the names that a package without `__all__` imports from its modules."""
    inside = f"{package.__name__}."
    places = {name: str(getattr(value, "__module__", "")) for name, value in vars(package).items()}
    return [name for name, place in places.items() if f"{place}.".replace("torch.", "adjoint.", 1).startswith(inside)]


@cache
def public_names() -> tuple[PublicName, ...]:
    """Return every public name, by module: the available names of PyTorch, and the other names that modules export."""
    further = FURTHER_MODULES.read_text(encoding="utf-8").split()
    modules = {module: set(names) for module, names in names_in(PYTORCH_NAMES).items()} | {
        name: set() for name in further
    }
    del modules["torch.ops.aten"]  # the module contains every operator a second time
    found = []
    for module, names in modules.items():
        owner = owner_of(module)
        if owner is None:
            continue
        if not isinstance(owner, type):
            exported = vars(owner).get("__all__", _defined_below(owner) if module in further else ())
            names |= {name for name in exported if not name.startswith("_")}
        for name in sorted(names):
            value = _value(owner, name)
            if value is None or is_absent(value) or isinstance(value, types.ModuleType):
                continue
            found.append(PublicName(module, name, value))
    return tuple(found)
