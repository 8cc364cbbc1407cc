"""Compiled functions. Each call runs a captured variant of the function, or the function itself."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any

import adjoint as torch

from .._runtime.tracebacks import warn
from ..tape.modes import FLAGS, STATE
from ..tensor import Tensor
from .errors import BackendCompilerFailed, RecompileError, Unsupported
from .known import is_undisturbed, may_run
from .logs import COUNTERS, report
from .marks import marks_of
from .options import STANCE, STRICT, config
from .symbols import KINDS
from .units import Units
from .variant import MISSED, Variant, captured

ALL: weakref.WeakSet[Any] = weakref.WeakSet()
"""All compiled functions, for `reset`."""


class CompiledFunction:
    """A function or a module that runs a captured program if one fits the call, and otherwise runs without a program.

    `variants`: the programs. `reason`: why no more calls are captured, or None. `units`: the object that then runs the
    function, and compiles the functions and modules that it calls. `refused`: the number of calls that could not be
    captured. A few such calls run in Python without removing the existing programs. `called`: whether a stance has let the first
    call run in Python. `quiet`: whether to suppress
    warnings. `dynamic`: whether numbers among the arguments are inputs of programs. If `dynamic` is None, the numbers
    that have changed are inputs. `seen` stores their first values. `limit`: the maximum number of programs, or None for
    the number in the configuration.
    """

    variants: list[Variant]
    reason: str | None
    units: Units | None
    refused: int
    called: bool
    seen: dict[str, Any]

    def __init__(
        self,
        function: Callable[..., Any],
        fullgraph: bool = False,
        quiet: bool = False,
        dynamic: bool | None = None,
        backend: Any = None,
        limit: int | None = None,
    ) -> None:
        self.compiled_function, self.limit = function, limit
        self.fullgraph, self.quiet, self.dynamic, self.backend = fullgraph, quiet, dynamic, backend
        self.lock = threading.Lock()
        self.stored: set[tuple[int, Any]] = set()
        self.reset()
        ALL.add(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.run(args, kwargs)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any], recorder: Any = None) -> Any:
        """Call the function with these arguments.

        `recorder`: the recorder of a profile that shows the instructions of the program, if one for fixed sizes fits.
        """
        for variant in self.variants:
            try:
                result = variant.run(args, kwargs) if recorder is None else variant.profiled(args, kwargs, recorder)
            except Exception as error:
                explain(error, variant)
                raise
            if result is not MISSED:
                variant.calls += 1
                return result
        if recorder is not None:
            return self.uncaptured(*args, **kwargs)
        if is_elsewhere():
            if (recorder := STATE.recorder) is not None and recorder.shows_programs:
                return self.run(args, kwargs, recorder)
            return self.compiled_function(*args, **kwargs)
        stance = STANCE.get()
        if stance != "default" and self.stays_eager(stance):
            return self.compiled_function(*args, **kwargs)
        return self.capture(args, kwargs) if self.reason is None else self.uncaptured(*args, **kwargs)

    def stays_eager(self, stance: str) -> bool:
        """Return whether a stance forbids a capture now, or raise an error if the stance is "fail_on_recompile"."""
        if stance == "fail_on_recompile":
            name = name_of(self.compiled_function)
            raise RuntimeError(f"Detected recompile when torch.compile stance is 'fail_on_recompile'. function: {name}")
        first, self.called = not self.called, True
        return stance == "eager_on_recompile" or (first and stance.endswith("eager_then_compile"))

    def as_function(self) -> Callable[..., Any]:
        """Return a function that calls this object, and that can be a method of a class."""
        run = self.run

        def compiled(*args: Any, **kwargs: Any) -> Any:
            return run(args, kwargs)

        functools.update_wrapper(compiled, self.compiled_function)
        compiled._torchdynamo_orig_callable = self.compiled_function  # type: ignore[attr-defined]
        compiled.compiled = self  # type: ignore[attr-defined]
        return compiled

    def capture(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function, and store its operations as a program."""
        because = [variant.unmet(args, kwargs) for variant in self.variants]
        if because and config.error_on_recompile:
            raise RecompileError(f"Recompiling function {name_of(self.compiled_function)}: not {because[0]}")
        most = min(config.recompile_limit, config.cache_size_limit) if self.limit is None else self.limit
        if len(self.variants) >= most:
            self.give_up(f"{most} programs were captured, and none fits this call: {', '.join(because[:1])}")
            return self.compiled_function(*args, **kwargs)
        if not self.lock.acquire(blocking=False):  # another thread captures it, or it calls itself
            return self.compiled_function(*args, **kwargs)
        try:
            fixed = self.dynamic is False or self.backend is not None
            numbers = set() if fixed else self.numbers(args, kwargs)
            dims_of = None if fixed else self.dims_of
            function, branches = self.compiled_function, not self.fullgraph
            result, variant, reason = captured(
                function,
                args,
                kwargs,
                numbers,
                dims_of,
                self.variants,
                branches,
                self.stored,
                self.varies,
                self.backend,
            )
        except BackendCompilerFailed as error:
            if not config.suppress_errors:
                raise
            self.give_up(str(error))
            return function(*args, **kwargs)
        finally:
            self.lock.release()
        if variant is not None:
            COUNTERS["stats"]["unique_graphs"] += 1
            COUNTERS["stats"]["calls_captured"] += len(variant.program.instructions)
            if self.backend is not None:
                result = vars(variant).pop("first_result")
            variant.because = because
            others = [each for each in self.variants if each is not variant.replaced]
            self.variants = [variant, *others]  # first, because it supports more changes
            if because:
                report("recompiles", f"{name_of(self.compiled_function)} is captured again: not {because[0]}")
        elif reason is not None:
            self.refused += 1
            COUNTERS["graph_break"][reason] += 1
            report("graph_breaks", f"{name_of(self.compiled_function)}: {reason}")
            if self.fullgraph or not self.variants or self.refused == most:
                unit = functools.partial(CompiledFunction, quiet=True, backend=self.backend)
                self.units = Units(self.compiled_function, unit, self.backend is not None)
                self.give_up(reason)
        return result

    def numbers(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> set[str]:
        """Return the places of the numbers among the arguments that are inputs, because they have changed."""
        given = {f"args[{index}]": each for index, each in enumerate(args)}
        given |= {f"kwargs[{name!r}]": each for name, each in kwargs.items()}
        found = {place: each for place, each in given.items() if type(each) in KINDS}
        if self.dynamic is None:
            found = {place: each for place, each in found.items() if self.seen.setdefault(place, each) != each}
        return {*found}

    def varies(self, place: str, value: Any) -> bool:
        """Return whether another object was at a place among the arguments in an earlier call."""
        return bool(self.seen.setdefault(f"{place} is", id(value)) != id(value))

    def dims_of(self, place: str, tensor: Tensor) -> frozenset[int]:
        """Return the dimensions of an argument that are inputs of programs: dimensions that have changed, or all on request."""
        array = tensor._array
        first, varied = self.seen.setdefault(f"{place}.shape", (array.shape, set()))
        if len(first) != array.ndim or not array.flags.c_contiguous:
            return frozenset()
        varied.update(dim for dim, size in enumerate(array.shape) if size != first[dim])
        marks = marks_of(tensor)
        varied.update(dim for dim, dynamic in marks.items() if dynamic)
        wanted = {*range(array.ndim)} if self.dynamic else varied
        return frozenset(dim for dim in wanted if array.shape[dim] > 1 and marks.get(dim, True))

    def give_up(self, reason: str) -> None:
        """Stop capturing. Calls that fit no program run in Python."""
        self.reason = reason
        if self.fullgraph or STRICT.get():
            raise Unsupported(f"the function cannot be compiled as one program: {reason}")
        if not self.quiet:
            warn(f"torch.compile runs {name_of(self.compiled_function)} as it is: {reason}", UserWarning)

    def uncaptured(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function without a program."""
        return (self.compiled_function if self.units is None else self.units)(*args, **kwargs)

    def reset(self) -> None:
        """Remove all captured programs."""
        self.variants, self.reason, self.units, self.refused, self.seen = [], None, None, 0, {}
        self.called = False


def is_elsewhere() -> bool:
    """Return whether the operators of this thread are handled, followed or observed. Functions then run without programs."""
    return not may_run(STATE.__dict__) or (bool(FLAGS.special) and not is_undisturbed())


def name_of(function: Any) -> str:
    """Return the name of a function, or of the class of a module."""
    return getattr(function, "__qualname__", None) or type(function).__name__


def explain(error: Exception, variant: Variant) -> None:
    """Add a note to `error` with the user's line of the instruction that failed."""
    trace = error.__traceback__
    while trace is not None:
        origins = variant.origins_of(trace.tb_frame.f_code)
        if origins is not None:
            found = origins.get(trace.tb_lineno)
            if found is not None:
                error.add_note(f"in the compiled form of {found[0]}, line {found[1]}")
        trace = trace.tb_next


class OptimizedModule(torch.nn.Module):
    """A module whose calls are compiled. It has the parameters and the attributes of the original module, `_orig_mod`."""

    _orig_mod: torch.nn.Module
    compiled: CompiledFunction

    def __init__(
        self,
        mod: torch.nn.Module,
        fullgraph: bool = False,
        dynamic: bool | None = None,
        backend: Any = None,
        limit: int | None = None,
    ) -> None:
        super().__init__()
        del self.__dict__["training"]  # the original module has this attribute
        self._modules["_orig_mod"] = mod
        self.__dict__["compiled"] = CompiledFunction(mod, fullgraph, dynamic=dynamic, backend=backend, limit=limit)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the compiled module. Hooks of this module itself run around the call."""
        if self._call_hooks:
            return super().__call__(*args, **kwargs)
        return self.compiled.run(args, kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the compiled module."""
        return self.compiled(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules")
        if not modules:
            raise AttributeError(name)
        return modules["_orig_mod"] if name == "_orig_mod" else getattr(modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ or name == "_orig_mod":
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __len__(self) -> int:
        if not hasattr(type(self._orig_mod), "__len__"):
            raise TypeError(f"{type(self._orig_mod).__name__} does not support len()")
        return len(self._orig_mod)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __reduce__(self) -> Any:
        made = self.compiled
        return type(self), (self._orig_mod, made.fullgraph, made.dynamic, made.backend, made.limit)
