"""Plans of kernels: the results for arrays of one signature and the call that computes them.

A kernel makes a plan from dtypes, shapes and strides alone. The plan describes the arrays that the kernel will write
and contains a function that writes them. Eager calls keep the plan, allocate the results, and launch the function. A
compiled program calls `kernel.plan(...)`, plans its memory, and calls `plan.into` with this memory:

    plan = max_pool.plan(input, 2, (3, 3), (2, 2), (1, 1), (1, 1))
    out = [item.empty() for item in plan.results]
    plan.into(out, input, 2, (3, 3), (2, 2), (1, 1), (1, 1))
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy
from numpy import ndarray

from .._runtime.forks import code_of
from .acceleration import LOOPS, with_copies, without_repetition
from .costs import CALLS

Dtype = numpy.dtype[Any]


class Memory(NamedTuple):
    """The description of an array to be written.

    Its dimensions are in memory in the given `order`, the outermost first. The default is row-major order.
    """

    shape: tuple[int, ...]
    dtype: Dtype
    order: tuple[int, ...] | None = None

    def empty(self) -> ndarray:
        """Return new memory."""
        if self.order is None:
            return numpy.empty(self.shape, self.dtype)
        lain = numpy.empty([self.shape[dim] for dim in self.order], self.dtype)
        return lain.transpose([self.order.index(dim) for dim in range(len(self.shape))])


class Plan:
    """The computation of a kernel for arrays of one signature.

    `results`: descriptions of the arrays that it writes. An entry is None if the result is not requested. `run` takes
    the arguments of the kernel, allocates the results and returns them. `into` takes the arrays to be written, followed
    by the arguments of the kernel. Both return NotImplemented if the values of the arguments require another plan.

    If only one of these functions is given, the other function is derived from it.

    `compiled`: the arguments of the function that plans compiled code, if they are not the arguments of the kernel.
    NotImplemented means that there is no compiled code for arrays of this signature.
    """

    __slots__ = ("compiled", "into", "results", "run")

    def __init__(
        self,
        results: Sequence[Memory | None],
        *,
        run: Callable[..., Any] | None = None,
        into: Callable[..., Any] | None = None,
        compiled: Any = None,
    ) -> None:
        self.results = tuple(results)
        self.compiled = compiled
        self.run: Callable[..., Any] = run or _allocating(self.results, into)
        self.into: Callable[..., Any] = into or _copying(self.run)


def returned(results: Sequence[Any]) -> Any:
    """Return the value of a kernel with these results, which is a tuple or the only result."""
    return results[0] if len(results) == 1 else tuple(results)


def _allocating(results: Sequence[Memory | None], into: Any) -> Callable[..., Any]:
    kinds = [None if item is None else item.order is None for item in results]
    known = [part for item in results if item for part in (item[:2] if item.order is None else (item.empty,))]
    made: Callable[..., Any] = _maker(tuple(kinds))(into, *known)
    return made


@functools.cache
def _maker(kinds: tuple[bool | None, ...]) -> Callable[..., Callable[..., Any]]:
    """Return a function that derives `run` from `into` for results that are row-major, reordered, or not requested."""
    known, lines = [], []
    for number, plain in enumerate(kinds):
        if plain is not None:
            known += [f"shape{number}", f"dtype{number}"] if plain else [f"new{number}"]
            lines.append(f"r{number} = empty(shape{number}, dtype{number})" if plain else f"r{number} = new{number}()")
    names = ["None" if plain is None else f"r{number}" for number, plain in enumerate(kinds)]
    out = f"({', '.join(names)},)"
    source = f"""def make({", ".join(["into", *known])}):
    def run(*arguments):
        {"; ".join(lines) or "pass"}
        return {names[0] if len(names) == 1 else out} if into({out}, *arguments) is None else NotImplemented
    return run
"""
    namespace: dict[str, Any] = {"empty": numpy.empty}
    exec(code_of(source, f"<adjoint run {len(kinds)}>"), namespace)
    made: Callable[..., Callable[..., Any]] = namespace["make"]
    return made


def _copying(run: Callable[..., Any]) -> Callable[..., Any]:
    def into(out: Sequence[ndarray | None], *arguments: Any) -> Any:
        results = run(*arguments)
        if results is NotImplemented:
            return NotImplemented
        for target, result in zip(out, results if len(out) > 1 else (results,), strict=True):
            if target is not None:
                target[...] = result
        return None

    return into


def _of_copies(plan: Plan) -> Plan:
    """Return a plan like `plan` that copies arguments whose elements repeat in memory."""
    return Plan(
        plan.results,
        run=lambda *arguments: plan.run(*map(without_repetition, arguments)),
        into=lambda out, *arguments: plan.into(out, *map(without_repetition, arguments)),
    )


NUMPY = Plan((), run=lambda *_: NotImplemented)
"""The plan of a kernel that lets NumPy compute arrays of a certain signature. NumPy's function itself has no plan."""

_Made = TypeVar("_Made")


class Plans(dict[Any, _Made]):
    """The plans of a kernel by the dtypes, shapes and strides of the arrays. It contains at most `most` plans."""

    most = 256

    def keep(self, key: Any, plan: _Made) -> _Made:
        """Store a plan."""
        if len(self) >= self.most:
            self.clear()
        self[key] = plan
        return plan


_SOURCE = """def {name}({passed}):
    {few}_plan = _plans.get(_key := ({key}))
    if _plan is None:
        _plan = _make(_key, {passed})
    _result = _plan.run({passed})
    return _form({passed}).run({passed}) if _result is NotImplemented else _result

def _plan_of({passed}):
    return _plans.get(_key := ({key})) or _make(_key, {passed})
"""


def planned(path: str, *, least: int = 0, exact: bool = False) -> Callable[[Callable[..., Plan]], Any]:
    """Plan a kernel once for each signature: the dtypes, shapes and strides of its arrays, and its other arguments.

    The decorated function checks the arguments and returns NumPy's plan. `path` names a function below
    `kernels.compiled`. The function returns the plan of compiled code (a `NativeCall`), or NotImplemented for
    signatures that it does not support. Both functions use only the signature. The result of the decorator is the
    kernel. Its attribute `plan` returns the plan for arguments.

    The parameters whose annotations begin with an array type are arrays. A kernel with NumPy's plan `NUMPY` returns
    NotImplemented if there is no compiled code or if its first array has fewer than `least` elements. If it is `exact`,
    its results are identical to NumPy's, so after `CALLS` calls it also computes smaller arrays.
    """

    def decorate(form: Callable[..., Plan]) -> Any:
        function: Any = form
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        plans: Plans[Plan] = Plans()

        def make(key: Any, *args: Any) -> Plan:
            plan = form(*args)
            given = args if plan.compiled is None else plan.compiled
            made = NotImplemented if given is NotImplemented else LOOPS.run(path, *given)
            if made is not NotImplemented:
                plan = made if isinstance(made, Plan) else made.plan(names)
            elif (copies := with_copies(args)) is not None:
                plan = _of_copies(make((key, "copies"), *copies))
            return plans.keep(key, plan)

        parts = ["LOOPS._enabled", "LOOPS.every_size"]
        for name in names:
            kind = function.__annotations__[name].split(" | ")
            signature = f"{name}.dtype, {name}.shape, {name}.strides"
            if kind[0] not in ("ndarray", "Array"):
                parts.append(name)
            else:
                parts.append(signature if len(kind) == 1 else f"None if {name} is None else ({signature})")
        small = f"{names[0]}.size < {least} and not LOOPS.every_size{' and next(_waiting, 0)' if exact else ''}"
        source = _SOURCE.format(
            name=function.__name__,
            passed=", ".join(names),
            key=", ".join(parts),
            few=f"if {small}:\n        return NotImplemented\n    " if least else "",
        )
        namespace = {
            "__package__": "adjoint.kernels", "LOOPS": LOOPS, "_plans": plans, "_make": make, "_form": form,
            "_waiting": iter(range(CALLS, 0, -1)),
        }  # fmt: skip
        exec(code_of(source, f"<adjoint planned {function.__module__}.{function.__name__}>"), namespace)
        kernel: Any = functools.update_wrapper(namespace[function.__name__], form)  # type: ignore[arg-type]
        namespace["_plan_of"].__defaults__ = kernel.__defaults__ = function.__defaults__  # type: ignore[attr-defined]
        kernel.plan, kernel.path = namespace["_plan_of"], path
        return kernel

    return decorate
