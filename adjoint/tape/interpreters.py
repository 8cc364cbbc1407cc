"""Levels: what a thread computes besides values, innermost last.

A level is entered for a while and concerns the tensors that carry something of it: a tangent in forward mode, a dimension of
examples in batching. An operator whose arguments concern levels hands itself to the innermost of them; that one computes with
operators again, *below* itself, so levels compose to any depth.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..extra import CREATIONS
from ..tensor import Tensor
from . import mode_switches, modes


class Interpreter:
    """Base class of the levels. While one is entered, every operator takes the slow path."""

    def enter(self) -> None:
        """Make this the innermost level of the thread."""
        modes.set_interpreters((*modes.STATE.interpreters, self))

    def leave(self) -> None:
        """Leave this level and all that were entered after it."""
        interpreters = modes.STATE.interpreters
        modes.set_interpreters(interpreters[: interpreters.index(self)])

    def wraps(self, tensor: Tensor) -> bool:
        """Whether `tensor` carries something of this level."""
        raise NotImplementedError

    def forget(self, tensor: Tensor) -> None:
        """Take from `tensor` what this level differentiates of it."""

    def process(self, operator: Any, args: tuple[Any, ...], out: Any) -> Any:
        """Apply `operator`, some of whose arguments concern this level and none a level further in."""
        raise NotImplementedError

    def process_inplace(self, operator: Any, args: tuple[Any, ...]) -> Tensor:
        """The same for its in-place variant."""
        raise NotImplementedError

    def process_inplace_view(self, operator: Any, args: tuple[Any, ...]) -> Tensor:
        """The same where it makes its first argument another view."""
        raise NotImplementedError

    def apply_function(self, function: Any, args: tuple[Any, ...]) -> Any:
        """The same for `function.apply`, of a custom `Function`."""
        raise NotImplementedError


class Transform:
    """A transform of a function while the function runs.

    `number` counts the transforms around it and itself; `serial` all that ever began; `begun_in_inference`: it was called in
    inference mode; `begun_recording`: while operators were recorded. `arguments` are the tensors the function was given, which it
    may change in place, unlike others that were there before it, where it `refuses_captured`; `notes_creation`: whether it asks
    what the function has made.
    """

    number: int
    serial: int
    begun_in_inference: bool
    begun_recording: bool = True
    refuses_captured = False
    notes_creation = True
    arguments: Sequence[Tensor] = ()

    def begin(self) -> None:
        """The function starts."""
        outer = modes.STATE.transforms
        self.number = len(outer) + 1
        self.begun_in_inference, self.begun_recording = modes.STATE.inference, modes.is_recording()
        self.serial = next(_serials)
        modes.STATE.transforms = (*outer, self)
        if not isinstance(
            self, Interpreter
        ):  # which raises the flag itself, for the operators whose arguments it wraps
            mode_switches.raise_flag()
        if self.notes_creation:
            CREATIONS.notes = (note_creation,)

    def end(self) -> None:
        """The function has returned or raised."""
        modes.STATE.transforms = modes.STATE.transforms[: self.number - 1]
        if not isinstance(self, Interpreter):
            mode_switches.lower_flag()
        if not modes.FLAGS.special:  # nor does another thread run such a function
            CREATIONS.notes = ()

    def has_made(self, tensor: Tensor) -> bool:
        """Whether the function has made `tensor`, or what it is a view or alias of."""
        counter = tensor._counter
        return type(counter) is CreationCounter and counter.born >= self.serial

    def owns(self, tensor: Tensor) -> bool:
        """Whether the function has made `tensor`, or was given it."""
        if self.has_made(tensor):
            return True
        counter = tensor._counter
        return any(tensor is own or (counter is not None and own._counter is counter) for own in self.arguments)


_serials = itertools.count(1)


class CreationCounter(list[Any]):
    """The version counter of a tensor that was made while a function was being transformed: the `serial` of the transform.

    Views and aliases share it, as they do any counter, and thus the birth of their memory.
    """

    __slots__ = ("born",)

    born: int


def note_creation(tensor: Tensor, source: Tensor | None = None) -> None:
    """Note on a new tensor which transform's function has made it; one that has a counter is an alias of another.

    `source`: the tensor whose memory it is on, though it has a counter of its own.
    """
    transforms = modes.STATE.transforms
    if not transforms or (tensor._counter is not None and source is None):
        return
    born = transforms[-1].serial
    if source is not None:
        tensor._counter = None
        if not transforms[-1].owns(source):
            return
        born = source._counter.born if type(source._counter) is CreationCounter else born
    tensor._counter = counter = CreationCounter((0, None))
    counter.born = born


def note_created(results: Any) -> Any:
    """Note the same on the results of an operator; returns them."""
    transforms = modes.STATE.transforms
    if not transforms or not CREATIONS.notes:
        return results
    if type(results) is Tensor:
        if results._counter is None:
            results._counter = counter = CreationCounter((0, None))
            counter.born = transforms[-1].serial
        return results
    for result in results if isinstance(results, (tuple, list)) else (results,):
        if isinstance(result, Tensor):
            note_creation(result)
    return results


def check_owned(tensor: Tensor, name: Callable[[], str], check: Callable[[], None] = lambda: None) -> None:
    """Raise if a function being transformed changes a tensor in place that is neither its own nor an argument.

    `name` gives PyTorch's name of the operation; `check` is what else may not be, which comes before the outer transforms.
    """
    transforms = modes.STATE.transforms
    for transform in reversed(transforms):
        if getattr(tensor, "level", None) is transform:
            tensor = tensor.value  # type: ignore[attr-defined]
        if transform.refuses_captured and not transform.owns(tensor):
            if transform is not transforms[-1]:
                check()
            raise RuntimeError(
                "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation "
                f"(aten::{name()}) that would mutate a captured Tensor. This is not supported; please rewrite the function being "
                "transformed to explicitly accept the mutated Tensor(s) as inputs."
            )


class lower_outside_transform:
    """Below `level`, which may be that of a transform, as what runs there for it is no part of the transformed function."""

    __slots__ = ("level", "lower", "transforms")

    def __init__(self, level: Interpreter) -> None:
        self.level = level
        self.lower = lower(level)

    def __enter__(self) -> None:
        self.transforms = modes.STATE.transforms
        if self.level in self.transforms:
            modes.STATE.transforms = self.transforms[: self.transforms.index(self.level)]
        self.lower.__enter__()

    def __exit__(self, *exception: object) -> None:
        self.lower.__exit__()
        modes.STATE.transforms = self.transforms


class checked_change:
    """While a change in place runs that has been checked as a whole, so that its parts need not be."""

    __slots__ = ("transforms",)

    def __enter__(self) -> None:
        self.transforms = modes.STATE.transforms
        modes.STATE.transforms = ()

    def __exit__(self, *exception: object) -> None:
        modes.STATE.transforms = self.transforms


class lower:
    """With the levels outside of `level` only."""

    __slots__ = ("interpreters", "level")

    def __init__(self, level: Interpreter) -> None:
        self.level = level

    def __enter__(self) -> None:
        self.interpreters = interpreters = modes.STATE.interpreters
        if self.level in interpreters:
            modes.set_interpreters(interpreters[: interpreters.index(self.level)])

    def __exit__(self, *exception: object) -> None:
        modes.set_interpreters(self.interpreters)


def is_recorded(tensor: Tensor) -> bool:
    """Whether operations on `tensor`, or on the batch it is an example of, are recorded."""
    return tensor.requires_grad or (hasattr(tensor, "level") and is_recorded(tensor.value))  # type: ignore[attr-defined]


def tensors_in(values: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors among arguments, also those in sequences."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            if hasattr(value, "tensors"):  # the indices of an index
                yield from [item for item, _ in value.tensors]
            else:
                yield from [item for item in value if isinstance(item, Tensor)]


def innermost(values: Iterable[Any]) -> Interpreter | None:
    """The innermost level that one of the tensors among `values` concerns; None if there is none."""
    tensors = []  # as `tensors_in` finds them, without the cost of a generator
    for value in values:
        if isinstance(value, Tensor):
            tensors.append(value)
        elif isinstance(value, (list, tuple)):
            tensors += tensors_in((value,))
    for level in reversed(modes.STATE.interpreters):
        wraps = level.wraps
        for tensor in tensors:
            if wraps(tensor):
                return level
    return None
