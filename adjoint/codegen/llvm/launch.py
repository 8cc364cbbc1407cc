"""Run compiled functions on several threads."""

from __future__ import annotations

import ast
from functools import partial
from struct import Struct
from time import perf_counter
from typing import Any

from ..._runtime.forks import compile_source
from ...kernels.runtime import parallel
from ...kernels.runtime.addresses import BEFORE_BYTES
from ...kernels.runtime.costs import PARALLEL_BYTES, WHOLE_BYTES
from ...kernels.runtime.layout import row_major_copy
from ..acceleration import SHAPES
from ..observed_kernels import KERNELS
from .compilation import CompiledFunction, character, in_numbers
from .element_types import TypeVariable, type_of
from .host import HOST
from .language import Loops
from .workers import WORKERS, run_rows

PART_SECONDS = 0.04
"""The intended duration of a part, so that an interrupt is raised soon even on a busy machine."""


def launch(function: Any, n: int, row_bytes: int, *arguments: Any) -> None:
    """Call the compiled `function(*arguments, start, stop)` for ranges that together cover `range(n)`.

    Arguments that are pointers may be given as arrays.

    `row_bytes`: the number of bytes that a row of the range accesses, or an equivalent number if a row requires much
    computation.
    """
    if SHAPES.recorder is not None:
        SHAPES.recorder.launch(function, n, row_bytes, *arguments)
        return
    work = n * row_bytes
    if work < PARALLEL_BYTES:
        if n > 0:
            function.quick(*arguments, 0, n)
        return
    given = in_numbers(arguments)
    threads = parallel.num_threads
    if work <= WHOLE_BYTES and (threads == 1 or n == 1):
        function.call(*given, 0, n)
        return
    split = function.split or _split(function)
    words = function.pack(*given) if function.pack else None
    place = given[0] if words is None else id(words) + BEFORE_BYTES
    if work > WHOLE_BYTES:
        _launch_in_parts(split, n, row_bytes, place)
        return
    shared = WORKERS.address if WORKERS.threads >= threads else WORKERS.ready(threads)
    split(shared, place, 0, n, row_bytes, threads)


def _split(function: Any) -> Any:
    """Return the function through which workers call the compiled function. It is created on first use."""
    run = run_rows.compiled().call
    function.split = KERNELS.called(function, partial(getattr(run, "original", run), function.of_table))
    if function.code.also:
        function.pack = Struct("".join(map(character, function.parameters[:-2]))).pack
    return function.split


def _launch_in_parts(split: Any, n: int, row_bytes: int, place: int) -> None:
    """Run all rows like `launch`, in calls that take about `PART_SECONDS` and have rows for all threads."""
    threads = parallel.num_threads
    begin, rows = 0, WHOLE_BYTES // 8 // row_bytes
    while begin < n:
        rows = min(max(rows // threads, 1) * threads, n - begin)
        started = perf_counter()
        split(WORKERS.ready(threads), place, begin, rows, row_bytes, threads)
        begin += rows
        rows = int(rows * min(PART_SECONDS / max(perf_counter() - started, 1e-6), 8))  # at most eight times as many


_SOURCE = """def {name}(_rows, _row_bytes, {given}):
    _key = {key}
    _function = _functions.get(_key)
    if _function is None:
        _function = _functions[_key] = _bound(_key)
    if _function is NotImplemented{strided}:
        return NotImplemented
    {copies}
    _launch(_function, _rows, _row_bytes, {arguments})
    return {first}
"""


class LaunchedLoops(Loops):
    """A kernel that arrays are passed to."""

    def run(self, rows: int, row_bytes: int, *arguments: Any, **static: Any) -> Any:
        """Launch the kernel for `rows` rows, and return its first argument. Return NotImplemented if it does not take the arrays.

        The parameters say what the kernel takes: for each `Pointer[T]` a row-major array. All arrays of one type variable
        have one dtype, from which an option of `loops` determines the type: `T=FLOATS` (by default `NUMBERS`). Arrays that
        the option `copied` names need not be row-major. `row_bytes`: see `launch`. `static` are the values of `Static`
        parameters. `W` is by default the number of elements of the first array in a vector.
        """
        self.run = runner(self)  # type: ignore[method-assign]
        return self.run(rows, row_bytes, *arguments, **static)

    def of_dtype(self, dtype: Any) -> CompiledFunction:
        """Return the machine code for arrays of a dtype."""
        return self.compiled(T=type_of(dtype))


def loops(function: Any = None, /, **options: Any) -> Any:
    """Turn a Python function into a kernel with the method `run`. The options: see `language.loops`."""
    return partial(LaunchedLoops, **options) if function is None else LaunchedLoops(function, **options)


def runner(kernel: Loops) -> Any:
    """Return the function that runs a kernel (`Loops.run`). Its source follows from the parameters of the kernel."""
    parameters = [(each.arg, each.annotation) for each in kernel.tree.args.args if each.arg not in ("start", "stop")]
    static = [name for name, annotation in parameters if isinstance(annotation, ast.Name) and annotation.id == "Static"]
    arguments = [name for name, _ in parameters if name not in static]
    types = {
        name: kernel.lookup(ast.unparse(kind.slice)) for name, kind in parameters if isinstance(kind, ast.Subscript)
    }
    strided = [f"{name}.flags.c_contiguous" for name in types if name not in kernel.copied]

    def bound(key: tuple[Any, ...]) -> Any:
        dtypes: dict[str, Any] = {}
        for type_, dtype in zip(types.values(), key, strict=False):
            variable = isinstance(type_, TypeVariable)
            if (dtypes.setdefault(type_.name, dtype) != dtype) if variable else (type_of(dtype) is not type_):
                return NotImplemented
        given = {name: kernel.types[name](dtype) for name, dtype in dtypes.items()}
        if None in given.values():
            return NotImplemented
        given |= zip(static, key[len(types) :], strict=True)
        if "W" in static and given["W"] is None:
            given["W"] = HOST.vector_bytes // key[0].itemsize
        return kernel.compiled(**given)

    source = _SOURCE.format(
        name=kernel.name,
        given=", ".join([*arguments, "*", *[name for name in static if name != "W"], "W=None"]),
        key=f"({', '.join([*[f'{name}.dtype' for name in types], *static])},)",
        strided=f" or not ({' and '.join(strided)})",
        copies="; ".join(
            [f"{name} = {name} if {name}.flags.c_contiguous else _copied({name})" for name in kernel.copied]
        ),
        arguments=", ".join(arguments),
        first=arguments[0],
    )
    namespace = {"_functions": {}, "_bound": bound, "_launch": launch, "_copied": row_major_copy}
    return compile_source(source, f"<adjoint run {kernel.name}>", namespace)[kernel.name]
