"""The conditions under which a captured program replaces a function, as source and as text.

The conditions are requirements on the arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from numpy import shares_memory
from numpy.exceptions import TooHardError

from ..dtypes import get_default_dtype
from ..tape.edges import edge_of
from ..tape.modes import FLAGS, STATE
from ..tape.node import NOWHERE
from ..tensor import LEAF, Tensor
from .known import IMMUTABLE, MUTABLE, is_signed, is_undisturbed, is_usual, same_items, settings, shown
from .objects import fitting, keeping
from .program import Source
from .symbols import is_record

UNREADABLE = (LookupError, AttributeError, TypeError, ValueError, ArithmeticError)
"""The errors that conditions raise for objects of a completely different kind."""


class Check(NamedTuple):
    """A condition under which a program replaces a function: its source, and its text for people.

    `load`: a line that loads an input of the program. `fits`: the condition on the array of the tensor at `place`. `tensor`:
    the tensor at `place` if one native call tests this condition together with others. `way`: the numbers with which
    another native call tests the condition, or None.
    """

    condition: str
    text: str
    load: str = ""
    place: str = ""
    fits: Any = None
    tensor: Any = None
    way: Any = None

    def reason(self, names: dict[str, Any]) -> str:
        """Return the text of the unmet condition, or the size that has changed. `names`: the objects that the condition names."""
        if self.fits is not None:
            shape = eval(self.place, names)._array.shape
            for dim, size in self.fits.sizes if len(shape) == self.fits.ndim else ():
                if shape[dim] != size:
                    return f"{self.place}.shape[{dim}] == {size} (it is {shape[dim]} now)"
        return self.text


def has_only_fields(value: Any) -> bool:
    """Return whether a value is a named tuple without other attributes."""
    kind = type(value)
    is_named = isinstance(value, tuple) and hasattr(kind, "_fields") and not hasattr(value, "__dict__")
    return is_named and kind.__getitem__ is tuple.__getitem__


class Structure:
    """The tensors in nested arguments or results, and how the other parts are tested or built again."""

    arguments: tuple[Any, Any]

    def __init__(self, source: Source, numbers: set[str], varies: Callable[[str, Any], bool]) -> None:
        """`varies`: whether another object was at a place in an earlier call."""
        self.source, self.numbers, self.varies = source, numbers, varies
        self.checks: list[Check] = []
        self.tensors: list[tuple[str, Tensor]] = []
        self.edges: dict[int, Any] = {}
        self.containers: dict[int, str] = {}
        self.parts: list[tuple[Any, ...]] = []

    def read(self, place: str, value: Any) -> None:
        """Read the tensors of an argument at `place`, and the conditions on the other parts."""
        constant = self.source.constant
        kind: Any = type(value)
        if place in self.numbers:
            self.check(f"type({place}) is {constant(kind)}", place, kind)
            self.parts.append(("number_of_type", place, kind.__name__))
        elif isinstance(value, Tensor):
            self.tensors.append((place, value))
            self.edges[id(value)] = value._edge
        elif kind in (list, tuple):
            self.check(f"{self.is_of(place, kind)}len({place}) == {len(value)}", place, value)
            self.parts.append(("sequence", place, kind.__name__, len(value)))
            for index, each in enumerate(value):
                self.read(f"{place}[{index}]", each)
        elif kind is dict:
            keys = constant(tuple(value))
            same = (
                f"tuple({place}) == {keys}" if {*map(type, value)} <= {str} else f"same_items(tuple({place}), {keys})"
            )
            self.check(f"{self.is_of(place, kind)}{same if value else f'not {place}'}", place, value)
            self.parts.append(("keys", place, tuple(value)))
            for key, each in value.items():
                self.read(f"{place}[{repr(key) if type(key) in (str, int) else constant(key)}]", each)
        elif has_only_fields(value):
            self.check(f"type({place}) is {constant(kind)}", place, kind)
            self.containers[id(value)] = place
            self.parts.append(("value", place, value))
            for index, each in enumerate(value):
                self.read(f"{place}[{index}]", each)
        elif is_record(value) and kind.__hash__ is None and self.varies(place, value):
            fields = tuple(vars(value))
            self.check(
                f"type({place}) is {constant(kind)} and tuple(vars({place})) == {constant(fields)}", place, value
            )
            self.containers[id(value)] = place
            for name, each in vars(value).items():
                self.read(f"{place}.{name}", each)
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

    def is_of(self, place: str, kind: type) -> str:
        """Return the condition on the class of an object, followed by "and". `args` and `kwargs` need no condition."""
        return "" if place in ("args", "kwargs") else f"type({place}) is {self.source.constant(kind)} and "

    def check(self, condition: str, place: str, value: Any) -> None:
        """Require that the object at `place` is `value`, or similar to it."""
        self.checks.append(Check(condition, f"{place} is {shown(value)}"))


class Group:
    """A group of tensors from outside the function, some of which the function changes."""

    def __init__(self, tensors: list[Tensor]) -> None:
        self.tensors = tensors
        self.identities = {id(each) for each in tensors}

    def is_apart(self, tensor: Tensor, *others: Tensor) -> bool:
        """Return whether a tensor is neither in the group nor in `others`, and shares no memory with these tensors."""
        counter = tensor._counter
        tensors = (*self.tensors, *others)
        return all(tensor is not each and (counter is None or counter is not each._counter) for each in tensors)

    def condition(self, source: Source, places: list[str]) -> str:
        """Return the condition that the tensor at the first place is apart from the group and from the other places.

        The test is fast for a tensor without a counter, because no other tensor has its memory.
        """
        first, *others = places
        parts = [f"{first}._counter is None", f"id({first}) not in {source.constant(self.identities)}"]
        quick = " and ".join([*parts, *(f"{first} is not {other}" for other in others)])
        return f"({quick} or {source.constant(self)}.is_apart({', '.join(places)}))"

    def is_alone(self, tensor: Tensor) -> bool:
        """Whether this tensor of the group shares memory with no other tensor of the group."""
        counter = tensor._counter
        return counter is None or all(tensor is each or counter is not each._counter for each in self.tensors)


def overlap(one: Any, other: Any) -> bool:
    """Return whether two arrays have an element in common, as far as a quick test can tell."""
    try:
        return bool(shares_memory(one, other, max_work=1000))  # type: ignore[arg-type]
    except TooHardError:
        return True


def kind_of_edge(tensor: Tensor) -> str:
    """Return where the gradient of a tensor goes."""
    edge = edge_of(tensor)
    if edge is None or edge is tensor:
        return "nowhere, none is required" if edge is None else "leaf"
    return "nowhere" if edge is NOWHERE else "node"


def edge_condition(place: str, tensor: Tensor) -> str:
    """Return the condition that `requires_grad` and `is_leaf` of a tensor have not changed."""
    if tensor._base is not None:
        return f"kind_of_edge({place}) == {kind_of_edge(tensor)!r}"
    edge = tensor._edge
    if edge is None:  # the edge of a view can depend on its base
        return f"{place}._edge is None and ({place}._base is None or edge_of({place}) is None)"
    if edge is LEAF:
        return f"{place}._edge is LEAF"
    return f"type({place}._edge) is tuple"


def usual_condition(place: str, tensor: Tensor) -> str:
    """Return the condition that a tensor has no rare attributes, and is an inference tensor if and only if `tensor` is."""
    if tensor.is_inference():
        return f"is_usual({place}, True)"
    return f"({place}._extra is None or is_usual({place}))"


def checks_of(source: Source, place: str, tensor: Tensor, fits: Any, what: str) -> list[Check]:
    """Return the conditions that the tensor at a place is like `tensor`. `what`: the name of the tensor in texts.

    One native call can test these conditions if the tensor is not a view, and has no history and no rare attributes.
    """
    ordinary = tensor._base is None and type(tensor._edge) is not tuple and tensor._extra is None
    joint = tensor if ordinary else None
    kind = "Tensor" if type(tensor) is Tensor else source.constant(type(tensor))
    grad = "requires" if tensor.requires_grad else "does not require"
    parts = [
        (f"type({place}) is {kind}", f"{what} is a {type(tensor).__name__}", None),
        (f"{source.constant(fits)}({place}._array)", f"{what} is {fits}", fits),
        (edge_condition(place, tensor), f"{what} {grad} grad, and is a leaf: {tensor.is_leaf}", None),
        (usual_condition(place, tensor), f"{what} has no hooks, and is an inference tensor or not as before", None),
    ]
    return [Check(condition, text, "", place, each, joint) for condition, text, each in parts]


def mode_checks(source: Source, modes: tuple[Any, ...]) -> list[Check]:
    """Return the conditions that the thread has these modes."""
    here, text = STATE.__dict__, f"modes are {modes}"
    checks = [
        Check(f"settings(here := STATE.__dict__) == {source.constant(settings(here))}", text),
        Check("(not FLAGS.special or is_undisturbed())", "no operator is handled otherwise"),
        Check(f"get_default_dtype() is {source.constant(get_default_dtype())}", text),
    ]
    if here["autocast"] is not None:
        checks.append(Check(f"here['precision'].cpu_dtype is {source.constant(here['precision'].cpu_dtype)}", text))
    return checks


def head(source: Source, checks: list[Check]) -> list[str]:
    """Return the lines that test the conditions and load the inputs."""
    tensors = {check.place: check.tensor for check in checks if check.tensor is not None}
    given = [place for place in tensors if not place.isidentifier()]  # the other tensors are always the same objects
    ordered = [*given, *[place for place in tensors if place.isidentifier()]]
    layouts = {check.place: check.fits for check in checks if check.fits is not None}
    dims = [layouts[place].dims for place in ordered]
    fits = fitting([tensors[place] for place in ordered], dims=dims, whole=True) if tensors else None
    kept = keeping([check.way for check in checks if check.way is not None])
    lines, others = [], [check for check in checks if check.condition]
    for native, places, field in ((kept, "", "way"), (fits, ", ".join(given), "tensor")):
        if native is not None:
            joint = " and ".join([check.condition for check in others if getattr(check, field) is not None])
            lines += [f"if not ({source.constant(native)}({places}) or ({joint})):", "    return MISSED"]
            others = [check for check in others if getattr(check, field) is None]
    lines[:0] = [f"if not ({' and '.join([check.condition for check in others])}):", "    return MISSED"]
    lines += [check.load for check in checks if check.load]
    return [
        "def run(args, kwargs):",
        "    try:",
        *(f"        {line}" for line in lines),
        "    except UNREADABLE:",
        "        return MISSED",
    ]


CONDITION_NAMES = {
    "UNREADABLE": UNREADABLE,
    "LEAF": LEAF,
    "Tensor": Tensor,
    "edge_of": edge_of,
    "kind_of_edge": kind_of_edge,
    "is_usual": is_usual,
    "same_items": same_items,
    "getattr_static": inspect.getattr_static,
    "settings": settings,
    "STATE": STATE,
    "FLAGS": FLAGS,
    "is_undisturbed": is_undisturbed,
    "get_default_dtype": get_default_dtype,
}
"""The names that the source of conditions uses."""
