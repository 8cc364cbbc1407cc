"""How a program has called a public function, for errors: by which name, and whether as a method.

The public functions of an operator (`add`, `Tensor.add`, `Tensor.add_`) share one slow path. An error names the function
that the program has called; a method's positions count from the argument after the tensor, and an argument given by keyword
has none. The frames of the call tell this, so calls without an error do nothing for it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import FrameType, MappingProxyType
from typing import Any, NamedTuple

from ..tape.origin import nearest_user_frame
from ..tensor import Tensor
from ..tracebacks import variables_in
from .lazy_stubs import STANDS_IN, names_given, public_function

HAND_ON = {f"{__package__}.lazy_stubs", f"{__package__}.wrappers"}
"""The modules whose functions hand arguments on to the function that was called."""


class Call(NamedTuple):
    """A call of a public function: its name in errors, the tensor whose method it is, if any, and what is given by keyword."""

    name: str
    receiver: Tensor | None = None
    named: Mapping[str, Any] = MappingProxyType({})

    def where(self, name: str, index: int, args: Sequence[Any]) -> str:
        """The words for the position of argument `index`, called `name`: positions start at 1, after the receiver."""
        if name in self.named:
            return ""
        return f" (position {index + 1 - (self.receiver is not None and any(value is self.receiver for value in args[:index]))})"


def call_of(name: str) -> Call:
    """The call in progress of function `name`, or of its in-place variant or alias, by the user's code.

    If the user's code has called another function, which uses `name`, that is a call of the function `name`.
    """
    frame: FrameType | None = sys._getframe(1)
    user = nearest_user_frame(sys._getframe(1))
    frames = []
    while frame is not None and frame is not user:
        frames.append(frame)
        frame = frame.f_back
    frames.reverse()
    found = public_function([frame.f_code for frame in frames])
    if found is None:
        return Call(name)
    outermost, function = frames[found[0]], found[1]
    called = function.__name__
    direct = all(map(hands_on, frames[: found[0]]))
    operator = outermost.f_globals.get("OP")
    declared = outermost.f_code.co_name if operator is None else operator.function_name
    if called.startswith("__") or name.rstrip("_") not in (called.rstrip("_"), declared.rstrip("_")):
        return Call(name)
    receiver = first_argument(outermost) if vars(Tensor).get(called) is function else None
    return Call(called, receiver, named_arguments(outermost, user if direct else outermost.f_back))


def hands_on(frame: FrameType) -> bool:
    """Whether a frame between the program and the function hands the arguments on as they are: a stub, or a wrapper."""
    return frame.f_code.co_filename.startswith(STANDS_IN) or frame.f_globals.get("__name__") in HAND_ON


def named_arguments(frame: FrameType, caller: FrameType | None) -> dict[str, Any]:
    """The arguments of the call in `frame` that `caller` has given by keyword."""
    given = variables_in(frame)
    for value in list(given.values()):
        if type(value) is dict:
            given |= value
    return {name: given[name] for name in names_given(caller) if name in given}


def first_argument(frame: FrameType) -> Tensor | None:
    """The first positional argument of the call in `frame`, if it is a tensor."""
    code = frame.f_code
    places = code.co_varnames[0 if code.co_argcount else code.co_kwonlyargcount :]
    first = variables_in(frame).get(places[0]) if places else None
    if not code.co_argcount:
        first = first[0] if type(first) is tuple and first else None
    return first if isinstance(first, Tensor) else None
