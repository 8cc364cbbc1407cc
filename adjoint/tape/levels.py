"""Levels: what a thread computes besides values, innermost last.

A level is entered for a while and concerns the tensors that carry something of it: a tangent in forward mode, a dimension of
examples in batching. An operator whose arguments concern levels hands itself to the innermost of them; that one computes with
operators again, *below* itself, so levels compose to any depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..tensor import Tensor
from . import modes


class Level:
    """Base class of the levels. While one is entered, every operator takes the general path."""

    def enter(self) -> None:
        """Make this the innermost level of the thread."""
        modes.set_levels((*modes.STATE.levels, self))

    def leave(self) -> None:
        """Leave this level and all that were entered after it."""
        levels = modes.STATE.levels
        modes.set_levels(levels[: levels.index(self)])

    def concerns(self, tensor: Tensor) -> bool:
        """Whether `tensor` carries something of this level."""
        raise NotImplementedError

    def call(self, operator: Any, args: tuple[Any, ...], out: Any) -> Any:
        """Apply `operator`, some of whose arguments concern this level and none a level further in."""
        raise NotImplementedError

    def call_inplace(self, operator: Any, args: tuple[Any, ...]) -> Tensor:
        """The same for its in-place variant."""
        raise NotImplementedError

    def call_inplace_view(self, operator: Any, args: tuple[Any, ...]) -> Tensor:
        """The same where it makes its first argument another view."""
        raise NotImplementedError

    def apply_function(self, function: Any, args: tuple[Any, ...]) -> Any:
        """The same for `function.apply`, of a custom `Function`."""
        raise NotImplementedError


class Transform:
    """A transform of a function while the function runs.

    `number` counts the transforms around it and itself; `in_inference`: it was called in inference mode.
    """

    number: int
    in_inference: bool

    def begin(self) -> None:
        """The function starts."""
        outer = modes.STATE.transforms
        self.number = len(outer) + 1
        self.in_inference = modes.STATE.inference
        modes.STATE.transforms = (*outer, self)

    def end(self) -> None:
        """The function has returned or raised."""
        modes.STATE.transforms = modes.STATE.transforms[: self.number - 1]


class below:
    """With the levels outside of `level` only."""

    __slots__ = ("level", "levels")

    def __init__(self, level: Level) -> None:
        self.level = level

    def __enter__(self) -> None:
        self.levels = levels = modes.STATE.levels
        if self.level in levels:
            modes.set_levels(levels[: levels.index(self.level)])

    def __exit__(self, *exception: object) -> None:
        modes.set_levels(self.levels)


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


def innermost(values: Iterable[Any]) -> Level | None:
    """The innermost level that one of the tensors among `values` concerns; None if there is none."""
    tensors = []  # as `tensors_in` finds them, without the cost of a generator
    for value in values:
        if isinstance(value, Tensor):
            tensors.append(value)
        elif isinstance(value, (list, tuple)):
            tensors += tensors_in((value,))
    for level in reversed(modes.STATE.levels):
        concerns = level.concerns
        for tensor in tensors:
            if concerns(tensor):
                return level
    return None
