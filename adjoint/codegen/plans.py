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
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy
from numpy import ndarray

from .._runtime.first_use import import_late
from .._runtime.forks import compile_source
from ..kernels.runtime.costs import CALLS
from ..kernels.runtime.floating import HALVES
from ..kernels.runtime.parallel import scratch
from .acceleration import LOOPS, SHAPES, with_copies, without_repetition
from .kernel import FLOATS, Kernel, as_kernel

Dtype = numpy.dtype[Any]


class Memory(NamedTuple):
    """The description of an array to be written, whose dimensions lie in this `order`, the outermost first."""

    shape: tuple[int, ...]
    dtype: Dtype
    order: tuple[int, ...] | None = None

    def allocator(self, make: Callable[..., ndarray] = numpy.empty) -> Callable[[], ndarray]:
        """Return a function of no arguments that returns new memory, by `make` for a shape and a dtype."""
        if self.order is None:
            return functools.partial(make, self.shape, self.dtype)
        lain = functools.partial(make, [self.shape[dim] for dim in self.order], self.dtype)
        back = [self.order.index(dim) for dim in range(len(self.shape))]
        return lambda: lain().transpose(back)

    def empty(self, make: Callable[..., ndarray] = numpy.empty) -> ndarray:
        """Return new memory."""
        return self.allocator(make)()


def empty(shape: Any, dtype: Any) -> ndarray:
    """Return a new array, as `numpy.empty` does, or an outline in a recording."""
    return numpy.empty(shape, dtype) if SHAPES.recorder is None else SHAPES.recorder.empty(Memory(shape, dtype))


def zeros(shape: Any, dtype: Any) -> ndarray:
    """Return new zeros, as `numpy.zeros` does, or an outline in a recording."""
    return numpy.zeros(shape, dtype) if SHAPES.recorder is None else SHAPES.recorder.zeros(Memory(shape, dtype))


def new_flag(raises: bool = True) -> ndarray:
    """Return an array into which loops write 1 if a condition is not true. Then the kernel may raise an error."""
    return numpy.zeros(1, numpy.int64) if SHAPES.recorder is None else SHAPES.recorder.new_flag(raises)


def is_set(flag: ndarray) -> bool:
    """Return whether loops have written 1. In a recording, the answer is no: otherwise, the run calls the kernel in Python."""
    return SHAPES.recorder is None and bool(flag[0])


def empty_like(array: ndarray) -> Any:
    """Return a new array with the shape, dtype and order of dimensions of another array, or an outline in a recording."""
    made = numpy.empty_like(array.view(ndarray))
    return made if SHAPES.recorder is None else SHAPES.recorder.outline(made.shape, made.dtype, made.strides)


def workspace(name: str, size: int, dtype: Any) -> ndarray:
    """Return uninitialized memory that starts at a cache line: `scratch` of this name, or an outline in a recording."""
    return scratch(name, (size,), dtype) if SHAPES.recorder is None else empty((size,), dtype)


def memory_like(array: ndarray) -> Memory:
    """Return the description of an array that has no gaps in memory."""
    order = None if array.flags.c_contiguous else tuple(sorted(range(array.ndim), key=lambda dim: -array.strides[dim]))
    return Memory(array.shape, array.dtype, order)


class Plan:
    """The computation of a kernel for arrays of one signature.

    `results`: descriptions of the arrays that it writes. An entry is None if the result is not requested. `run` takes
    the arguments of the kernel, allocates the results and returns them. `into` takes the arrays to be written, followed
    by the arguments of the kernel. Both return NotImplemented if the values of the arguments require another plan.

    If only one of these functions is given, the other function is derived from it.

    `compiled`: the arguments of the function that plans compiled code, if they are not the arguments of the kernel.
    NotImplemented means that there is no compiled code for arrays of this signature. `call`: the `NativeCall` that computes
    the results, if there is one, and `names` are the names of the arguments. `conditional`: whether values of the
    arguments may require NumPy's plan instead. `fitting`: the shapes and dtypes of row-major arrays for the results.
    """

    __slots__ = ("call", "compiled", "conditional", "fitting", "into", "names", "results", "run")

    def __init__(
        self,
        results: Sequence[Memory | None],
        *,
        run: Callable[..., Any] | None = None,
        into: Callable[..., Any] | None = None,
        compiled: Any = None,
        call: Any = None,
        names: Sequence[str] = (),
    ) -> None:
        self.results, self.names = tuple(results), names
        self.call = call
        self.compiled = compiled
        self.conditional = False
        self.fitting = [item and (item.shape, item.dtype, item.order is None) for item in results]
        if call is not None and call.flagged:  # an error must not change `out`
            self.fitting = []
        if run is None:
            requested = tuple([item is not None for item in results])
            run = _maker(requested)(into, *[item.allocator() for item in results if item])
        self.run: Callable[..., Any] = run
        self.into: Callable[..., Any] = into or _copying(self.run)

    def compute(self, *args: Any) -> Any:
        """Return the results, or record their computation."""
        return self.run(*args) if SHAPES.recorder is None else SHAPES.recorder.run(self, args)

    def written(self, out: Any, *args: Any) -> Any:
        """Write the results to `out` and return `out`, if it fits. Otherwise, return new results."""
        outs = out if type(out) is tuple else (out,)
        if [(each.shape, each.dtype, each.flags.c_contiguous) for each in outs] != self.fitting:
            return self.run(*args)
        return NotImplemented if self.into(outs, *args) is NotImplemented else out

    def zeros(self) -> Any:
        """Return zeros in place of the results, or NotImplemented if the plan has no results."""
        zeros = [item and item.empty(numpy.zeros) for item in self.results]
        return returned(zeros) if zeros else NotImplemented


class Launch(NamedTuple):
    """A call of a planned kernel in a native run.

    `address`: machine code, which takes the address of `size` words and the addresses of arrays. `work`: the bytes that it
    touches, or an equivalent number. `splits`: whether several threads compute it. `words`: the function that returns the words,
    for a number of threads and the address of the memory that these threads share. `kept`: the object that owns memory to which
    the words point.
    """

    name: str
    address: int
    size: int
    work: int
    splits: bool
    words: Callable[[int, int], Sequence[int]]
    kept: Any = None


def returned(results: Sequence[Any]) -> Any:
    """Return the value of a kernel with these results, which is a tuple or the only result."""
    return results[0] if len(results) == 1 else tuple(results)


@functools.cache
def _maker(requested: tuple[bool, ...]) -> Any:
    """Return a function that derives `run` from `into`, given the allocators of the requested results."""
    names = [f"r{number}" if wanted else "None" for number, wanted in enumerate(requested)]
    made = [name for name in names if name != "None"]
    out = f"({', '.join(names)},)"
    source = f"""def make({", ".join(["into", *[f"new_{name}" for name in made]])}):
    def run(*arguments):
        {"; ".join([f"{name} = new_{name}()" for name in made]) or "pass"}
        return {names[0] if len(names) == 1 else out} if into({out}, *arguments) is None else NotImplemented
    return run
"""
    return compile_source(source, f"<adjoint run {len(requested)}>", {})["make"]


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
    copying = Plan(
        plan.results,
        run=lambda *arguments: plan.run(*map(without_repetition, arguments)),
        into=lambda out, *arguments: plan.into(out, *map(without_repetition, arguments)),
    )
    copying.conditional = plan.conditional
    return copying


def replayed_later(
    plain: Callable[..., Any], record: Callable[..., Any], put: Callable[[Any], Any]
) -> Callable[..., Any]:
    """Return a function like `plain` that after `CALLS` calls passes a faster function to `put`: see `llvm.replay.replay_of`."""
    calls = iter(range(CALLS))

    def run(*arguments: Any) -> Any:
        if SHAPES.recorder is None and next(calls, None) is None:
            put(import_late("adjoint.codegen.llvm.replay").replay_of(plain, record, arguments))
        return plain(*arguments)

    run.recordable = True  # type: ignore[attr-defined]
    return run


NUMPY = Plan((), run=lambda *_: NotImplemented)
"""The plan of a kernel that lets NumPy compute arrays of a certain signature. NumPy's function itself has no plan."""

_Made = TypeVar("_Made")
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Plans(dict[Any, _Made]):
    """The plans of a kernel by the dtypes, shapes and strides of the arrays. It contains at most `most` plans."""

    most = 256

    def keep(self, key: Any, plan: _Made) -> _Made:
        """Store a plan."""
        if len(self) >= self.most:
            self.clear()
        self[key] = plan
        return plan


_SOURCE = """def {name}({passed}, out=None):
    if SHAPES.special:
        return _specially({passed})
    {few}_plan = _plans.get(_key := ({key}))
    if _plan is None:
        _plan = _make(_key, {passed})
    _result = _plan.run({passed}) if out is None else _plan.written(out, {passed})
    return _form({passed}).run({passed}) if _result is NotImplemented and _plan.conditional else _result

def _plan_of({passed}):
    return _plans.get(_key := ({key})) or _make(_key, {passed})
"""


def signature(form: Callable[..., Any], names: Sequence[str]) -> str:
    """Return the source of the signature of a call, in which arrays count by dtypes, shapes and strides.

    0.0 and -0.0 are equal, and so are complex numbers with such parts. Their texts differ.
    """
    parts = ["LOOPS._enabled", "LOOPS.every_size"]
    for name in names:
        kind, *others = form.__annotations__[name].split(" | ")
        if kind in ("ndarray", "Array"):
            found = f"{name}.dtype, {name}.shape, {name}.strides"
            parts.append(f"({found}) if isinstance({name}, ndarray) else ({_number(name)})" if others else found)
        else:
            parts.append(_number(name) if kind in ("Any", "complex", "float") else name)
    return ", ".join(parts)


def _number(name: str) -> str:
    doubtful = f"type({name}) is float and not {name} or type({name}) is complex"
    return f"repr({name}) if {doubtful} else {name}, type({name})"


_REPLAYED = """def {name}({passed}):
    if SHAPES.special:
        return _form({passed})
    try:
        _run = _runs.get(_key := ({key}))
    except TypeError:  # an argument has no hash
        return _form({passed})
    return (_later(_key) if _run is None else _run)({passed})
"""


def replayed(form: _Function) -> _Function:
    """Declare a recordable kernel (see `recording`), which replays its recording in later calls with little work."""
    names = form.__code__.co_varnames[: form.__code__.co_argcount]
    runs: Plans[Any] = Plans()

    def later(key: Any) -> Any:
        return runs.keep(key, replayed_later(form, form, functools.partial(runs.keep, key)))

    source = _REPLAYED.format(name=form.__name__, passed=", ".join(names), key=signature(form, names))
    given = {"SHAPES": SHAPES, "LOOPS": LOOPS, "ndarray": ndarray, "_form": form, "_runs": runs, "_later": later}
    namespace = compile_source(source, f"<adjoint replayed {form.__module__}.{form.__name__}>", given)
    kernel: Any = functools.update_wrapper(namespace[form.__name__], form)
    kernel.__defaults__, kernel.recordable = form.__defaults__, True
    return kernel


class compiled:
    """The compiled form of a kernel, which is a function with this path below `kernels.compiled`.

    This is the only way to attach a compiled form. It decorates the NumPy form, whose first parameter is an array:

        @compiled("create.normals.transform", least=PASSES)
        def transform(fractions, ...): ...

    The compiled form takes the same arguments. It returns NotImplemented for arguments that it does not support, and then
    the NumPy form computes the result.

    A NumPy form that returns a `Plan` is called once for each signature: the dtypes, shapes and strides of its arrays, and
    its other arguments. It checks the arguments and returns NumPy's plan. The compiled form returns the plan of compiled
    code (a `NativeCall`), or NotImplemented. Both use only the signature. The attribute `plan` of the kernel returns the
    plan for arguments. The parameters whose annotations begin with an array type are arrays. A kernel with NumPy's plan
    `NUMPY` returns NotImplemented if NumPy must compute the result.

    A kernel without a separate NumPy form calls `run`.

    A pointwise kernel with the same parameters, in place of the path, computes large floating-point arrays of one dtype.
    `small` then computes small float32 and float64 arrays if another form is faster for them.

    `least`: the number of elements from which the compiled form is used. With a `cost`, its results are identical to
    NumPy's, and smaller arrays use it too, after `CALLS` calls. One call of the NumPy form counts as `cost` calls.
    """

    def __init__(self, path: str | Kernel, *, least: int = 0, cost: int = 0, small: Any = None) -> None:
        self.path: Any = path
        self.small = small
        self.least = least
        self.cost = cost
        self._waiting = iter(range(CALLS, 0, -cost)) if cost else itertools.repeat(1)

    def run(self, size: int, *args: Any, **options: Any) -> Any:
        """Return the result for an array of this size, or NotImplemented if NumPy must compute it."""
        if size < self.least and next(self._waiting, 0) and not ((LOOPS.every_size or SHAPES.recorder) and size):
            return NotImplemented
        return LOOPS.run(self.path, *args, **options)

    def __call__(self, form: Any) -> Any:
        """Return a kernel that uses the compiled form if it supports the arguments, and otherwise the NumPy `form`."""
        if isinstance(self.path, Kernel):
            return self._pointwise(form)
        return self._planned(form) if form.__annotations__.get("return") == "Plan" else self._direct(form)

    def _direct(self, form: Callable[..., Any]) -> Any:
        @functools.wraps(form)
        def kernel(first: Any, *args: Any, **options: Any) -> Any:
            small = first.size < self.least and not (LOOPS.every_size or SHAPES.recorder)
            if small and next(self._waiting, 0):
                return form(first, *args, **options)
            result = LOOPS.run(self.path, first, *args, **options)
            if result is NotImplemented and (copies := with_copies(args)) is not None:
                result = LOOPS.run(self.path, first, *copies, **options)
            return form(first, *args, **options) if result is NotImplemented else result

        kernel.path = self.path  # type: ignore[attr-defined]
        return kernel

    def _pointwise(self, form: Any) -> Kernel:
        expression, kernel = self.path, as_kernel(form)

        @functools.wraps(kernel.general)
        def computing(*args: Any, **options: Any) -> Any:
            arrays = args[: len(expression.expression.parameters.arrays)]
            dtype = arrays[0].dtype
            if (
                (dtype.kind == "f" or (dtype.itemsize == 2 and dtype in HALVES))
                and LOOPS.takes(numpy.broadcast(*arrays).size, self.least)
                and all(type(item) is ndarray and item.dtype is dtype for item in arrays)
            ):
                return expression.general(*args, **options)
            return kernel.general(*args, **options)

        limit = -1 if LOOPS.every_size else self.least - 1 if LOOPS.installed else None
        if self.small is not None:
            return Kernel(computing, small=self.small, dtypes=FLOATS, limit=limit)
        if kernel.small is not None:
            return Kernel(computing, small=kernel.small, dtypes=kernel.dtypes, limit=limit)
        return Kernel(computing)

    def _planned(self, form: Any) -> Any:
        names = form.__code__.co_varnames[: form.__code__.co_argcount]
        plans: Plans[Plan] = Plans()

        def make(key: Any, *args: Any) -> Plan:
            plan = form(*args)
            given, plan.compiled = args if plan.compiled is None else plan.compiled, None
            recorder, SHAPES.recorder = SHAPES.recorder, None
            try:
                made = NotImplemented if given is NotImplemented else LOOPS.run(self.path, *given)
            finally:
                SHAPES.recorder = recorder
            if made is not NotImplemented:
                plan = made if isinstance(made, Plan) else made.plan(names)
                plan.conditional = True
                if plan.call is None and any(getattr(each, "recordable", False) for each in (plan.into, plan.run)):
                    plan.run = replayed_later(plan.run, plan.compute, functools.partial(setattr, plan, "run"))
            elif (copies := with_copies(args)) is not None:
                plan = _of_copies(make((key, "copies"), *copies))
            return plans.keep(key, plan)

        def specially(*args: Any) -> Any:
            if SHAPES.only:
                return form(*args).zeros()
            few = args[0].size < self.least and not self.cost  # the bits may differ from those of NumPy's form
            return NotImplemented if few else SHAPES.recorder.run(namespace["_plan_of"](*args), args)

        small = (
            f"{names[0]}.size < {self.least} and not LOOPS.every_size{' and next(_waiting, 0)' if self.cost else ''}"
        )
        source = _SOURCE.format(
            name=form.__name__,
            passed=", ".join(names),
            key=signature(form, names),
            few=f"if {small}:\n        return NotImplemented\n    " if self.least else "",
        )
        namespace = {
            "LOOPS": LOOPS, "SHAPES": SHAPES, "ndarray": ndarray, "_plans": plans,
            "_make": make, "_form": form, "_waiting": self._waiting, "_specially": specially,
        }  # fmt: skip
        compile_source(source, f"<adjoint planned {form.__module__}.{form.__name__}>", namespace)
        kernel: Any = functools.update_wrapper(namespace[form.__name__], form)
        namespace["_plan_of"].__defaults__ = form.__defaults__
        kernel.__defaults__ = (*(form.__defaults__ or ()), None)
        kernel.plan, kernel.path = namespace["_plan_of"], self.path
        return kernel
