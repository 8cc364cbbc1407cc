"""The places of PyTorch's public objects: the table `places.txt`, and its application to every module of this package.

PyTorch divides its objects among more modules than this package has files, and exports many of them from several
modules. A line `FILE > MODULE: NAMES` of the table lists names that a file defines and that PyTorch defines in another
module. Their `__module__`, pickles and checkpoints name that module. A line `FILE = MODULE: NAMES` lists names that
another module exports too. `OTHER=NAME` is an object that has the name OTHER in that module, and `NAME=` is the file
itself.

Nothing is imported early. Names are resolved, and modules without a file are created, on first use.
`scripts/write_places.py` writes the table from PyTorch.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import FunctionType, ModuleType
from typing import Any

from .first_use import import_late
from .tracebacks import end_errors_of, ending_at_caller

OWN, THEIRS = "adjoint", "torch"

FOLDER = sys.modules[OWN].__path__[0]
"""The folder of the package. Importing `pathlib` would take longer than everything in this module."""

SECOND = f"{OWN}.torch_names."
"""The prefix of the second name of modules in the folder `torch_names`. Type checkers use this name."""

ONE_FILE = dict.fromkeys(("mps", "mtia", "xpu"), "absent_devices")
"""Modules that differ only in their names, and the file that implements them."""

PUBLISHED = "torch"
"""A value in place of a file name: the functions that the families of operators publish in the namespace `adjoint`."""


class _Table:
    """The lines of the table. Each line is parsed when its file or its module is requested."""

    def __init__(self) -> None:
        self.homes: defaultdict[str, dict[str, str]] = defaultdict(dict)
        """For each file, PyTorch's modules of the names that the file defines, with the names."""
        self.contents: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        """For each module, the files from which the PyTorch module gets additional names, with the names."""
        text = (
            SourceFileLoader(__name__, __file__).get_data(f"{FOLDER}{os.sep}_runtime{os.sep}places.txt").decode("ascii")
        )
        for line in filter(None, text.splitlines()):
            places, _, names = line.partition(": ")
            file, sign, module = places.split(" ")
            if sign == ">":
                self.homes[file][module] = names
            if file == module and sign == ">":  # the file defines these names
                names = " ".join(each for each in names.split(" ") if "=" in each)
            if names:
                self.contents[module].append(("" if file == PUBLISHED else file, names))

    def modules(self) -> set[str]:
        """The modules with additional names, and their packages."""
        found = set(self.contents)
        for module in self.contents:
            parts = module.split(".")
            found.update(".".join(parts[:count]) for count in range(1, len(parts)))
        return found


_TABLE = _Table()
_MODULES = _TABLE.modules()


def _relative(name: str) -> str:
    """Return the name of a module of this package, under either name, relative to the package."""
    return name.partition(".")[2]


def theirs(name: str) -> str:
    """Return PyTorch's name of the module `name` of this package."""
    return THEIRS + name.removeprefix(OWN)


_package = OWN
"""The package that objects report as their origin."""


def module_named(name: str) -> str:
    """Return the full name of a PyTorch module that objects report as their origin."""
    return f"{_package}.{name}".rstrip(".")


def become_torch() -> None:
    """Make `torch` mean this package from now on. Its modules get both names, and objects report `torch` as their origin."""
    global _package
    _package = THEIRS
    for name, module in list(sys.modules.items()):
        if name == OWN or (name.startswith(f"{OWN}.") and not name.startswith(SECOND)):
            sys.modules[theirs(name)] = module
            if isinstance(module, ModuleType):  # settings stand for modules, too
                place(module)


# --- what a file defines ------------------------------------------------------------------------------------------


def place(module: ModuleType) -> None:
    """Apply the table to a module of this package: set the origin of its objects, and add its additional names.

    Errors of its functions end at the user's call.
    """
    file, own = _relative(module.__name__), vars(module)
    end_errors_of(file, own)
    if _package == THEIRS:
        module.__name__ = theirs(module.__name__)
        for value in list(own.values()):
            if isinstance(value, (type, FunctionType)) and value.__module__.partition(".")[0] == OWN:
                _set_origin(value, theirs(value.__module__))
    for there, names in _TABLE.homes.get(file, {}).items():
        for name in names.split(" "):
            shown, _, defined = name.rpartition("=")
            if defined in own:  # otherwise it is created on first use
                _set_origin(own[defined], module_named(there), shown)
    inner = inner_modules(file)
    if inner and "__path__" not in own:
        own["__path__"] = []  # modules without a file are looked up in it
    late = frozenset(own.get("__all__", ())) if file else frozenset()
    for name in inner & {
        *own,
        *late,
    }:  # such as the function `multiprocessing.spawn`, which its module must not replace
        full = f"{OWN}.{file}.{name}"
        known = own.get(name)
        if getattr(known, "__name__", None) == full or PathFinder.find_spec(full, own["__path__"]) is not None:
            continue
        made = (
            known if isinstance(known, ModuleType) else ModuleType(full)
        )  # names of a module that a file contains under another name
        sys.modules.update(dict.fromkeys((full, full.replace(OWN, _package, 1)), made))
        if made is known:
            _extend(made, f"{file}.{name}", frozenset())
        else:
            place(made)
    if file in _MODULES and "further" not in getattr(own.get("__getattr__"), "__dict__", ()):
        _extend(module, file, inner & late)


def _set_origin(value: Any, module: str, name: str = "") -> None:
    """Set the origin of a class and its methods, or of a function, to a module in which it has a name."""
    former, value.__module__ = value.__module__, module
    if name:
        value.__qualname__ = name
    if isinstance(value, type):
        for each in vars(value).values():
            function = getattr(each, "__func__", each)
            if isinstance(function, FunctionType) and function.__module__ == former:
                function.__module__ = module


def place_of_function(namespace: str, name: str) -> str:
    """Return the PyTorch module of a function that the families of operators publish in a namespace."""
    return module_named(_functions().get(name, "") if namespace == PUBLISHED else namespace)


def at_home() -> dict[str, str]:
    """Return the names that PyTorch defines in `torch` itself, each with the file that defines it here."""
    homes = {file: modules.get("", "").split() for file, modules in _TABLE.homes.items() if file != PUBLISHED}
    return {name: file for file, names in homes.items() for name in names if "=" not in name}


@cache
def _functions() -> dict[str, str]:
    return {name: there for there, names in _TABLE.homes.get(PUBLISHED, {}).items() for name in names.split(" ")}


# --- what a module has besides --------------------------------------------------------------------------------------


def _extend(module: ModuleType, file: str, late: frozenset[str]) -> None:
    """Make a module resolve additional names of PyTorch's module on first use, except the names `late`."""
    own = vars(module)
    before: Callable[[str], Any] | None = own.get("__getattr__")
    listed: Callable[[], list[str]] = own.get("__dir__", lambda: list(own))

    def __getattr__(name: str) -> Any:
        if name in further_names(file) and name not in late:
            source, defined = further_names(file)[name]
            there = import_late(f"{OWN}.{source}".rstrip("."))
            return own.setdefault(name, getattr(there, defined) if defined else there)
        if name == "__all__":  # a star import of a module without this list
            # `torch` exports no modules.
            further = [each for each, (_, defined) in further_names(file).items() if file or defined]
            return sorted(each for each in {*(_listed_by(before) or __dir__()), *further} if each[0] != "_")
        if before is not None:
            return before(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*listed(), *further_names(file)})

    __getattr__.further = True  # type: ignore[attr-defined]
    own["__getattr__"], own["__dir__"] = ending_at_caller(__getattr__), __dir__


def _listed_by(lookup: Callable[[str], Any] | None) -> Sequence[str]:
    """Return the names that the `__getattr__` of a module lists as `__all__`, if it does."""
    if lookup is None:
        return ()
    try:
        listed: Sequence[str] = lookup("__all__")
        return listed
    except AttributeError:
        return ()


@cache
def further_names(module: str) -> dict[str, tuple[str, str]]:
    """Return the names of a PyTorch module that its file (if any) lacks, each with a file and the name in that file."""
    found = {}
    for file, names in _TABLE.contents.get(module, ()):
        for each in names.split(" "):
            shown, sign, defined = each.partition("=")
            found[shown] = file, defined if sign else shown
    return {**{each: (f"{module}.{each}".lstrip("."), "") for each in inner_modules(module)}, **found}


@cache
def inner_modules(module: str) -> frozenset[str]:
    """Return the names of the modules inside a module, among the modules with additional names."""
    return frozenset(each.rpartition(".")[2] for each in _MODULES if each and each.rpartition(".")[0] == module)


# --- modules --------------------------------------------------------------------------------------------------------


class Finder:
    """A finder for the modules of this package, which applies the table to each, and creates those without a file."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find a module of this package. Leave all other modules to other finders."""
        if not name.startswith("adjoint."):
            return None
        if name.startswith(SECOND):
            return ModuleSpec(name, SameModule(f"{OWN}.{name.removeprefix(SECOND)}"))  # type: ignore[arg-type]
        file = ONE_FILE.get(_relative(name))
        spec = PathFinder.find_spec(f"{OWN}.{file}" if file else name, path, target)
        if file and spec is not None:
            from importlib.util import spec_from_file_location

            spec = spec_from_file_location(name, spec.origin)
        if spec is None and _relative(name) in _MODULES:
            spec = ModuleSpec(name, _WithoutFile(), is_package=True)  # type: ignore[arg-type]
        loader: Any = spec and spec.loader
        if loader is not None:
            loader.exec_module = partial(_run, loader.exec_module)
        return spec


def _run(execute: Callable[[ModuleType], None], module: ModuleType) -> None:
    """Run a module, which has PyTorch's name from the beginning, and then apply the table."""
    name = module.__name__
    names = (name, theirs(name)) if _package == THEIRS else (name,)
    sys.modules.update(dict.fromkeys(names, module))
    try:
        execute(module)
    except BaseException:
        for each in names[1:]:  # after an error, remove both names
            del sys.modules[each]
        raise
    there = sys.modules.get(name, module)  # some modules replace themselves in `sys.modules`
    sys.modules.update(dict.fromkeys(names, there))
    place(there)


class _WithoutFile:
    """A loader that creates a PyTorch module whose contents are in other files here."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Create the module."""
        return ModuleType(spec.name, f"`torch.{_relative(spec.name)}`: names, no logic.")

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing, because the module gets its names from the table."""


class SameModule:
    """A loader of a module under a second name, such as `torch.x.y`. It imports `adjoint.x.y` and leaves it unchanged."""

    def __init__(self, own: str) -> None:
        self.own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the existing module. The import system then writes `spec` into the module."""
        module = import_module(self.own)
        self.spec: Any = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the specification of the module, which has already run."""
        module.__spec__ = self.spec


sys.modules[OWN].__path__.append(f"{FOLDER}{os.sep}torch_names")
sys.meta_path.insert(0, Finder())
