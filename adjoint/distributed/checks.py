"""`TORCH_DISTRIBUTED_DEBUG=DETAIL`: ranks compare each collective before it starts, so mismatches are errors and not hangs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy

from .errors import DistBackendError
from .node_memory import call_text
from .work import Work

if TYPE_CHECKING:
    from ..tensor import Tensor
    from .process_group import ProcessGroup

About = tuple["Sequence[Tensor]", Any, "int | None"]
"""The description of a call: its tensors, its operation, and its root."""

WIDTH = 1024
"""The number of bytes of a description."""


class DebugLevel(Enum):
    """The level of checks: OFF, INFO or DETAIL."""

    OFF = 0
    INFO = 1
    DETAIL = 2

    def __repr__(self) -> str:
        return f"<DebugLevel.{self.name}: {self.value}>"


class _Level:
    """The current level, and whether it is DETAIL."""

    level = DebugLevel.OFF
    on = False


DETAIL = _Level


def set_debug_level(level: DebugLevel) -> None:
    """Set the level of checks."""
    DETAIL.level, DETAIL.on = level, level is DebugLevel.DETAIL


def get_debug_level() -> DebugLevel:
    """Return the level of checks."""
    return DETAIL.level


def set_debug_level_from_env() -> None:
    """Set the level of checks from the variable TORCH_DISTRIBUTED_DEBUG.

    Raises:
        ValueError: if the variable has an unknown value.
    """
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise ValueError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.")
    set_debug_level(DebugLevel[name])


set_debug_level_from_env()


def describe(name: str, about: About | None) -> str:
    """Return a call as text: its name, and the shapes, dtypes, operation and root on which ranks must agree."""
    tensors, op, root = about or ((), None, None)
    said = [f"OpType={name.upper()}"]
    if tensors:
        said.append("TensorShape=[" + "; ".join(", ".join(map(str, each.shape)) for each in tensors) + "]")
        said.append(f"TensorDtypes={', '.join(each.dtype.scalar_type for each in tensors)}")
    if op is not None:
        said.append(f"ReduceOp={op.name}")
    if root is not None:
        said.append(f"Root={root}")
    return ", ".join(said)


def compare(group: ProcessGroup, name: str, about: About | None) -> None:
    """Compare this call with the calls of the other ranks.

    Raises:
        DistBackendError: if another rank is in another call. The error names the call on every rank.
    """
    own = f"SequenceNumber={group.calls}, {describe(name, about)}"
    sent = numpy.frombuffer(own.encode()[:WIDTH].ljust(WIDTH), numpy.uint8)
    everyone = numpy.empty((group.size(), WIDTH), numpy.uint8)

    def steps() -> Iterator[Any]:
        yield group.comm.Iallgather(sent, everyone)

    Work(group, f"{name} (comparing calls before it)", steps(), text=call_text("comparing calls")).wait()
    group.calls -= 1  # the comparison is not a call of the program
    calls = [bytes(row).decode(errors="replace").rstrip() for row in everyone]
    other = next((rank for rank, call in enumerate(calls) if call != calls[0]), None)
    if other is not None:
        if group.rank() != 0 and calls[group.rank()] != calls[0]:
            other = group.rank()
        raise DistBackendError(
            f"Detected mismatch between collectives on ranks. Rank {group.ranks[other]} is running collective: "
            f"CollectiveFingerPrint({calls[other]}), but Rank {group.ranks[0]} is running collective: "
            f"CollectiveFingerPrint({calls[0]})."
        )
