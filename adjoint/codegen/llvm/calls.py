"""The arguments of compiled loops: one table for each call, created in less than a microsecond.

The table contains the address of a layout, then the address of each array, and then the scalars. A layout consists of
integers that all calls for arrays with the same shapes and strides share.
If a call does little work, a built-in function creates its table.
"""

from __future__ import annotations

import functools
import itertools
import struct
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy
from numpy import ndarray

from ..._runtime.forks import compile_source
from ...kernels.runtime.addresses import AFTER_HEAD, BEFORE_BYTES
from ...kernels.runtime.costs import PARALLEL_BYTES, WHOLE_BYTES
from ...kernels.runtime.layout import row_major_copy
from ..observed_kernels import KERNELS
from ..plans import Launch, Memory, Plan, empty, new_flag
from .atomics import call_address
from .compilation import CompiledFunction, character, in_numbers, takes_table
from .external import NONE, apart, built_in, error_raised, float_of, function_of_python, new_float, new_reference
from .language import *
from .launch import launch
from .launch import loops as launched
from .workers import run_rows

ARRAYS_AT = 1
"""The position of the arrays in the table, after the address of the layout."""


@loops(noalias=False)
def elements_at(table: Pointer[i64], number: Int) -> Int:
    """Return the address of the elements of an array object in the table."""
    return as_pointer(table[ARRAYS_AT + number] + AFTER_HEAD, i64)[0]


@loops(explicit=True, plain=True)
def array_at(table: Pointer[i64], number: Int, T: Static) -> Any:
    """Return a pointer to the elements, of type `T`, of an array in the table."""
    return as_pointer(elements_at(table, number), T)


LONGEST = 64
"""The number of words in the longest table that a built-in function creates."""

REFUSED = id(NotImplemented)

integer_of = function_of_python("PyLong_AsUnsignedLongLongMask", i64, i64)
new_integer = function_of_python("PyLong_FromLongLong", i64, i64)
forget = function_of_python("PyErr_Clear", None)

OBJECT, PLACE, INTEGER, FLOAT = map(ord, "oPqd")
"""How an argument enters a table: as the object itself, as the address of its elements (or the integer that it is), or as a
number. The last three are characters of `struct`."""

CALL = Struct("address layout begin count rows result")
"""A call of the machine code at an address for `rows` rows. The entries in the table of `count` arguments `begin` at 1 after the
address of a layout, or at 0. Their kinds follow this data. If `rows` is -1, the range follows the arguments, and errors are
raised. Otherwise the call returns NotImplemented if a scalar is not a number. `result`: the kind of the number with which the
table begins after the call, or OBJECT."""


@loops(noalias=False, explicit=True, plain=True)
def run_table(own: Int, objects: Pointer[i64], given: Int) -> i64:
    """Call a kernel with a table of the given arguments. `own` is an array with a `CALL`."""
    data = as_pointer(as_pointer(own, i64)[AFTER_HEAD // 8], i64)
    told = fields(data, CALL)
    table = local(i64, LONGEST)
    table[0] = told.layout
    for k in range(told.count):
        kind = data[CALL.size + k]
        place = table + (told.begin + k)
        if kind == OBJECT:
            place[0] = objects[k]
        elif kind == FLOAT:
            cast_pointer(place, f64)[0] = float_of(objects[k])
        elif kind == PLACE and as_pointer(objects[k], i64)[AFTER_HEAD // 8 - 1] != id(int):
            place[0] = as_pointer(objects[k], i64)[AFTER_HEAD // 8]
        else:
            place[0] = integer_of(objects[k])
    start, stop = i64(0), told.rows
    if told.rows < 0:
        start = integer_of(objects[told.count])
        stop = integer_of(objects[told.count + 1])
    if error_raised() != 0:
        if told.rows < 0:
            return i64(0)
        forget()
        return new_reference(REFUSED)
    call_address(told.address, table, start, stop)
    if told.result == FLOAT:
        return new_float(cast_pointer(table, f64)[0])
    if told.result == INTEGER:
        return new_integer(table[0])
    return new_reference(NONE)


def _built_in(name: str, kinds: Sequence[int], **call: int) -> Any:
    """Return a built-in function that makes a `CALL`."""
    told = numpy.array([*CALL.pack(count=len(kinds), **call), *kinds], numpy.int64)
    return built_in(name, run_table.compiled().code.address, told)


def of_arguments(function: CompiledFunction, rows: int = -1) -> Any:
    """Return a built-in function that calls a kernel with its arguments, which may be arrays in place of addresses.

    With `rows`, it takes no range, and runs this many rows.
    """
    kinds = [ord(character(each)) for each in function.parameters[:-2]]
    result = OBJECT if function.result is None else ord(character(function.result))
    return _built_in(function.code.name, kinds, address=function.of_table, layout=0, begin=0, rows=rows, result=result)


MOST_ARRAYS = 12
"""The maximum number of arrays of a call in a native run."""

_IN_RUNS = Struct("address rows row_bytes words arrays of_objects threads shared")
"""What `run_call` reads, followed by the words of the table, and by the positions of the arrays in it. `of_objects`: whether the
table contains array objects in place of addresses of elements."""

_run_rows = apart(run_rows)


@loops(noalias=False, plain=True, brief=True)
def run_call(
    words: Pointer[i64], a: Int, b: Int, c: Int, d: Int, e: Int, f: Int, g: Int, h: Int, i: Int, j: Int, k: Int, l: Int
) -> None:
    """Make a call in a native run, for these addresses of elements. `words`: see `_IN_RUNS`."""
    told, given = fields(words, _IN_RUNS), words + _IN_RUNS.size
    elements, table = local(i64, MOST_ARRAYS), local(i64, LONGEST)
    elements[0], elements[1], elements[2], elements[3], elements[4], elements[5] = a, b, c, d, e, f
    elements[6], elements[7], elements[8], elements[9], elements[10], elements[11] = g, h, i, j, k, l
    for n in rolled(told.words):
        table[n] = given[n]
    for n in rolled(told.arrays):
        place = table + given[told.words + n]
        place[0] = elements[n]
        if told.of_objects != 0:
            place[0] = as_integer(elements + n) - AFTER_HEAD  # where an array object would begin
    if told.threads == 1 or told.rows * told.row_bytes < PARALLEL_BYTES:
        call_address(told.address, table, i64(0), told.rows)
    else:
        shared = as_pointer(told.shared, i64)
        _run_rows(told.address, shared, as_integer(table), i64(0), told.rows, told.row_bytes, told.threads)


def launch_in_run(
    name: str, code: int, rows: int, row_bytes: int, table: Sequence[int], positions: Sequence[int], kept: Any
) -> Any:
    """Return the launch of the machine code `code`, which takes a table and a range of rows, in a native run.

    `positions`: the positions of arrays in the table. `kept`: a `NativeCall` if the table contains array objects, or the arrays
    to which other words point. Return NotImplemented if there is too much work for a native run.
    """
    if len(positions) > MOST_ARRAYS or len(table) > LONGEST or rows * row_bytes > WHOLE_BYTES:
        return NotImplemented

    def words(threads: int, shared: int) -> list[int]:
        told = _IN_RUNS.pack(
            address=code, rows=rows, row_bytes=row_bytes, words=len(table), arrays=len(positions),
            of_objects=isinstance(kept, NativeCall), threads=threads, shared=shared,
        )  # fmt: skip
        return [*told, *table, *positions]

    size = _IN_RUNS.size + len(table) + len(positions)
    work = rows * row_bytes
    return Launch(name, run_call.compiled().code.address, size, work, work >= PARALLEL_BYTES, words, kept)


@dataclass(slots=True)
class NativeCall:
    """A call of compiled loops for arrays of certain shapes, strides and dtypes.

    It holds all data that does not depend on the contents of the arrays.

    `function` takes a table and a range of `rows`. Each row touches `row_bytes` bytes. The table contains the `layout`, then the
    arrays, the results, and the scalars. `arrays` are the names of the parameters with the arrays, which must be row-major;
    arrays in `copied` are copied if they are not. `scalars` are Python expressions of parameters and `constants`. `character` is
    their type for `struct`.

    `results`: the arrays to allocate and return. An entry is None if the result is not requested. `sums`: the results that are
    sums over rows. Their initial values are 0, in one array with `blocks` parts. The table contains the address of this array for
    each sum, and again after the results.

    A `function` without a table takes the results, then the arrays, and then the numbers and constant arrays in `layout`.

    `flagged`: whether a `new_flag` follows the arrays. If the loops write 1 to it, the plan returns NotImplemented.
    """

    function: Any
    rows: int
    row_bytes: int
    layout: Any
    arrays: Sequence[str]
    results: Sequence[Memory | None]
    scalars: Sequence[str] = ()
    character: str = "d"
    constants: dict[str, Any] = field(default_factory=dict)
    copied: Sequence[str] = ()
    sums: Sequence[int] = ()
    blocks: int = 1
    flagged: bool = False

    def __post_init__(self) -> None:
        if self.takes_table:
            self.layout = array("q", self.layout)

    def _alone(self) -> Any:
        """Return a built-in function that runs all rows, or None for much work. The function holds the interpreter lock."""
        kinds = [OBJECT] * self._places + [ord(self.character)] * len(self.scalars)
        if self.rows * self.row_bytes >= PARALLEL_BYTES or ARRAYS_AT + len(kinds) > LONGEST:
            return None
        if not self.takes_table:
            return of_arguments(self.function, self.rows)
        layout, _ = self.layout.buffer_info()
        name, code = self.function.code.name, self.function.code.address
        return _built_in(name, kinds, address=code, layout=layout, begin=1, rows=self.rows, result=OBJECT)

    def plan(self, parameters: Sequence[str]) -> Plan:
        """Return the plan of a kernel with these parameters, which refuses scalars that are not numbers."""
        memory = {f"r{n}": item for n, item in enumerate(self.results) if item is not None and n not in self.sums}
        if self.sums:
            memory["total"] = self.total
        constants, scalars, pack = self.constants, self.scalars, None
        if self.takes_table:
            pack = struct.Struct(f"{ARRAYS_AT + self._places}q{len(scalars)}{self.character}").pack
        else:
            constants = {f"c{k}": number for k, number in enumerate(in_numbers(tuple(self.layout)))}
            scalars = tuple(constants)
        alone = self._alone()
        source = _call_source(
            tuple(parameters), tuple(self.arrays), tuple(scalars), tuple(self.copied),
            tuple([item is not None for item in self.results]), tuple(self.sums), self.blocks > 1,
            alone is not None, tuple(constants), self.flagged, self.takes_table,
        )  # fmt: skip
        made = [item.allocator(numpy.zeros if name == "total" else numpy.empty) for name, item in memory.items()]
        known = (self.function, self.rows, self.row_bytes, pack, self.layout, alone, *constants.values(), *made)
        run, into = _maker(source)(*known)
        return Plan(self.results, run=run, into=into, call=self, names=parameters)

    @property
    def takes_table(self) -> bool:
        """Whether the function takes a table."""
        return takes_table(self.function.parameters)

    def in_order(self, arrays: Sequence[Any], written: Sequence[Any], *more: Any) -> list[Any]:
        """Return what belongs to the arrays, to the results, and to the other memory, in the order of the arguments."""
        return [*arrays, *written, *more] if self.takes_table else [*written, *arrays, *more]

    @property
    def _places(self) -> int:
        """The number of arrays in the table."""
        written = len(self.results) - self.results.count(None)
        return len(self.arrays) + written + bool(self.sums) + self.flagged

    @property
    def total(self) -> Memory:
        """The memory of the sums, which the loops add to."""
        shape, dtype, _ = self.results[self.sums[0]]  # type: ignore[misc]
        return Memory((self.blocks, len(self.sums), *shape), dtype)

    def in_run(self, given: dict[str, Any]) -> Any:
        """Return the launch of the call in a native run, with arrays for results, or NotImplemented."""
        if not self.takes_table:
            n, code = self._places, self.function.code
            types = map(character, self.function.parameters[n:-2])
            words = [
                struct.unpack("q", struct.pack(*each))[0]
                for each in zip(types, in_numbers(tuple(self.layout)), strict=True)
            ]
            return launch_in_run(
                code.name, self.function.of_table, self.rows, self.row_bytes, [0] * n + words, range(n), self.layout
            )
        numbers = [eval(each, self.constants, given) for each in self.scalars]
        scalars = struct.unpack(f"{len(numbers)}q", struct.pack(f"{len(numbers)}{self.character}", *numbers))
        words = [self.layout.buffer_info()[0], *[0] * self._places, *scalars]
        positions, code = range(ARRAYS_AT, ARRAYS_AT + self._places), self.function.code
        return launch_in_run(code.name, code.address, self.rows, self.row_bytes, words, positions, self)


@functools.cache
def _call_source(
    parameters: tuple[str, ...],
    arrays: tuple[str, ...],
    scalars: tuple[str, ...],
    copied: tuple[str, ...],
    asked: tuple[bool, ...],
    sums: tuple[int, ...],
    in_blocks: bool,
    alone: bool,
    constants: tuple[str, ...],
    flagged: bool,
    in_table: bool,
) -> str:
    """Return the source of a function that creates the functions of a plan with this structure."""
    results = [f"r{number}" for number in range(len(asked))]
    written = ["total" if number in sums else results[number] for number, wanted in enumerate(asked) if wanted]
    named = [*arrays, *written] if in_table else [*written, *arrays]
    named += ["total"] * bool(sums) + ["flag"] * flagged
    table = f"pack({', '.join(['layout', *[f'id({name})' for name in named], *scalars])})"
    added = "added(total, {})" if in_blocks else "total[0, {}].copy()"
    copies = [f"{name} = row_major({name})" for name in copied]
    total = ["total = new_total()"] * bool(sums)
    allocated = [name for name in written if name != "total"]
    launched = [
        "try:",
        f"    table = {table}",
        "except (OverflowError, struct_error):",
        "    return NotImplemented",
        "launch(function, rows, row_bytes, id(table) + BEFORE_BYTES)",
    ]
    if not in_table:
        launched = [f"launch(function, rows, row_bytes, {', '.join([*named, *scalars])})"]
    if alone:
        launched = [
            "if KERNELS.observers:",
            *[f"    {line}" for line in launched],
            f"elif alone({', '.join([*named, *scalars])}) is NotImplemented:",
            "    return NotImplemented",
        ]
    if flagged:
        launched = ["flag = new_flag()", *launched, "if flag[0]:", "    return NotImplemented"]
    run = [
        *copies,
        *total,
        *[f"{name} = new_{name}()" for name in allocated],
        *launched,
        *[f"r{number} = {added.format(order)}" for order, number in enumerate(sums)],
        f"return {', '.join([name if wanted else 'None' for name, wanted in zip(results, asked, strict=True)])}",
    ]
    into = [
        f"{', '.join(results)}, = out",
        *copies,
        *total,
        *launched,
        *[f"r{number}[...] = {added.format(order)}" for order, number in enumerate(sums)],
    ]
    known = [*constants, *[f"new_{name}" for name in [*allocated, *["total"] * bool(sums)]]]
    given = ", ".join(parameters)
    return "\n".join([
        f"def make({', '.join(['function', 'rows', 'row_bytes', 'pack', 'words', 'alone', *known])}):",
        *["    layout, _ = words.buffer_info()"] * in_table,
        f"    def run({given}):",
        *[f"        {line}" for line in run],
        f"    def into(out, {given}):",
        *[f"        {line}" for line in into],
        "    run.words = into.words = words",
        "    return run, into",
        "",
    ])  # fmt: skip


_numbers = itertools.count()


@functools.cache
def _maker(source: str) -> Callable[..., tuple[Callable[..., Any], Callable[..., Any]]]:
    namespace: dict[str, Any] = {
        "struct_error": struct.error, "launch": launch, "row_major": row_major_copy, "added": added, "KERNELS": KERNELS,
        "BEFORE_BYTES": BEFORE_BYTES, "new_flag": new_flag,
    }  # fmt: skip
    return compile_source(source, f"<adjoint native call {next(_numbers)}>", namespace)["make"]


def not_row_major(**arrays: ndarray | None) -> list[str]:
    """Return the names of the arrays that a call of loops for row-major arrays must copy first."""
    return [name for name, item in arrays.items() if item is not None and not (item.ndim and item.flags.c_contiguous)]


@launched(plain=True, T=FLOATS)  # type: ignore[untyped-decorator]
def add_blocks(out: Pointer[T], total: Pointer[T], blocks: Int, step: Int, begin: Int, start: Int, stop: Int) -> None:
    """Add the sums of blocks, which are `step` elements apart, in float64."""
    for i in range(start, stop):
        found = f64(total[begin + i])
        for block in range(1, blocks):
            found += f64(total[block * step + begin + i])
        out[i] = T(found)


def added(total: ndarray, order: int) -> ndarray:
    """Return one of several sums, by adding the sums of its blocks."""
    out = empty(total.shape[2:], total.dtype)
    step = total.shape[1] * out.size
    add_blocks.run(out.size, len(total) * out.itemsize, out, total, len(total), step, order * out.size)
    return out


@loops(explicit=True, plain=True)
def read_data(objects: Pointer[Pointer[i64]], out: Pointer[i64], n: Int, words: Int) -> None:
    """Read this many words after the headers of objects."""
    for i in range(n):
        out[i] = objects[i][words]


def addresses(arrays: Sequence[ndarray]) -> ndarray:
    """Return the `address` of each array, as an array of int64. The arrays must stay alive while the addresses are used."""
    objects = numpy.fromiter(map(id, arrays), numpy.int64, len(arrays))
    found = numpy.empty_like(objects)
    read_data.compiled()(address(objects), address(found), len(arrays), AFTER_HEAD // 8)
    return found
