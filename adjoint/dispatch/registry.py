"""Families of operators. A family is imported when one of its names is first used.

Until then, namespaces and descriptors in place of methods of `Tensor` stand in for the names in `operator_index`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from types import MappingProxyType, ModuleType
from typing import Any

from .._runtime.first_use import import_late
from .._runtime.tracebacks import shorten
from .._runtime.uninterrupted import uninterrupted
from ..kernels.memory.storages import UntypedStorage
from ..kernels.runtime.sparse_array import SparseArray
from ..tensor import Tensor
from .operator_index import FAMILIES

NAMESPACES = ("torch", "functional", "linalg", "special", "fft", "sparse", "aten")
"""The parts of the index for public functions."""

METHODS, OPERATORS = "Tensor", "operators"
"""The parts of the index for methods and properties of `Tensor`, and for names that only formulas use."""

OTHER_METHODS = {
    "adjoint.autograd.methods": (
        "_backward_hooks _grad_fn _post_accumulate_grad_hooks _use_count backward grad_dtype register_hook "
        "register_post_accumulate_grad_hook requires_grad_ retain_grad retains_grad volatile"
    ),
    "adjoint.tape.deep_copy": "__deepcopy__",
    "adjoint.tape.torch_dispatch": "__torch_dispatch__",
    "adjoint.tape.torch_function": "__torch_function__",
}
"""The methods and properties of `Tensor` that are not operators, and the modules that define them."""

HOOKS: tuple[tuple[type, str, str], ...] = (
    (Tensor, "adjoint.array_api", "_array_namespace"),
    (Tensor, "adjoint.autograd.methods", "_check_new_grad"),
    (Tensor, "adjoint.aten.torch_dispatch", "_gradient_operators _takes_operators_over"),
    (Tensor, "adjoint.multiprocessing.sharing", "_move_to_shared_memory"),
    (Tensor, "adjoint.operators.create.legacy", "_legacy_array"),
    (Tensor, "adjoint.operators.memory.changed_views", "_rebase _regenerate"),
    (Tensor, "adjoint.serialization.tensors", "_reduced"),
    (Tensor, "adjoint.tape.inference_tensors", "_share_inference"),
    (Tensor, "adjoint.tape.torch_function", "_subclassed"),
    (UntypedStorage, "adjoint.multiprocessing.sharing", "_move_to_shared_memory"),
    (UntypedStorage, "adjoint.serialization.pickled_storages", "_reduced"),
    (SparseArray, "adjoint.kernels.sparse.arithmetic", "_sum_of_gradients"),
)
"""Private methods through which classes of low layers reach higher layers: the class, the defining module, the names."""

_package = "adjoint.operators"

MISSING = object()
"""The value for a missing attribute of a module."""


def load(family: str) -> None:
    """Import the family, unless it has already been imported. If another thread is importing it, wait."""
    import_late(f"{_package}.{family}")


def load_all() -> None:
    """Import every family, and all methods of `Tensor`, for code that inspects everything."""
    for family in FAMILIES:
        load(family)
    for module in OTHER_METHODS:
        import_late(module)


def _by_part() -> dict[str, dict[str, str]]:
    """The names in each part of the index, with the family that declares each name."""
    parts: dict[str, dict[str, str]] = {part: {} for part in (*NAMESPACES, METHODS, OPERATORS)}
    for family, found in FAMILIES.items():
        for places, names in found.items():
            declared = dict.fromkeys(names.split(), family)
            for part in places.split():
                parts[part].update(declared)
    return parts


_DECLARED = _by_part()


@cache
def operators() -> dict[str, str]:
    """The family of each operator, and of every other name that formulas may use."""
    return {**_DECLARED["torch"], **_DECLARED[METHODS], **_DECLARED[OPERATORS]}


class Declared(dict[str, Any]):
    """The declared names with their values. A missing name is imported."""

    def __init__(self, families: dict[str, str]) -> None:
        super().__init__()
        self._families = families

    def __missing__(self, name: str) -> Any:
        load(self._families[name])
        value = self.get(name, self)
        if value is self:
            raise KeyError(name)
        return value

    def names(self) -> set[str]:
        """Return all names, including names of families that are not imported."""
        return {*self, *self._families}

    def as_module(
        self, module: dict[str, Any], modules: tuple[str, ...] = (), elsewhere: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
        """Return `__getattr__` and `__dir__` with these names, `modules`, and names from `elsewhere`, for the given globals."""
        package = module["__name__"]

        def look_up(name: str) -> Any:
            if name in modules:
                return import_late(f"{package}.{name}")
            if name == "__all__":
                exported = {name for name, value in module.items() if type(value) is not ModuleType}
                return sorted(name for name in exported | elsewhere.keys() | self.names() if name[0] != "_")
            try:
                place = elsewhere.get(name)
                value = self[name] if place is None else getattr(import_late(f"{package}.{place}"), name)
            except KeyError:
                value = MISSING
            if value is MISSING:
                try:
                    value = import_late("adjoint.missing").stand_in(package, name)
                except AttributeError as error:
                    shorten(error)
                    raise
            module[name] = value
            return value

        def listed() -> list[str]:
            return sorted({*module, *self.names(), *modules, *elsewhere})

        return look_up, listed


class Namespace:
    """The declared names as attributes. A missing name is imported."""

    def __init__(self, families: dict[str, str]) -> None:
        self._families = families

    def __getattr__(self, name: str) -> Any:
        family = self._families.get(name)
        if family is None:
            raise AttributeError(f"no operator has the name {name!r}")
        load(family)
        return vars(self)[name]


PUBLIC = {name: Declared(_DECLARED[name]) for name in NAMESPACES}
"""The public functions by namespace, including functions that differ in `adjoint.ops.aten` or exist only there."""


_COMPARISONS = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}


def _raised(error: BaseException, *_: Any) -> None:
    raise error


class Awaited:
    """A stand-in for a method or a property of a class, before the module that defines it is imported."""

    __slots__ = ("module", "name", "owner")

    def __init__(self, owner: type, module: str, name: str) -> None:
        self.owner = owner
        self.module = module
        self.name = name

    @uninterrupted
    def __get__(self, tensor: Any, owner: type) -> Any:
        try:
            import_late(self.module)
            return vars(self.owner)[self.name].__get__(tensor, owner)
        except BaseException as error:
            if tensor is None or self.name not in _COMPARISONS:
                raise
            # CPython interprets an error in `__get__`, even an interrupt, as a missing method.
            return partial(_raised, error)

    def __set__(self, tensor: Any, value: Any) -> None:
        import_late(self.module)
        setattr(tensor, self.name, value)

    def __delete__(self, tensor: Any) -> None:
        import_late(self.module)
        delattr(tensor, self.name)


def stand_in_for_methods() -> None:
    """Install stand-ins for the methods of modules that are not imported."""
    there = {name for kind in Tensor.__mro__[:-1] for name in vars(kind)}
    methods = {name: f"{_package}.{family}" for name, family in _DECLARED[METHODS].items()}
    for module, names in OTHER_METHODS.items():
        methods.update(dict.fromkeys(names.split(), module))
    for name, module in methods.items():
        if name not in there:
            setattr(Tensor, name, Awaited(Tensor, module, name))
    for owner, module, names in HOOKS:
        for name in names.split():
            setattr(owner, name, Awaited(owner, module, name))
