"""The arguments of compiled loops: one table for each call, created in less than a microsecond.

The table contains the address of a layout, then the address of each array, and then the scalars. A layout consists of
integers that all calls for arrays with the same shapes and strides share.

The shapes, strides and dtypes of a `NativeCall` are known when it is planned, so only the arrays and scalars are
missing. If a call does little work, a built-in function creates its table.

The addresses of many arrays are determined together.
"""

from __future__ import annotations

import functools
import itertools
import struct
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Any

import numpy
from numpy import ndarray

from ..._runtime.forks import code_of
from ...kernels.runtime.addresses import AFTER_HEAD, IN_OBJECTS
from ..observed_kernels import KERNELS
from ..plans import Memory, Plan, compiled
from .atomics import call_address
from .built_in import NONE, built_in, error_raised, float_of, function_of_python, new_reference
from .language import Int, Pointer, Static, address, as_integer, as_pointer, f64, i64, local, loops
from .launch import PARALLEL_BYTES, launch

BEFORE_BYTES = bytes.__basicsize__ - 1
"""The offset of the elements in a bytes object on Python versions that have this object layout (`IN_OBJECTS`)."""

ARRAYS_AT = 1
"""The position of the arrays in the table, after the address of the layout."""

place_of = id if IN_OBJECTS else address
"""Return the table entry of an array.

The entry is either the array object, in which loops find the address, or the address itself.
"""


@loops(noalias=False)
def elements_at(table: Pointer[i64], number: Int) -> Int:
    """Return the address of the elements of an array in the table."""
    place = table[ARRAYS_AT + number]
    if IN_OBJECTS:
        return as_pointer(place + AFTER_HEAD, i64)[0]
    return place


@loops(explicit=True, plain=True)
def array_at(table: Pointer[i64], number: Int, T: Static) -> Any:
    """Return a pointer to the elements, of type `T`, of an array in the table."""
    return as_pointer(elements_at(table, number), T)


LONGEST = 64
"""The number of words in the longest table that a built-in function creates."""

REFUSED = id(NotImplemented)

integer_of = function_of_python("PyLong_AsLongLong", i64, i64)
forget = function_of_python("PyErr_Clear", None)


@loops(noalias=False, explicit=True, plain=True)
def run_table(own: Int, objects: Pointer[i64], given: Int) -> i64:
    """Call a kernel for all of its rows, with the given arrays and scalars.

    `own` is an array with the address of the kernel, the layout, the number of arrays, whether scalars are
    floating-point numbers, and the number of rows. Return NotImplemented if a scalar is not a number.
    """
    told = as_pointer(as_pointer(own, i64)[AFTER_HEAD // 8], i64)
    table = local(i64, LONGEST)
    table[0] = told[1]
    arrays = told[2]
    for k in range(arrays):
        table[ARRAYS_AT + k] = objects[k]
    for k in range(arrays, given):
        if told[3] != 0:
            as_pointer(as_integer(table + (ARRAYS_AT + k)), f64)[0] = float_of(objects[k])
        else:
            table[ARRAYS_AT + k] = integer_of(objects[k])
    if given > arrays and error_raised() != 0:
        forget()
        return new_reference(REFUSED)
    call_address(told[0], table, i64(0), told[4])
    return new_reference(NONE)


class CallTables:
    """The tables of all calls with one layout. `arrays` and `scalars` are numbers, and `character` ("d" or "q") is a type."""

    def __init__(self, layout: Sequence[int], arrays: int, scalars: int, character: str) -> None:
        self._layout = array("q", layout)
        self.layout: int = self._layout.buffer_info()[0]
        self.pack = Struct(f"{ARRAYS_AT + arrays}q{scalars}{character}").pack
        self._kind = arrays, scalars, character

    def built_in(self, function: Any, rows: int, row_bytes: int) -> Any:
        """Return a built-in function that runs all rows, or None for much work. The function holds the interpreter lock."""
        arrays, scalars, character = self._kind
        if not IN_OBJECTS or rows * row_bytes >= PARALLEL_BYTES or ARRAYS_AT + arrays + scalars > LONGEST:
            return None
        told = [function.code.address, self.layout, arrays, int(character == "d"), rows]
        return built_in(function.code.name, run_table.compiled().code.address, numpy.array(told, numpy.int64))

    def make(self, arrays: Sequence[ndarray], scalars: Sequence[Any]) -> Any:
        """Return a table, which must stay alive while it is used.

        Raises:
            struct.error: if a scalar has another type.
            OverflowError: if it is too large.
        """
        table = self.pack(self.layout, *map(place_of, arrays), *scalars)
        return table if IN_OBJECTS else array("q", table)

    def address(self, table: Any) -> int:
        """Return the address of a table that `make` has returned."""
        return id(table) + BEFORE_BYTES if IN_OBJECTS else table.buffer_info()[0]


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
    """

    function: Any
    rows: int
    row_bytes: int
    layout: Sequence[int]
    arrays: Sequence[str]
    results: Sequence[Memory | None]
    scalars: Sequence[str] = ()
    character: str = "d"
    constants: dict[str, Any] = field(default_factory=dict)
    copied: Sequence[str] = ()
    sums: Sequence[int] = ()
    blocks: int = 1

    def plan(self, parameters: Sequence[str]) -> Plan:
        """Return the plan of a kernel with these parameters.

        The plan's functions return NotImplemented if scalars are not numbers.
        """
        memory = {f"r{n}": item for n, item in enumerate(self.results) if item is not None and n not in self.sums}
        if self.sums:
            shape, dtype, _ = self.results[self.sums[0]]  # type: ignore[misc]
            memory["total"] = Memory((self.blocks, len(self.sums), *shape), dtype)
        written = len(self.results) - self.results.count(None) + bool(self.sums)
        tables = CallTables(self.layout, len(self.arrays) + written, len(self.scalars), self.character)
        alone = tables.built_in(self.function, self.rows, self.row_bytes)
        source = _call_source(
            tuple(parameters), tuple(self.arrays), tuple(self.scalars), tuple(self.copied),
            tuple([item is not None for item in self.results]), tuple(self.sums), self.blocks > 1,
            alone is not None, tuple(self.constants),
        )  # fmt: skip
        parts = [part for item in memory.values() for part in (item.shape, item.dtype)]
        known = (self.function, self.rows, self.row_bytes, tables, alone, *self.constants.values(), *parts)
        run, into = _maker(source)(*known)
        return Plan(self.results, run=run, into=into)


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
) -> str:
    """Return the source of a function that creates the functions of a plan with this structure."""
    results = [f"r{number}" for number in range(len(asked))]
    written = ["total" if number in sums else results[number] for number, wanted in enumerate(asked) if wanted]
    named = [*arrays, *written, *["total"] * bool(sums)]
    places = [f"id({name})" if IN_OBJECTS else f"address({name})" for name in named]
    table = f"pack({', '.join(['layout', *places, *scalars])})"
    if not IN_OBJECTS:
        table = f"array('q', {table})"
    where = f"id(table) + {BEFORE_BYTES}" if IN_OBJECTS else "table.buffer_info()[0]"
    added = "added(total, {})" if in_blocks else "total[0, {}].copy()"
    copies = [f"{name} = row_major({name})" for name in copied]
    total = ["total = zeros(shape_total, dtype_total)"] * bool(sums)
    allocated = [name for name in written if name != "total"]
    launched = [
        "try:",
        f"    table = {table}",
        "except (OverflowError, struct_error):",
        "    return NotImplemented",
        f"launch(function, rows, row_bytes, {where})",
    ]
    if alone:
        launched = [
            "if KERNELS.observers:",
            *[f"    {line}" for line in launched],
            f"elif alone({', '.join([*named, *scalars])}) is NotImplemented:",
            "    return NotImplemented",
        ]
    run = [
        *copies,
        *total,
        *[f"{name} = empty(shape_{name}, dtype_{name})" for name in allocated],
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
    known = [
        *constants,
        *[part for name in [*allocated, *["total"] * bool(sums)] for part in (f"shape_{name}", f"dtype_{name}")],
    ]
    given = ", ".join(parameters)
    return "\n".join([
        f"def make({', '.join(['function', 'rows', 'row_bytes', 'tables', 'alone', *known])}):",
        "    pack, layout = tables.pack, tables.layout",
        f"    def run({given}):",
        *[f"        {line}" for line in run],
        f"    def into(out, {given}):",
        *[f"        {line}" for line in into],
        "    run.tables = into.tables = tables",
        "    return run, into",
        "",
    ])  # fmt: skip


_numbers = itertools.count()


@functools.cache
def _maker(source: str) -> Callable[..., tuple[Callable[..., Any], Callable[..., Any]]]:
    namespace: dict[str, Any] = {
        "array": array, "struct_error": struct.error, "launch": launch, "address": address, "empty": numpy.empty,
        "zeros": numpy.zeros, "row_major": _row_major, "added": _added, "KERNELS": KERNELS,
    }  # fmt: skip
    exec(code_of(source, f"<adjoint native call {next(_numbers)}>"), namespace)
    return namespace["make"]


def not_row_major(**arrays: ndarray | None) -> list[str]:
    """Return the names of the arrays that a call of loops for row-major arrays must copy first."""
    return [name for name, item in arrays.items() if item is not None and not (item.ndim and item.flags.c_contiguous)]


_COPY = compiled("memory.copying.copy_into")


def _row_major(item: ndarray) -> ndarray:
    """Return a row-major copy."""
    copy = numpy.empty(item.shape, item.dtype)
    if _COPY.run(item.size, copy, item) is NotImplemented:
        numpy.copyto(copy, item)
    return copy


def _added(total: ndarray, order: int) -> ndarray:
    """Return one of several sums, by adding the sums of its blocks."""
    blocks = total[:, order]
    return blocks[0].copy() if len(blocks) == 1 else blocks.sum(0, numpy.float64).astype(total.dtype)


@loops(explicit=True, plain=True)
def read_data(objects: Pointer[Pointer[i64]], out: Pointer[i64], n: Int, words: Int) -> None:
    """Read this many words after the headers of objects."""
    for i in range(n):
        out[i] = objects[i][words]


def addresses(arrays: Sequence[ndarray]) -> ndarray:
    """Return the `address` of each array, as an array of int64. The arrays must stay alive while the addresses are used."""
    if not IN_OBJECTS:
        return numpy.array(list(map(address, arrays)), numpy.int64)
    objects = numpy.fromiter(map(id, arrays), numpy.int64, len(arrays))
    found = numpy.empty_like(objects)
    read_data.compiled()(address(objects), address(found), len(arrays), AFTER_HEAD // 8)
    return found
