"""The conditions under which a captured program replaces a function, as source and as text: requirements on the arguments."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy import ndarray

from ..tape.edges import edge_of
from ..tensor import LEAF, Tensor
from .known import IMMUTABLE, MUTABLE, is_signed, shown
from .program import Source

UNREADABLE = (LookupError, AttributeError, TypeError, ValueError, ArithmeticError)
"""The errors that conditions raise for objects of a completely different kind."""


class Check(NamedTuple):
    """A condition under which a program replaces a function: its source, and its text for people.

    `load`: the preceding line, which loads an input of the program. `fits`: the condition on the array of the tensor at
    `place`.
    """

    condition: str
    text: str
    load: str = ""
    place: str = ""
    fits: Any = None

    def reason(self, names: dict[str, Any]) -> str:
        """Return the text of the unmet condition, or the size that has changed. `names`: the objects that the condition names."""
        if self.fits is not None:
            shape = eval(self.place, names)._array.shape
            for dim, size in self.fits.sizes if len(shape) == self.fits.ndim else ():
                if shape[dim] != size:
                    return f"{self.place}.shape[{dim}] == {size} (it is {shape[dim]} now)"
        return self.text


class Structure:
    """The tensors in nested arguments or results, and how the other parts are tested or built again."""

    def __init__(self, source: Source, numbers: set[str]) -> None:
        self.source, self.numbers = source, numbers
        self.checks: list[Check] = []
        self.tensors: list[tuple[str, Tensor]] = []
        self.containers: dict[int, str] = {}
        self.parts: list[tuple[Any, ...]] = []

    def read(self, place: str, value: Any) -> None:
        """Read the tensors of an argument at `place`, and the conditions on the other parts."""
        constant, kind = self.source.constant, type(value)
        if place in self.numbers:
            self.check(f"type({place}) is {constant(kind)}", place, kind)
            self.parts.append(("number_of_type", place, kind.__name__))
        elif isinstance(value, Tensor):
            self.tensors.append((place, value))
        elif kind in (list, tuple):
            self.check(f"type({place}) is {constant(kind)} and len({place}) == {len(value)}", place, value)
            self.parts.append(("sequence", place, kind.__name__, len(value)))
            for index, each in enumerate(value):
                self.read(f"{place}[{index}]", each)
        elif kind is dict:
            keys = constant(tuple(value))
            same = (
                f"tuple({place}) == {keys}" if {*map(type, value)} <= {str} else f"same_items(tuple({place}), {keys})"
            )
            self.check(f"type({place}) is dict and {same}", place, value)
            self.parts.append(("keys", place, tuple(value)))
            for key, each in value.items():
                self.read(f"{place}[{repr(key) if type(key) in (str, int) else constant(key)}]", each)
        elif is_signed(value):
            self.check(f"type({place}) is {kind.__name__} and repr({place}) == '{value}'", place, value)
        elif kind is frozenset:
            self.check(
                f"type({place}) is frozenset and same_items(tuple({place}), {constant(tuple(value))})", place, value
            )
        elif kind in IMMUTABLE and value is not None and kind is not bool:
            self.check(f"type({place}) is {constant(kind)} and {place} == {constant(value)}", place, value)
        else:
            self.check(f"{place} is {constant(value)}", place, value)
        if kind in MUTABLE:
            self.containers[id(value)] = place
        elif not isinstance(value, (Tensor, tuple)) and place not in self.numbers:
            self.parts.append(("value", place, value))

    def check(self, condition: str, place: str, value: Any) -> None:
        """Require that the object at `place` is `value`, or similar to it."""
        self.checks.append(Check(condition, f"{place} is {shown(value)}"))


class Fits:
    """Checks that the array of a tensor has the same layout as at the capture of the program."""

    def __init__(self, array: Any) -> None:
        self.dtype, self.shape, self.strides = array.dtype, array.shape, array.strides
        self.ndim, self.sizes = array.ndim, [*enumerate(array.shape)]

    def __str__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)} with strides {self.strides}"

    def __call__(self, array: Any) -> bool:
        """Whether an array has the same class, dtype, shape and strides."""
        return (
            type(array) is ndarray
            and array.dtype is self.dtype
            and array.shape == self.shape
            and array.strides == self.strides
        )


class Group:
    """A group of tensors from outside the function, some of which the function changes."""

    def __init__(self, tensors: list[Tensor]) -> None:
        self.tensors = tensors
        self.identities = {id(each) for each in tensors}

    def is_apart(self, tensor: Tensor, *others: Tensor) -> bool:
        """Whether a tensor is not in the group or in `others`, and shares memory with none of these tensors."""
        counter = tensor._counter
        if counter is None:  # nothing else has its memory
            return id(tensor) not in self.identities and all(tensor is not each for each in others)
        return all(tensor is not each and counter is not each._counter for each in (*self.tensors, *others))

    def is_alone(self, tensor: Tensor) -> bool:
        """Whether one tensor of the group shares memory with none of the others."""
        counter = tensor._counter
        return counter is None or all(tensor is each or counter is not each._counter for each in self.tensors)


def edge_condition(place: str, tensor: Tensor) -> str:
    """Return the condition that `requires_grad` and `is_leaf` of a tensor have not changed."""
    if tensor._base is not None:
        return f"edge_of({place}) is None" if edge_of(tensor) is None else f"edge_of({place}) is not None"
    edge = tensor._edge
    if edge is None or edge is LEAF:
        return f"{place}._edge is {'None' if edge is None else 'LEAF'}"
    return f"type({place}._edge) is tuple"


def usual_condition(place: str, tensor: Tensor) -> str:
    """Return the condition that a tensor has no rare attributes, and is an inference tensor if it was one."""
    if tensor.is_inference():
        return f"is_usual({place}, True)"
    return f"({place}._extra is None or is_usual({place}))"
