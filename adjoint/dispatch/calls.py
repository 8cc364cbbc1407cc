"""How a program has called a public function, for errors: by which name, and whether as a method.

The public functions of an operator (`add`, `Tensor.add`, `Tensor.add_`) share one slow path. An error names the function
that the program has called; a method's positions count from the argument after the tensor. The frames of the call tell
both, so calls without an error do nothing for it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any, NamedTuple

from ..tape.origin import nearest_user_frame
from ..tensor import Tensor
from ..tracebacks import variables_in
from .lazy_stubs import public_function


class Call(NamedTuple):
    """A call of a public function: its name in errors, and the tensor whose method it is, if it is a method."""

    name: str
    receiver: Tensor | None = None

    def position(self, index: int, args: Sequence[Any]) -> int:
        """The position of argument `index` of an operator in this call; positions start at 1, after the receiver."""
        return index + 1 - (self.receiver is not None and any(value is self.receiver for value in args[:index]))


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
    operator = outermost.f_globals.get("OP")
    declared = outermost.f_code.co_name if operator is None else operator.function_name
    if called.startswith("__") or name.rstrip("_") not in (called.rstrip("_"), declared.rstrip("_")):
        return Call(name)
    return Call(called, first_argument(outermost) if vars(Tensor).get(called) is function else None)


def first_argument(frame: FrameType) -> Tensor | None:
    """The first positional argument of the call in `frame`, if it is a tensor."""
    code = frame.f_code
    places = code.co_varnames[0 if code.co_argcount else code.co_kwonlyargcount :]
    first = variables_in(frame).get(places[0]) if places else None
    if not code.co_argcount:
        first = first[0] if type(first) is tuple and first else None
    return first if isinstance(first, Tensor) else None
