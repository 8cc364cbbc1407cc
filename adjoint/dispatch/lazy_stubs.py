"""How functions begin: with code that stands in for their own until they are first called.

An operator's own code is generated then: the function object starts with a stub, which builds the code, puts it in its own
place (`__code__`) and goes on. Public functions, also those written by hand, begin by looking whether anything overrides them
(`adjoint.tape.torch_function`): if so, wrappers are put in front of all of them, else their own code takes its place for good.
"""

from __future__ import annotations

import dis
import functools
import inspect
import linecache
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar

from ..late_bound import LATE
from ..tape.origin import nearest_user_frame
from ..tape.torch_function import WRAPPERS, about_to_be_overridden, overloaded

F = TypeVar("F", bound=Callable[..., Any])

_public: list[FunctionType] = []
"""The public functions: those whose calls can be overridden."""


def _stub(*args: Any, **keywords: Any) -> Any:
    return BUILD()(*args, **keywords)  # type: ignore[name-defined]  # noqa: F821  (in the function's own namespace)


def building(name: str, namespace: dict[str, Any], build: Callable[[FunctionType], None]) -> FunctionType:
    """A function of this `namespace` whose code `build`, called with it when it is first called, puts into its place."""
    function = FunctionType(_stub.__code__, namespace, name)

    def built() -> FunctionType:
        import_module(function.__module__)  # another thread may still be running the rest of it
        build(function)
        return function

    namespace["BUILD"] = built
    return function


class LazyStub:
    """What a public function does before its own code has taken its place.

    `function`: the function, or what a wrapper has behind it; `original`: the function that has its code; `retried`: whether its
    code is put behind a retry wrapper, not into its place.
    """

    __slots__ = ("function", "original", "retried")

    def __init__(self, function: FunctionType, original: FunctionType, retried: bool = False) -> None:
        self.function = function
        self.original = original
        self.retried = retried

    def __call__(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Install wrappers, if anything overrides functions, else put the function's own code into its place; call it again."""
        function = self.function
        if not WRAPPERS.open and about_to_be_overridden(args, keywords):
            LATE.wrap_public_functions()  # one in front of this function, too, if it is one of those that can be overridden
        if self.function is function:
            self.end()
        return function(*args, **keywords)

    def end(self) -> None:
        """Put the function's own code into its place: a copy, by which its frames can be told from those of others."""
        import_module(self.original.__module__)  # another thread may still be running the rest of it
        function, original = self.function, generated(self.original)
        code, keywords = original.__code__.replace(), original.__kwdefaults__
        if self.retried and not WRAPPERS.open:
            code, keywords = retry_code(original), {**(keywords or {}), "retried": self}
        put_code(function, code, original.__defaults__, keywords)

    def again(self) -> Any:
        """The call that has failed in the retry wrapper, again, as `overridden` says."""
        return overridden(sys._getframe(1))


def stub_of(function: Any) -> LazyStub | None:
    """What is in the place of the function's own code; None if that is."""
    defaults = function.__kwdefaults__
    if not defaults:
        return None
    found = defaults.get("retried") or defaults.get("enter")
    return found if type(found) is LazyStub else None


def generated(function: Any) -> Any:
    """`function` with its own code, also if it has not been called yet."""
    if function.__code__ is _stub.__code__:
        function.__globals__["BUILD"]()
    elif (stub := stub_of(function)) is not None:
        stub.retried = False
        stub.end()
    return function


def named(function: Any, name: str, retried: bool = False) -> Any:
    """`function` as an object of its own under another name.

    So everything public is: what overrides a function is told which one was called, and internal calls are not overridden.
    Generated code needs no retry wrapper, as the slow path asks.
    """
    if type(function) is not FunctionType:
        return function
    stub = stub_of(function)
    original = function if stub is None else stub.original
    other = FunctionType(standing_in(cells(function)), function.__globals__, name, None, function.__closure__)
    put_stub(other, original, retried and "BUILD" not in function.__globals__)
    other.__doc__, other.__module__, other.__qualname__ = function.__doc__, function.__module__, name
    return other


def lazily_wrapped(function: F) -> F:
    """`function` itself, with a lazy stub as public functions have."""
    stubbed: Any = function
    original = moved(stubbed)
    put_stub(stubbed, original, retried=True)
    return function


def put_stub(function: FunctionType, original: FunctionType, retried: bool) -> None:
    """Let `function`, which stands in for `original`, begin."""
    function.__dict__.update(original.__dict__)
    put_in_front(function, original, LazyStub(function, original, retried))
    _public.append(function)


def put_in_front(function: FunctionType, behind: FunctionType, enter: Callable[..., Any]) -> None:
    """Let calls of `function` go to `enter`, with their arguments as a tuple and a dictionary; `behind` is what it was."""
    put_code(function, standing_in(cells(function)), None, {"enter": enter})
    function.__dict__["__wrapped__"] = behind  # whose signature tools show


def put_code(function: FunctionType, code: CodeType, defaults: Any, keywords: dict[str, Any] | None) -> None:
    """Give `function` other code with its defaults: at no time is there a moment when another thread cannot call it."""
    function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), **(keywords or {})}
    function.__defaults__ = defaults or function.__defaults__
    function.__code__ = code
    function.__defaults__, function.__kwdefaults__ = defaults, keywords


def moved(function: FunctionType) -> FunctionType:
    """Another function with the code of this one, which is about to be given other code."""
    stub = stub_of(function)
    if stub is not None and "retried" in (function.__kwdefaults__ or ()):
        return stub.original
    other = duplicate(function)
    if stub is not None:
        stub.function = other
    return other


def duplicate(function: FunctionType) -> FunctionType:
    """Another function that is the same in all but identity."""
    other = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    other.__kwdefaults__, other.__qualname__ = function.__kwdefaults__, function.__qualname__
    other.__annotations__ = function.__annotations__
    other.__dict__.update(function.__dict__)
    return other


# --- calls that turn out to be overridden ---------------------------------------------------------------------------
#
# A class that takes over calls may be defined after the first call of a function, when the function's own code is in place.
# Then that code fails, as the argument is no tensor. What the user has called, and how, is still to be read in the frame of the
# call: so the call is made once more, through a wrapper.


def overridden(frame: FrameType) -> Callable[[], Any] | None:
    """The call in `frame`, which is about to fail, again through a wrapper; None unless one of its arguments takes over calls.

    None also for a call within a public function that asks for itself, and for calls of functions that are not public.
    """
    values = list(frame.f_locals.values())
    for several in [value for value in values if type(value) is tuple or type(value) is dict]:
        values += several.values() if type(several) is dict else several
    if not overloaded(values, {}):
        return None
    function = next((function for function in _public if own(function).__code__ is frame.f_code), None)
    if function is None or is_within_another(frame):
        return None
    args, keywords = arguments(own(function), frame)
    LATE.wrap_public_functions()
    return functools.partial(function, *args, **keywords)


def own(function: FunctionType) -> FunctionType:
    """The function with its own code: what is behind the wrapper, if one has been put in front of `function` in the meantime."""
    has_wrapper = function.__code__.co_filename.startswith(STANDS_IN) and stub_of(function) is None
    return function.__dict__["__wrapped__"] if has_wrapper else function


def is_within_another(frame: FrameType) -> bool:
    """Whether the call in `frame` comes from a wrapper or a retry wrapper."""
    user, outer = nearest_user_frame(frame), frame.f_back
    while outer is not None and outer is not user:
        if outer.f_code.co_filename.startswith(STANDS_IN):
            return True
        outer = outer.f_back
    return False


def arguments(function: FunctionType, frame: FrameType) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of the call of `function` in `frame`: those by position, and those by keyword.

    Those whose values are the defaults count as left out, unless the calling instruction names them.
    """
    named = names_given(frame.f_back)
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    by_position = True
    for name, parameter in signature_of_own(function).items():
        value, kind = frame.f_locals[name], parameter.kind
        by_position = by_position and kind is not parameter.KEYWORD_ONLY and name not in named
        if kind is parameter.VAR_POSITIONAL:
            positional += value
        elif kind is parameter.VAR_KEYWORD:
            keywords.update(value)
        elif value is parameter.default and name not in named:
            by_position = False
        elif by_position:
            positional.append(value)
        else:
            keywords[name] = value
    return positional, keywords


def names_given(caller: FrameType | None) -> tuple[str, ...]:
    """The names of arguments in the call that `caller` is making; none if its instruction does not tell."""
    if caller is None:
        return ()
    code = caller.f_code
    before = [step for step in dis.get_instructions(code) if step.offset <= caller.f_lasti][-3:]
    if before[-1].opname == "CALL_KW":  # since Python 3.13
        return before[-2].argval
    return next((code.co_consts[step.arg or 0] for step in before if step.opname == "KW_NAMES"), ())


def signature_of_own(function: FunctionType) -> Mapping[str, inspect.Parameter]:
    """The parameters of the code that `function` has, whatever it stands for."""
    return inspect.signature(function, follow_wrapped=False).parameters


# --- code that stands in ----------------------------------------------------------------------------------------

STANDS_IN = "<adjoint stand-in:"

WRAPPER = """
    def {name}(*args, enter, **kwargs):
        return enter(args, kwargs)
"""

CONSTANTS = (None, True, False)
"""Defaults that a retry wrapper compares with: leaving arguments out is quicker than to pass them on by keyword."""

RETRY = """
    def {name}{parameters}:
        try:
            if {plain}:
                return retried.original({positional})
            return retried.original({arguments})
        except Exception:
            again = retried.again()
            if again is None:
                raise
        return again()
"""


@cache
def standing_in(cells: int) -> CodeType:
    """Code that leaves all to its parameter `enter`."""
    return code_of("wrapper", WRAPPER.format(name="wrapper"), cells)


def retry_code(function: FunctionType) -> CodeType:
    """Code of the same parameters that calls `function`, and where that fails sees whether an argument takes over calls."""
    parameters = [one.replace(annotation=one.empty) for one in signature_of_own(function).values()]
    keyword_only = [one for one in parameters if one.kind is one.KEYWORD_ONLY]
    others = [one for one in parameters if one.kind is one.VAR_KEYWORD]
    positional = [one for one in parameters if one not in keyword_only and one not in others]
    constant = [one for one in keyword_only if any(one.default is each for each in CONSTANTS)]
    plain = [*(f"{one.name} is {one.default}" for one in constant), *(f"not {one.name}" for one in others)]
    given = [*positional, *keyword_only, inspect.Parameter("retried", inspect.Parameter.KEYWORD_ONLY), *others]
    bare = [str(one.replace(default=one.empty)) for one in positional]
    name = function.__code__.co_name.strip("<>")
    definition = RETRY.format(
        name=name,
        parameters=inspect.Signature([one.replace(default=one.empty) for one in given]),
        plain="False" if len(constant) < len(keyword_only) else " and ".join(plain) or "True",
        positional=", ".join(bare),
        arguments=", ".join([*bare, *(f"{one.name}={one.name}" for one in keyword_only), *map(str, others)]),
    )
    return code_of(name, definition, cells(function))


def cells(function: FunctionType) -> int:
    """How many variables of enclosing functions the function's code has; other code for it must have as many."""
    return len(function.__closure__ or ())


def code_of(name: str, definition: str, cells: int) -> CodeType:
    """The code of the function that `definition` defines, with so many variables of enclosing functions."""
    variables = [f"cell_{number}" for number in range(cells)]
    first, *rest = definition.strip("\n").splitlines()
    lines = [f"def enclosing({', '.join(variables)}):", first, *(f"        {one}" for one in variables), *rest]
    source, filename = "\n".join([*lines, f"    return {name}"]) + "\n", f"{STANDS_IN} {name} {cells}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    made: dict[str, Any] = {}
    exec(compile(source, filename, "exec"), made)
    return made["enclosing"](*variables).__code__
