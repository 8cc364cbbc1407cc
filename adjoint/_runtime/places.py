"""Where PyTorch has each public object: the table in `places.txt`, and what follows it in every module of this package.

PyTorch divides its objects among more modules than this package has files, and gives many of them in several modules. A line
`FILE > MODULE: NAMES` of the table is for what a file defines and PyTorch has in another module: its `__module__` says so, and
pickles and checkpoints name it so. A line `FILE = MODULE: NAMES` is for what is found in a module, too. `OTHER=NAME` is for an
object that is called OTHER there, `NAME=` for the file itself.

Nothing is imported before it is asked for: a name is looked up, and a module without a file is made, at its first use.
`scripts/write_places.py` writes the table, for which it asks PyTorch.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from .first_use import import_late
from .tracebacks import ending_at_caller

__all__ = [
    "OWN",
    "THEIRS",
    "SameModule",
    "become_torch",
    "module_named",
    "place",
    "place_of_function",
    "theirs",
]

OWN, THEIRS = "adjoint", "torch"

SECOND = f"{OWN}.torch_names."
"""What the second name of a module begins with that lies in the folder `torch_names`, which type checkers know it by."""

ONE_FILE = dict.fromkeys(("mps", "mtia", "xpu"), "absent_devices")
"""Modules that are alike, and the file that each of them is made of."""

PUBLISHED = "torch"
"""In place of a file: the functions that the families of operators publish in the namespace `adjoint`."""


class _Table:
    """The lines of the table, each read when its file or its module is asked for."""

    def __init__(self) -> None:
        self.homes: defaultdict[str, dict[str, str]] = defaultdict(dict)
        """By each file, PyTorch's modules for what it defines, with the names."""
        self.contents: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        """By each of PyTorch's modules, what files it has further names from, with the names."""
        for line in filter(None, Path(__file__).with_suffix(".txt").read_text(encoding="ascii").splitlines()):
            places, _, names = line.partition(": ")
            file, sign, module = places.split(" ")
            if sign == ">":
                self.homes[file][module] = names
            if file == module and sign == ">":  # the file has them under their own names
                names = " ".join(each for each in names.split(" ") if "=" in each)
            if names:
                self.contents[module].append(("" if file == PUBLISHED else file, names))

    def modules(self) -> set[str]:
        """The modules with further names, and the packages of which they are part."""
        found = set(self.contents)
        for module in self.contents:
            parts = module.split(".")
            found.update(".".join(parts[:count]) for count in range(1, len(parts)))
        return found


_TABLE = _Table()
_MODULES = _TABLE.modules()


def _relative(name: str) -> str:
    """The name of a module of this package, of either name, within the package."""
    return name.partition(".")[2]


def theirs(name: str) -> str:
    """PyTorch's name of the module `name` of this package."""
    return THEIRS + name.removeprefix(OWN)


_package = OWN
"""The package that objects say they come from."""


def module_named(name: str) -> str:
    """The full name of a module of PyTorch's, as objects say it."""
    return f"{_package}.{name}".rstrip(".")


def become_torch() -> None:
    """From now on let `torch` mean this package: its modules have both names, and objects say that they come from `torch`."""
    global _package
    _package = THEIRS
    for name, module in list(sys.modules.items()):
        if name == OWN or (name.startswith(f"{OWN}.") and not name.startswith(SECOND)):
            sys.modules[theirs(name)] = module
            place(module)


# --- what a file defines ------------------------------------------------------------------------------------------


def place(module: ModuleType) -> None:
    """Let what a module of this package defines say where PyTorch has it, and let the module have its further names."""
    file, own = _relative(module.__name__), vars(module)
    if _package == THEIRS:
        module.__name__ = theirs(module.__name__)
        for value in list(own.values()):
            if isinstance(value, (type, FunctionType)) and value.__module__.partition(".")[0] == OWN:
                _say(value, theirs(value.__module__))
    for there, names in _TABLE.homes.get(file, {}).items():
        for name in names.split(" "):
            shown, _, defined = name.rpartition("=")
            if defined in own:  # else it is made at its first use
                _say(own[defined], module_named(there), shown)
    inner = inner_modules(file)
    if inner and "__path__" not in own:
        own["__path__"] = []  # modules without a file are found in it
    late = frozenset(own.get("__all__", ())) if file else frozenset()
    for name in inner & {
        *own,
        *late,
    }:  # such as the function `multiprocessing.spawn`: its module must not take its place
        full = f"{OWN}.{file}.{name}"
        known = own.get(name)
        if getattr(known, "__name__", None) == full or PathFinder.find_spec(full, own["__path__"]) is not None:
            continue
        made = (
            known if isinstance(known, ModuleType) else ModuleType(full)
        )  # known: a file has the module under another name
        sys.modules.update(dict.fromkeys((full, full.replace(OWN, _package, 1)), made))
        if made is known:
            _extend(made, f"{file}.{name}", frozenset())
        else:
            place(made)
    if file in _MODULES and "further" not in getattr(own.get("__getattr__"), "__dict__", ()):
        _extend(module, file, inner & late)


def _say(value: Any, module: str, name: str = "") -> None:
    """Let a class, with its methods, or a function say that it comes from a module, where it has a name of its own."""
    former, value.__module__ = value.__module__, module
    if name:
        value.__qualname__ = name
    if isinstance(value, type):
        for each in vars(value).values():
            function = getattr(each, "__func__", each)
            if isinstance(function, FunctionType) and function.__module__ == former:
                function.__module__ = module


def place_of_function(namespace: str, name: str) -> str:
    """The module that PyTorch has a function in which the families of operators publish in a namespace."""
    return module_named(_functions().get(name, "") if namespace == PUBLISHED else namespace)


@cache
def _functions() -> dict[str, str]:
    return {name: there for there, names in _TABLE.homes.get(PUBLISHED, {}).items() for name in names.split(" ")}


# --- what a module has besides --------------------------------------------------------------------------------------


def _extend(module: ModuleType, file: str, late: frozenset[str]) -> None:
    """Let a module have the names that PyTorch's has besides, imported at their first use, but for those it has `late` itself."""
    own = vars(module)
    before: Callable[[str], Any] | None = own.get("__getattr__")
    listed: Callable[[], list[str]] = own.get("__dir__", lambda: list(own))

    def __getattr__(name: str) -> Any:
        if name in further_names(file) and name not in late:
            return own.setdefault(name, _further(file, name))
        if before is not None:
            return before(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*listed(), *further_names(file)})

    __getattr__.further = True  # type: ignore[attr-defined]
    own["__getattr__"], own["__dir__"] = ending_at_caller(__getattr__), __dir__


@cache
def further_names(module: str) -> dict[str, tuple[str, str]]:
    """What a module of PyTorch's has that its file, if there is one, has not: the file and the name of each there."""
    found = {}
    for file, names in _TABLE.contents.get(module, ()):
        for each in names.split(" "):
            shown, sign, defined = each.partition("=")
            found[shown] = file, defined if sign else shown
    return {**{each: (f"{module}.{each}".lstrip("."), "") for each in inner_modules(module)}, **found}


@cache
def inner_modules(module: str) -> frozenset[str]:
    """The names of the modules in a module, of those that have further names."""
    return frozenset(each.rpartition(".")[2] for each in _MODULES if each and each.rpartition(".")[0] == module)


def _further(module: str, name: str) -> Any:
    """An object that a module has by the table, or a module in it."""
    file, defined = further_names(module)[name]
    there = import_late(f"{OWN}.{file}".rstrip("."))
    return getattr(there, defined) if defined else there


# --- modules --------------------------------------------------------------------------------------------------------


class Finder:
    """Finds the modules of this package; each follows the table when it has run. Those without a file are made of it."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find a module of this package; leave all others to other finders."""
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
    """Run a module, which has PyTorch's name from the first moment, and let it follow the table."""
    name = module.__name__
    names = (name, theirs(name)) if _package == THEIRS else (name,)
    sys.modules.update(dict.fromkeys(names, module))
    try:
        execute(module)
    except BaseException:
        for each in names[1:]:  # after an error neither name leads to it
            del sys.modules[each]
        raise
    there = sys.modules.get(name, module)  # some put another module in their place
    sys.modules.update(dict.fromkeys(names, there))
    place(there)


class _WithoutFile:
    """Makes a module of PyTorch's for whose contents there are other files here."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make it."""
        return ModuleType(spec.name, f"`torch.{_relative(spec.name)}`: names, no logic.")

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: it has the names that the table says."""


class SameModule:
    """Loads a module under a second name, such as `torch.x.y`: imports `adjoint.x.y`, and leaves it as it is."""

    def __init__(self, own: str) -> None:
        self.own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Give the module that there is; the import system is about to write `spec` into it."""
        module = import_module(self.own)
        self.spec: Any = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own specification back; it has run."""
        module.__spec__ = self.spec


sys.modules[OWN].__path__.append(str(Path(__file__).parents[1] / "torch_names"))
sys.meta_path.insert(0, Finder())
