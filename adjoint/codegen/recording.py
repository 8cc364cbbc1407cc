"""Recording of kernels: which compiled loops a kernel launches for arrays of certain shapes, strides and dtypes.

A kernel with the decorator `recordable` is an ordinary function of arrays. A `Recorder` calls it with *outlines*: arrays that
have shapes, strides and dtypes, but no elements. They can be reshaped, sliced and passed on. The loops that the kernel
launches do not run. The recorder lists them, with the places of their arrays, and `compile` calls them in native runs.

    @recordable
    def embedding(weight, indices):
        if out_of_bounds(indices, len(weight)) is not None:
            raise IndexError("index out of range in self")
        return take_rows(weight, indices)

Such a kernel computes only by

- kernels that return a `Plan` with a `NativeCall`, and row programs;
- compiled forms that are `recordable` too. They launch loops by `kernel.run` or `launch`, and allocate memory by `empty` and
  `zeros` of `plans`;
- conditions on elements. `SHAPES.recorder` is not None while a kernel is recorded. Its method `expect` then records loops that
  write 1 to a flag unless the condition has the expected value. A native run that finds 1 calls the kernel in Python instead.
  A kernel tests its conditions before it changes an argument.

Everything else that reads or writes an outline raises `Unrecorded`, and programs call the kernel from Python.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy
from numpy import ndarray

from ..kernels.runtime.addresses import address
from .acceleration import LOOPS, SHAPES
from .plans import Launch, Memory, Plan, empty, returned, zeros

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Unrecorded(Exception):
    """The error for a computation on outlines that is no launch of compiled loops."""


def recordable(function: _Function) -> _Function:
    """Declare that a kernel or a compiled form computes only by loops that can be recorded."""
    function.recordable = True  # type: ignore[attr-defined]
    return function


def unchanged(array: ndarray) -> ndarray:
    """Return an array after making it read-only. Launches may read such an array, which is the same in every call."""
    array.flags.writeable = False
    return array


def keeping(owner: Any) -> Any:
    """Return an object that owns memory to which the arguments of launches point. A recording keeps it alive."""
    if SHAPES.recorder is not None:
        SHAPES.recorder.kept.append(owner)
    return owner


class Outline(ndarray):
    """An array in a recording. It has memory, but no elements."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        """Record the compiled loops of an elementwise function of arrays of one dtype and Python's numbers."""
        if method != "__call__" or options:
            raise Unrecorded
        return SHAPES.recorder.elementwise(ufunc, inputs, out and out[0])

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Call functions that read no elements, and record copies."""
        if function is numpy.copyto:
            return args[0].__setitem__(..., *args[1:], **kwargs)
        if function in _MAKING and len(args) == 1 and args[0].flags.c_contiguous and kwargs.keys() <= {"dtype"}:
            return _MAKING[function](args[0].shape, kwargs.get("dtype") or args[0].dtype)
        if function not in _VIEWING:
            raise Unrecorded
        return super().__array_function__(function, types, args, kwargs)

    def reshape(self, *shape: Any, **options: Any) -> Any:
        """Return the array with another shape, or a copy."""
        found = super().reshape(*shape, **options)
        return found if numpy.may_share_memory(found, self) else self.in_row_major().reshape(*shape)

    def astype(self, dtype: Any, *_: Any, copy: Any = True, **__: Any) -> Any:
        """Return the array itself, if it has the dtype, or record a conversion or a copy."""
        if self.dtype == dtype:
            return self.copy() if copy else self
        return SHAPES.recorder.computed("memory.copying.convert", self, numpy.dtype(dtype))

    def __getitem__(self, key: Any) -> Any:
        """Return a view."""
        found = super().__getitem__(key)
        return found if isinstance(found, Outline) and numpy.may_share_memory(found, self) else self.refused()

    def __setitem__(self, key: Any, value: Any) -> None:
        """Record that elements are copied to the array, or that a number is written to all elements of a part."""
        target = self if key is ... else super().__getitem__(key)
        if not target.size:
            return
        if isinstance(value, ndarray):
            SHAPES.recorder.computed("memory.copying.copy_into", target, value)
        else:
            target.fill(value)

    def fill(self, value: Any) -> None:
        """Record that all elements become a number."""
        if not isinstance(value, (int, float, numpy.generic)) and (isinstance(value, Outline) or numpy.ndim(value)):
            raise Unrecorded
        one = self if self.flags.c_contiguous else SHAPES.recorder.outline((1,) * self.ndim, self.dtype)
        bits = int.from_bytes(numpy.array(value, self.dtype).tobytes(), "little", signed=True)
        SHAPES.recorder.computed("memory.copying.fill", one, bits)
        if one is not self:
            SHAPES.recorder.computed("memory.copying.copy_into", self, one)

    def copy(self, order: Any = "C") -> Any:
        """Return a row-major copy."""
        return SHAPES.recorder.copied(self) if order == "C" else self.refused()

    in_row_major = copy

    def refused(self, *_: Any, **__: Any) -> Any:
        """Refuse to read or write elements."""
        raise Unrecorded


_MAKING: dict[Any, Any] = {numpy.empty_like: empty, numpy.zeros_like: zeros}
_VIEWING = frozenset(
    (numpy.may_share_memory, numpy.shares_memory, numpy.moveaxis, numpy.broadcast_to, numpy.shape, numpy.ndim, numpy.size)
)  # fmt: skip
_FREE = "shape strides dtype ndim size itemsize nbytes flags setflags base T mT real transpose swapaxes view squeeze diagonal"
_READING = "__bool__ __int__ __float__ __iter__".split()
for _name in dir(ndarray):
    if _name in _READING or not (_name.startswith("__") or _name in _FREE.split() or _name in vars(Outline)):
        setattr(Outline, _name, Outline.refused)


class Recorded(NamedTuple):
    """A launch in a recording. `arrays`: the numbers of the memories of its arrays, and the offsets in them in bytes.

    `tests`: whether it only tests a condition.
    """

    launch: Launch
    arrays: list[tuple[int, int]]
    tests: bool


class Recorder:
    """Records the launches of a kernel in `launches`.

    `memories`: the memories of outlines, in the order of their creation. `flag`: the number of the memory into which conditions
    write, or None. `may_raise`: whether the kernel may raise an error then. `kept`: constant arrays that the launches read, and
    their owners.
    """

    def __init__(self) -> None:
        self.memories: list[ndarray] = []
        self.launches: list[Recorded] = []
        self.flag: int | None = None
        self.may_raise = self.tests = False
        self.kept: list[Any] = []

    def record(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Return the result of a kernel for these outlines, or raise `Unrecorded`."""
        before, SHAPES.recorder, SHAPES.special = SHAPES.recorder, self, True
        try:
            return function(*args, **options)
        finally:
            SHAPES.recorder, SHAPES.special = before, before is not None

    # --- arrays -----------------------------------------------------------------------------------------------------------

    def outline(self, shape: Sequence[int], dtype: Any, strides: Sequence[int] | None = None) -> Any:
        """Return a new outline. The only one without elements is an empty vector, which launches do not read."""
        item = numpy.dtype(dtype).itemsize
        if (0 in shape and tuple(shape) != (0,)) or any(step < 0 for step in strides or ()):
            raise Unrecorded
        if strides is None:
            extent = math.prod(shape)
        else:
            extent = 1 + sum((size - 1) * step for size, step in zip(shape, strides, strict=True)) // item
        self.memories.append(numpy.zeros(extent * item, numpy.uint8))
        return Outline(tuple(shape), dtype, self.memories[-1], 0, strides)

    def empty(self, memory: Memory) -> Any:
        """Return a new outline for a description."""
        return memory.empty(lambda shape, dtype: self.outline((shape,) if isinstance(shape, int) else shape, dtype))

    def zeros(self, memory: Memory) -> Any:
        """Return a new outline, and record that its elements become zeros."""
        made = self.empty(memory)
        (made if memory.order is None else made.transpose(memory.order)).fill(0)
        return made

    def copied(self, array: Any) -> Any:
        """Return a new outline, and record that elements are copied to it."""
        made = self.outline(array.shape, array.dtype)
        self.computed("memory.copying.copy_into", made, array)
        return made

    def computed(self, path: str, *args: Any) -> Any:
        """Return the result of a compiled form."""
        found = LOOPS.run(path, *args)
        if found is NotImplemented:
            raise Unrecorded
        return found

    def elementwise(self, ufunc: Any, inputs: Sequence[Any], out: Any) -> Any:
        """Return the result of a function of arrays of one dtype and Python's numbers."""
        from .compiled_pointwise import has_numpy_bits
        from .compiled_ufuncs import large

        first = next(each for each in inputs if isinstance(each, Outline))
        arrays = []
        for each in inputs:
            if not isinstance(each, ndarray) or (not each.ndim and self.place(each) is None):
                number, each = each, self.outline((1,) * first.ndim, first.dtype)
                each.fill(number)
            arrays.append(each)
        form = large(ufunc)
        if form is None or first.dtype.kind not in form.kinds or any(each.dtype != first.dtype for each in arrays):
            raise Unrecorded
        if not has_numpy_bits(form.compiled.tree):
            raise Unrecorded
        found = form.compiled.run(arrays, (), first.dtype, first.dtype, out)
        return self.refuse() if found is NotImplemented else found

    def refuse(self) -> Any:
        """Raise the error."""
        raise Unrecorded

    def place(self, array: ndarray) -> tuple[int, int] | None:
        """Return the number of the memory in which an array lies, and its offset, or None."""
        at = address(array)
        for number, memory in enumerate(self.memories):
            begin = address(memory)
            if begin <= at < begin + max(memory.nbytes, 1):
                return number, at - begin
        return None

    # --- launches -----------------------------------------------------------------------------------------------------------

    def launch(self, function: Any, rows: int, row_bytes: int, *arguments: Any) -> None:
        """Record a launch with the arguments of the function `launch`."""
        from .llvm.calls import launch_in_run
        from .llvm.compilation import character, takes_table
        from .llvm.element_types import PointerType

        if takes_table(function.parameters):
            raise Unrecorded
        words: list[int] = []
        positions, arrays = [], []
        for type_, value in zip(function.parameters[:-2], arguments, strict=True):
            if not isinstance(type_, PointerType):
                words += struct.unpack("q", struct.pack(character(type_), value))
                continue
            place = self.place(value) if isinstance(value, ndarray) else None
            if place is not None:
                positions.append(len(words))
                arrays.append(place)
            elif not isinstance(value, ndarray) or value.flags.writeable:
                raise Unrecorded
            else:
                self.kept.append(value)
            words.append(0 if place else address(value))
        self.add(
            launch_in_run(function.code.name, function.of_table, rows, row_bytes, words, positions, self.kept), arrays
        )

    def run(self, plan: Plan, args: Sequence[Any], out: Any = None) -> Any:
        """Record the `NativeCall` of a plan, or the loops of its `recordable` function, and return the results."""
        from .llvm.calls import added

        call = plan.call
        if call is None and getattr(plan.into, "recordable", False):
            made: list[Any] = [item and self.empty(item) for item in plan.results]
            plan.into(made, *args)
            return returned(made)
        if call is None and not getattr(plan.run, "recordable", False):
            raise Unrecorded
        if call is None:
            return plan.run(*args)
        given = dict(zip(plan.names, args, strict=True))
        arrays = [given[name].in_row_major() if name in call.copied else given[name] for name in call.arrays]
        total = [self.zeros(call.total)] if call.sums else []
        results = [*(out if isinstance(out, tuple) else [out] * (out is not None))] or [
            item and number not in call.sums and self.empty(item) for number, item in enumerate(call.results)
        ]
        written = [total[0] if number in call.sums else item for number, item in enumerate(results) if item is not None]
        flag = [self.new_flag()] if call.flagged else []
        places = [self.place(each) for each in call.in_order(arrays, written, *total, *flag)]
        self.add(call.in_run(given), places)
        for order, number in enumerate(call.sums):
            results[number] = added(total[0], order)
        return returned(results)

    def expect(self, value: Any, path: str, *args: Any) -> Any:
        """Return the expected `value` of a condition. Otherwise, the compiled form writes 1 to its first argument, the flag."""
        self.tests = True
        self.computed(path, self.new_flag(), *args)
        self.tests = False
        return value

    def new_flag(self, raises: bool = True) -> Any:
        """Return the outline of the flag."""
        self.may_raise |= raises
        if self.flag is None:
            self.flag = len(self.memories)
            self.memories.append(numpy.zeros(8, numpy.uint8))
        return Outline((1,), numpy.int64, self.memories[self.flag])

    def add(self, launch: Any, arrays: Sequence[tuple[int, int] | None]) -> None:
        """Append a launch."""
        if launch is NotImplemented or None in arrays:
            raise Unrecorded
        self.launches.append(Recorded(launch, [*arrays], self.tests))  # type: ignore[list-item]
