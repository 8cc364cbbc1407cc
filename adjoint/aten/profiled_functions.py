"""Functions composed of operators in profiles.

Their events enclose the events of the operators.

While a thread is profiled, each of these functions has a wrapper. Afterwards the wrappers are removed, so that they
cost nothing. The wrappers that a mode needed stay until the first call without a mode, so that entering a mode again is
cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from itertools import count
from types import FunctionType
from typing import Any

from .._runtime.first_use import import_late
from .._runtime.forks import lock_across_forks
from .._runtime.tracebacks import duplicate
from .._runtime.uninterrupted import uninterrupted
from ..dispatch.decorators import PUBLIC
from ..dispatch.lazy_stubs import cells, put_code, standing_in, stub_of
from ..dispatch.registry import load_all
from ..tape.modes import STATE
from ..tensor import Tensor
from .forms import LEAVES

_METHODS = {
    "__matmul__": "matmul", "__rmatmul__": "matmul", "__pow__": "pow", "__rpow__": "pow", "__ipow__": "pow_",
    "__floordiv__": "floor_divide", "__rfloordiv__": "floor_divide", "__ifloordiv__": "floor_divide_", "__mod__": "remainder",
    "__rmod__": "remainder", "__imod__": "remainder_", "__rsub__": "rsub", "__bool__": "is_nonzero", "__float__": "item",
    "__int__": "item", "__complex__": "item", "__index__": "item", "item": "item", "cpu": "to", "type": "to",
    **dict.fromkeys("bfloat16 bool byte cdouble cfloat char double float half int long short".split(), "to"),
}  # fmt: skip
"""Methods with another name, and methods that do not belong to operators."""

_SILENT = frozenset(
    """
    apply_ as_subclass as_tensor asarray broadcast_shapes cuda dense_dim element_size from_dlpack from_numpy frombuffer
    get_default_device get_device is_complex is_conj is_contiguous is_distributed is_floating_point is_inference is_neg
    is_set_to is_signed is_storage is_tensor map_ new new_tensor norm numel requires_grad_ retain_grad set_default_device
    set_default_tensor_type sparse_dim tensor typename unique unravel_index xpu
    """.split()
)
"""Functions without events: they run no operator, create tensors, or are written in Python in PyTorch."""


class _Watch:
    """The wrapper of one function. It reports the call to the recorder of this thread."""

    on_leaves = False
    """Whether all leaves have their wrappers."""

    def __init__(self, function: FunctionType, name: str) -> None:
        self.function = function
        self.name = name
        self.behind = function
        self.entry = self.enter  # one object, so that it can be recognised
        self.code = standing_in(cells(function))

    def is_there(self) -> bool:
        """Return whether the function still has the wrapper. Its code may have been replaced since."""
        function = self.function
        return function.__code__ is self.code and (function.__kwdefaults__ or {}).get("enter") is self.entry

    def put(self) -> None:
        """Install the wrapper on the function."""
        if not self.is_there():
            behind = duplicate(self.function)
            self._change(behind, stub_of(self.function), behind, self.code, None, {"enter": self.entry})
            self.function.__dict__["__wrapped__"] = behind  # tools show its signature

    def take_away(self) -> None:
        """Remove the wrapper."""
        if self.name in LEAVES:
            _Watch.on_leaves = False
        behind = self.behind
        if self.is_there():
            code, defaults, keywords = behind.__code__, behind.__defaults__, behind.__kwdefaults__
            self._change(self.function, stub_of(behind), behind, code, defaults, keywords)
        if self.function.__dict__.get("__wrapped__") is behind:
            del self.function.__dict__["__wrapped__"]
            self.function.__dict__.update(behind.__dict__)

    @uninterrupted
    def _change(self, owner: Any, stub: Any, behind: Any, code: Any, defaults: Any, keywords: Any) -> None:
        """Change the code of the function. Its lazy stub will install code on `owner`."""
        self.behind = behind
        if stub is not None:
            stub.function = owner
        put_code(self.function, code, defaults, keywords)

    def enter(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function."""
        recorder = STATE.recorder
        if recorder is None:
            if not _profiles and not _takers:
                _arrange([self])
                return self.behind(*args, **kwargs)
            return import_late("adjoint.aten.torch_dispatch").function_called(self.name, self.behind, args, kwargs)
        return recorder.function(self.name, self.behind, args, kwargs)


_made: dict[str, list[_Watch]] = {}


def _watches() -> list[_Watch]:
    """The wrappers of composite functions, which are installed and removed. Unlike `functools.cache`, all threads share them."""
    return _made.get("all") or _made.setdefault("all", _new_watches())


def _new_watches() -> list[_Watch]:
    """Create the wrappers."""
    load_all()
    found: dict[Any, str] = {}
    for functions in PUBLIC.values():
        found.update({function: function.__name__ for name, function in functions.items() if name not in _SILENT})
    for name, method in {name: each for kind in reversed(Tensor.__mro__) for name, each in vars(kind).items()}.items():
        package = str(getattr(method, "__globals__", {}).get("__package__"))
        ours = package.startswith(("adjoint.operators", "adjoint.dispatch"))
        if name in _METHODS or (ours and not name.startswith("_") and name not in _SILENT):
            found[method] = _METHODS.get(name, name)
    return [_Watch(function, name) for function, name in found.items() if _is_made_of_operators(function)]


def _is_made_of_operators(function: Any) -> bool:
    return (
        type(function) is FunctionType and not hasattr(function, "operator") and "TARGETS" not in function.__globals__
    )


_lock = lock_across_forks()
_profiles: dict[int, Any] = {}
"""The running profiles, by identity."""

_takers: dict[int, Callable[[], Any]] = {}
"""The objects that replace operators, or None after they have died.

While they exist, functions that are one operator in PyTorch are watched.
"""

_numbers = count()


def watch(profile: Any) -> None:
    """Report calls of composite functions, because a profile begins."""
    wrappers = _watches()
    _profiles[id(profile)] = profile
    _arrange(wrappers)


def stop_watching(profile: Any) -> None:
    """Stop reporting calls of composite functions, because a profile has ended or could not begin."""
    _profiles.pop(id(profile), None)
    _arrange(_watches())


def watch_leaves(taker: Callable[[], Any]) -> int:
    """Report calls of functions that are one operator in PyTorch, as long as `taker()` is not None. Return a number."""
    wrappers = leaves()
    number = next(_numbers)
    _takers[number] = taker
    if not _Watch.on_leaves:
        _arrange(wrappers)
        _Watch.on_leaves = True
    return number


def stop_watching_leaves(number: int) -> None:
    """Stop reporting these calls to the taker with this number."""
    _takers.pop(number, None)


def settle() -> None:
    """Stop reporting to objects that have died. An interrupt may have prevented the report of their death."""
    gone = [number for number, taker in list(_takers.items()) if taker() is None]
    for number in gone:
        _takers.pop(number, None)


@cache
def leaves() -> list[_Watch]:
    """Return the wrappers of functions that are one operator in PyTorch."""
    return [wrapper for wrapper in _watches() if wrapper.name in LEAVES]


def _arrange(wrappers: Iterable[_Watch]) -> None:
    """Install the needed wrappers: all while a profile runs, otherwise leaves or none. Interrupts wait."""
    with _lock:
        try:
            _arrange_all(wrappers)
        except BaseException:
            _arrange_all(wrappers)
            raise


def _arrange_all(wrappers: Iterable[_Watch]) -> None:
    for wrapper in wrappers:
        if _profiles or (_takers and wrapper.name in LEAVES):
            wrapper.put()
        else:
            wrapper.take_away()


class unwatched:
    """A context manager that removes these wrappers, so that other wrappers can be installed permanently."""

    def __enter__(self) -> None:
        _lock.acquire()
        for wrapper in _made.get("all", ()):
            wrapper.take_away()

    def __exit__(self, *exception: object) -> None:
        try:
            if _profiles or _takers:
                _arrange(_watches())
        finally:
            _lock.release()
