"""How a program has called a public function, for error messages: the name, and whether it is a method call.

The public functions of an operator (`add`, `Tensor.add`, `Tensor.add_`) share one slow path. An error names the called
function. The positions of a method count from the argument after the tensor, and an argument given by keyword has no
position. The frames of the failed call contain this information, so calls without an error do no extra work.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import FrameType, FunctionType, MappingProxyType
from typing import Any, NamedTuple

from .._runtime.tracebacks import variables_in
from ..tape.origin import nearest_user_frame
from ..tensor import Tensor
from .lazy_stubs import STANDS_IN, names_given, public_function

HAND_ON = {
    "_runtime.tracebacks", "aten.profiled_functions", "aten.torch_dispatch", "dispatch.lazy_stubs", "dispatch.wrappers",
}  # fmt: skip
"""The modules whose functions pass arguments on to the called function."""


class Call(NamedTuple):
    """A call of a public function: its name in errors, the tensor of a method call, and the keyword arguments."""

    name: str
    receiver: Tensor | None = None
    named: Mapping[str, Any] = MappingProxyType({})

    def where(self, name: str, index: int, args: Sequence[Any]) -> str:
        """Return the text for the position of argument `index`, called `name`. Positions start at 1, after the receiver."""
        if name in self.named:
            return ""
        return f" (position {index + 1 - (self.receiver is not None and any(value is self.receiver for value in args[:index]))})"


class _Called(NamedTuple):
    """The public function that the user has called, with frames.

    `frame`: that of its own code. `handed`: that of the code that gets its arguments. `caller`: that which names the keywords.
    """

    function: FunctionType
    frame: FrameType
    handed: FrameType
    caller: FrameType | None

    def as_call(self) -> Call:
        name = self.function.__name__
        receiver = first_argument(self.frame) if vars(Tensor).get(name) is self.function else None
        return Call(name, receiver, named_arguments(self.frame, self.caller))


def call_of(name: str) -> Call:
    """Return the running call of function `name`, its in-place variant or alias, unless another function makes it."""
    called = _called(sys._getframe(1))
    return called.as_call() if called is not None and _is_call_of(called, name) else Call(name)


def words_for(name: str, parameter: str, index: int, args: Sequence[Any]) -> tuple[str, str, str]:
    """Return how an error describes argument `index` of a call of `name`: the function, the parameter, and the position.

    If the user has called another function that passes the argument on, the error describes that call.
    """
    called = _called(sys._getframe(1))
    if called is not None and "OP" not in called.frame.f_globals:
        call, given = called.as_call(), variables_in(called.handed)
        names = called.handed.f_code.co_varnames[: called.handed.f_code.co_argcount]
        for place, own in enumerate(names):
            if given.get(own) is args[index]:
                return call.name, _shown(own), call.where(own, place, [given.get(each) for each in names])
    call = called.as_call() if called is not None and _is_call_of(called, name) else Call(name)
    return call.name, _shown(parameter), call.where(parameter, index, args)


def _shown(parameter: str) -> str:
    return "input" if parameter == "self" else parameter


def _called(innermost: FrameType) -> _Called | None:
    """Return the function that user code has called, among the functions with active frames up to `innermost`."""
    user = nearest_user_frame(innermost)
    frame: FrameType | None = innermost
    frames = []
    while frame is not None and frame is not user:
        frames.append(frame)
        frame = frame.f_back
    frames.reverse()
    found = public_function([frame.f_code for frame in frames])
    if found is None:
        return None
    place, function = found
    direct = all(map(passes_arguments_on, frames[:place]))
    handed = next(frame for frame in frames[place:] if frame.f_code.co_argcount)
    return _Called(function, frames[place], handed, user if direct else frames[place].f_back)


def _is_call_of(called: _Called, name: str) -> bool:
    operator, own = called.frame.f_globals.get("OP"), called.function.__name__
    declared = called.frame.f_code.co_name if operator is None else operator.function_name
    in_namespace = own.removeprefix(f"{called.function.__module__.rpartition('.')[2]}_")  # `linalg_det` is `linalg.det`
    return not own.startswith("__") and name.rstrip("_") in {each.rstrip("_") for each in (own, declared, in_namespace)}


def passes_arguments_on(frame: FrameType) -> bool:
    """Return whether a frame between the program and the function passes the arguments on unchanged: a stub or a wrapper."""
    return (
        frame.f_code.co_filename.startswith(STANDS_IN)
        or frame.f_globals.get("__name__", "").partition(".")[2] in HAND_ON
    )


def named_arguments(frame: FrameType, caller: FrameType | None) -> dict[str, Any]:
    """Return the arguments of the call in `frame` that `caller` has given by keyword."""
    given = variables_in(frame)
    for value in list(given.values()):
        if type(value) is dict:
            given |= value
    return {name: given[name] for name in names_given(caller) if name in given}


def first_argument(frame: FrameType) -> Tensor | None:
    """Return the first positional argument of the call in `frame`, if it is a tensor."""
    code = frame.f_code
    places = code.co_varnames[0 if code.co_argcount else code.co_kwonlyargcount :]
    first = variables_in(frame).get(places[0]) if places else None
    if not code.co_argcount:
        first = first[0] if type(first) is tuple and first else None
    return first if isinstance(first, Tensor) else None
