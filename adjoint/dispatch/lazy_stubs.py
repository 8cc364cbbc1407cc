"""Lazy stubs: the code of functions before their first call.

The code of an operator is generated at its first call. The function object starts with a stub, which generates the
code, installs it (`__code__`) and continues. Public functions, including hand-written functions, start with a stub that
tests whether any function is overridden (`adjoint.tape.torch_function`). If a function is overridden, wrappers are
installed on all public functions. Otherwise the function's own code permanently replaces the stub.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from operator import itemgetter
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar

import numpy

from .._runtime.first_use import import_late, unwatched
from .._runtime.forks import compile_source
from .._runtime.late_bound import LATE
from .._runtime.tracebacks import duplicate, shorten, variables_in
from .._runtime.uninterrupted import uninterrupted
from ..dtypes import dtype
from ..kernels.memory.bounds import in_words_of_pytorch
from ..tape.origin import nearest_user_frame
from ..tape.torch_function import WRAPPERS, overloaded, requires_wrappers

F = TypeVar("F", bound=Callable[..., Any])

_public: list[FunctionType] = []
"""The public functions. Their calls can be overridden."""


def _stub(*args: Any, **keywords: Any) -> Any:
    return BUILD()(*args, **keywords)  # type: ignore[name-defined]  # noqa: F821  (in the function's own namespace)


def building(name: str, namespace: dict[str, Any], build: Callable[[FunctionType], None]) -> FunctionType:
    """Return a function in `namespace` whose code `build` generates at the first call."""
    function = FunctionType(_stub.__code__, namespace, name)
    namespace["BUILD"] = partial(_built, function, build)
    return function


@unwatched
def _built(function: FunctionType, build: Callable[[FunctionType], None]) -> FunctionType:
    import_late(function.__module__)  # another thread may still be importing it
    build(function)
    return function


class LazyStub:
    """The behaviour of a public function before its own code is installed.

    `function`: the function, or the function behind its wrapper. `original`: the function that holds its code.
    `retried`: whether a retry wrapper is installed around the code. `of_method`: whether the function is a method,
    which takes no `out`.
    """

    __slots__ = ("function", "of_method", "original", "retried")

    def __init__(self, function: FunctionType, original: FunctionType, retried: bool, of_method: bool) -> None:
        self.function = function
        self.original = original
        self.retried = retried
        self.of_method = of_method

    def __call__(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Install wrappers if any function is overridden, otherwise install the function's own code. Then repeat the call."""
        function = self.function
        if not WRAPPERS.open and requires_wrappers(args, keywords):
            LATE.wrap_public_functions()  # this function gets a wrapper too, if it can be overridden
        if self.function is function:
            self.end()
        return function(*args, **keywords)

    @unwatched
    def end(self) -> None:
        """Install a copy of the function's own code, so that its frames can be distinguished from frames of other functions."""
        import_late(self.original.__module__)  # another thread may still be importing it
        function, original = self.function, generated(self.original)
        code, keywords = original.__code__.replace(), original.__kwdefaults__
        if self.retried:
            code, keywords = retry_code(original), {**(keywords or {}), "retried": self}
        if self.of_method:
            code, keywords = without_out(code, keywords)
        put_code(function, code, original.__defaults__, keywords)

    def again(self, error: Exception) -> Any:
        """Repeat the call that has failed in the retry wrapper."""
        return repeated(error, self.function.__name__, sys._getframe(1))

    shorten = staticmethod(shorten)

    @staticmethod
    def require(value: Any, kind: str, name: str, position: int | None) -> None:
        """Raise an error unless `value` is of the type that the annotation `kind` of its parameter declares."""
        accepted = dtype if kind == "Dtype" else (bool, numpy.bool_)
        if not isinstance(value, accepted) and not (value is None and "None" in CHECKED[kind]):
            raise WrongType(name, position, value, kind)


CHECKED = {"bool": ("False", "True"), "bool | None": ("None", "False", "True"), "Dtype": ("None",)}
"""The annotations that are checked before the call, and constants that they accept."""


class WrongType(TypeError):
    """The error about an argument: its name, its position (None for keyword-only ones), its value and its annotation."""


def checked_parameters(function: Callable[..., Any]) -> Iterator[tuple[str, int | None, str]]:
    """Yield the parameters of `function` with an annotation in `CHECKED`: name, position and annotation."""
    code = function.__code__
    for position, name in enumerate(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]):
        kind = function.__annotations__.get(name)
        if kind in CHECKED:
            yield name, position if position < code.co_argcount else None, kind


def stub_of(function: Any) -> LazyStub | None:
    """Return the stub in place of the function's own code, or None."""
    defaults = function.__kwdefaults__
    if not defaults:
        return None
    found = defaults.get("retried") or defaults.get("enter")
    return found if type(found) is LazyStub else None


def generated(function: Any) -> Any:
    """Return `function` with its own code, even before its first call."""
    if function.__code__ is _stub.__code__:
        function.__globals__["BUILD"]()
    elif (stub := stub_of(function)) is not None:
        stub.retried = False
        stub.end()
    return function


def named(function: Any, name: str, retried: bool = False, of_method: bool = False) -> Any:
    """Return a separate function object for `function` under another name, so that an override learns the called name.

    Generated code needs no retry wrapper, because the slow path checks for overrides.
    """
    if type(function) is not FunctionType:
        return function
    stub = stub_of(function)
    original = function if stub is None else stub.original
    other = FunctionType(standing_in(cells(function)), function.__globals__, name, None, function.__closure__)
    put_stub(other, original, retried and "BUILD" not in function.__globals__, of_method)
    other.__doc__, other.__module__, other.__qualname__ = function.__doc__, function.__module__, name
    return other


def lazily_wrapped(function: F) -> F:
    """Install a lazy stub on `function`, and return it."""
    stubbed: Any = function
    original = moved(stubbed)
    put_stub(stubbed, original, retried=True)
    return function


def put_stub(function: FunctionType, original: FunctionType, retried: bool, of_method: bool = False) -> None:
    """Install the stub of `original` on `function`."""
    function.__dict__.update(original.__dict__)
    redirect_calls(function, original, LazyStub(function, original, retried, of_method))
    _public.append(function)


def redirect_calls(function: FunctionType, behind: FunctionType, enter: Callable[..., Any]) -> None:
    """Redirect calls of `function`, whose former code is in `behind`, to `enter(args, keywords)`."""
    put_code(function, standing_in(cells(function)), None, {"enter": enter})
    function.__dict__["__wrapped__"] = behind  # tools show its signature


@uninterrupted
def put_code(function: FunctionType, code: CodeType, defaults: Any, keywords: dict[str, Any] | None) -> None:
    """Replace the code and the defaults of `function`. Other threads may call it at any moment."""
    function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), **(keywords or {})}
    function.__defaults__ = defaults or function.__defaults__
    function.__code__ = code
    function.__defaults__, function.__kwdefaults__ = defaults, keywords


def moved(function: FunctionType) -> FunctionType:
    """Return a new function with the code of `function`, whose code is about to be replaced."""
    stub = stub_of(function)
    other = duplicate(function)
    if stub is not None:
        stub.function = other
    return other


# --- calls that turn out to be overridden ---------------------------------------------------------------------------
#
# A class that overrides calls may be defined after the first call of a function, when the function's own code is
# installed. That code then fails, because the argument is not a tensor. The frame of the failed call still shows the
# function and the arguments, so the call is repeated through a wrapper.


def repeated(error: Exception, name: str, frame: FrameType) -> Any:
    """Repeat the call of function `name` that failed in `frame` if an argument overrides it, or raise the user's error."""
    again = overridden(frame)
    if again is None:
        raise LATE.argument_error(error, name, frame) or in_words_of_pytorch(error) or error
    return again()


def overridden(frame: FrameType) -> Callable[[], Any] | None:
    """Return the failed call in `frame`, to be repeated through a wrapper, if an argument overrides it.

    Return None within a public function that checks for overrides itself, and for functions that are not public.
    """
    values = list(variables_in(frame).values())
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


def public_function(codes: list[CodeType]) -> tuple[int, FunctionType] | None:
    """Return the index of the first item of `codes` that is a public function's own code, and return the function."""
    places = {  # by identity, because code objects of different functions may be equal
        id(code): place
        for place, code in enumerate(codes)
        if not (code.co_filename.startswith(STANDS_IN) and code.co_name == "wrapper")  # code that functions share
    }
    likely = (
        function
        for function in _public
        if id(function.__code__) in places or id(function.__dict__.get("__wrapped__", function).__code__) in places
    )
    found = [(places[id(code)], function) for function in likely if id(code := own(function).__code__) in places]
    return min(found, key=itemgetter(0), default=None)


def own(function: FunctionType) -> FunctionType:
    """Return the function with its own code: `function`, or the function behind its wrapper."""
    has_wrapper = function.__code__.co_filename.startswith(STANDS_IN) and stub_of(function) is None
    return function.__dict__["__wrapped__"] if has_wrapper else function


def is_within_another(frame: FrameType) -> bool:
    """Return whether the call in `frame` comes from a wrapper or a retry wrapper."""
    user, outer = nearest_user_frame(frame), frame.f_back
    while outer is not None and outer is not user:
        if outer.f_code.co_filename.startswith(STANDS_IN):
            return True
        outer = outer.f_back
    return False


def arguments(function: FunctionType, frame: FrameType) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and keyword arguments of the call of `function` in `frame`, without omitted defaults."""
    named, given = names_given(frame.f_back), variables_in(frame)
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    by_position = True
    for name, parameter in signature_of_own(function).items():
        value, kind = given[name], parameter.kind
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
    """Return the keyword names in the current call of `caller`, or none if its instruction does not contain them."""
    if caller is None:
        return ()
    code = caller.f_code
    before = [step for step in dis.get_instructions(code) if step.offset <= caller.f_lasti][-3:]
    if before[-1].opname == "CALL_KW":  # since Python 3.13
        return before[-2].argval
    return next((code.co_consts[step.arg or 0] for step in before if step.opname == "KW_NAMES"), ())


def signature_of_own(function: FunctionType) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of the current code of `function`, which may be a stub."""
    return inspect.signature(function, follow_wrapped=False).parameters


# --- code of stubs ----------------------------------------------------------------------------------------------

STANDS_IN = "<adjoint stand-in:"

PACKAGE = __name__.partition(".")[0]

NO_OUT = "_out"
"""The name of the parameter `out` in the code of methods."""

WRAPPER = """
    def {name}(*args, enter, **kwargs):
        try:
            return enter(args, kwargs)
        except Exception as error:
            from {package}._runtime.tracebacks import shorten

            shorten(error)
            raise
"""

CONSTANTS = (None, True, False)
"""Defaults that a retry wrapper tests for. Omitting such arguments is faster than passing them as keywords."""

RETRY = """
    def {name}{parameters}:
        try:
            {checks}
            if {plain}:
                return retried.original({positional})
            return retried.original({arguments})
        except Exception as error:
            try:
                return retried.again(error)
            except Exception as final:
                retried.shorten(final)
                raise
"""


@cache
def standing_in(cells: int) -> CodeType:
    """Return code that passes all arguments to its parameter `enter`."""
    return code_of("wrapper", WRAPPER.format(name="wrapper", package=PACKAGE), cells)


def retry_code(function: FunctionType) -> CodeType:
    """Return code that checks annotated arguments, calls `function`, and looks for overriding arguments if this fails."""
    parameters = [one.replace(annotation=one.empty) for one in signature_of_own(function).values()]
    keyword_only = [one for one in parameters if one.kind is one.KEYWORD_ONLY]
    others = [one for one in parameters if one.kind is one.VAR_KEYWORD]
    positional = [one for one in parameters if one not in keyword_only and one not in others]
    constant = [one for one in keyword_only if any(one.default is each for each in CONSTANTS)]
    plain = [*(f"{one.name} is {one.default}" for one in constant), *(f"not {one.name}" for one in others)]
    given = [*positional, *keyword_only, inspect.Parameter("retried", inspect.Parameter.KEYWORD_ONLY), *others]
    bare = [str(one.replace(default=one.empty)) for one in positional]
    name = function.__code__.co_name.strip("<>")
    checks = [
        " or ".join(
            [*(f"{one} is {each}" for each in CHECKED[kind]), f"retried.require({one}, '{kind}', '{one}', {position})"]
        )
        for one, position, kind in checked_parameters(function)
    ]
    definition = RETRY.format(
        name=name,
        checks="; ".join(checks) or "pass",
        parameters=inspect.Signature([one.replace(default=one.empty) for one in given]),
        plain="False" if len(constant) < len(keyword_only) else " and ".join(plain) or "True",
        positional=", ".join(bare),
        arguments=", ".join([*bare, *(f"{one.name}={one.name}" for one in keyword_only), *map(str, others)]),
    )
    return code_of(name, definition, cells(function))


def without_out(code: CodeType, keywords: dict[str, Any] | None) -> tuple[CodeType, dict[str, Any] | None]:
    """Return the same code and defaults with another name of `out`, because methods refuse it."""
    if not keywords or "out" not in keywords:
        return code, keywords
    names = tuple(NO_OUT if name == "out" else name for name in code.co_varnames)
    return code.replace(co_varnames=names), {NO_OUT if name == "out" else name: each for name, each in keywords.items()}


def refusing_out(function: Any) -> Any:
    """Return a copy of `function` that takes no `out`."""
    other = duplicate(function)
    other.__code__, other.__kwdefaults__ = without_out(function.__code__, function.__kwdefaults__)
    return other


def cells(function: FunctionType) -> int:
    """Return the number of free variables of the function's code. Replacement code must have the same number."""
    return len(function.__closure__ or ())


def code_of(name: str, definition: str, cells: int) -> CodeType:
    """Return the code of the function in the source `definition`, with the given number of free variables."""
    variables = [f"cell_{number}" for number in range(cells)]
    first, *rest = definition.strip("\n").splitlines()
    lines = [f"def enclosing({', '.join(variables)}):", first, *(f"        {one}" for one in variables), *rest]
    source = "\n".join([*lines, f"    return {name}"]) + "\n"
    return compile_source(source, f"{STANDS_IN} {name} {cells}>", {}).pop("enclosing")(*variables).__code__
