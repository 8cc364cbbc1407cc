"""Native functions on objects: they test classes, layouts and identities, create tensors, and count changes.

The machine code reads the objects. NumPy's binary interface defines the words of array objects. The words of a tensor object that
store its attributes are found by means of a tensor with known attributes.
"""

from __future__ import annotations

import functools
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, repeat
from typing import Any

import numpy
from numpy import ndarray

from .._runtime.platform import ctypes
from ..codegen.acceleration import LOOPS
from ..codegen.llvm.compilation import Module
from ..codegen.llvm.element_types import PointerType
from ..codegen.llvm.external import (
    FALSE,
    NONE,
    TRUE,
    built_in,
    error_raised,
    function_of_python,
    new_float,
    new_reference,
)
from ..codegen.llvm.host import HOST
from ..codegen.llvm.language import Int, Pointer, Static, as_pointer, f32, f64, i32, i64, loops, unrolled
from ..codegen.llvm.values import CompilationError
from ..kernels.runtime.addresses import AFTER_HEAD, address
from ..tensor import Tensor, new_tensor, wrap

CLASS = AFTER_HEAD // 8 - 1
"""The position of the class in an object, in words."""

ELEMENTS = AFTER_HEAD // 8
NDIM, SHAPE, STRIDES, DTYPE = ELEMENTS + 1, ELEMENTS + 2, ELEMENTS + 3, ELEMENTS + 5
"""The positions of the fields of an array object, in words."""


VARIES = -(1 << 62)
"""In place of a size or a stride: any size of at least 2, or the stride of a contiguous array."""


class Fits:
    """Checks that the array of a tensor has the same layout as at the capture of the program.

    `dims`: the dimensions whose sizes may differ. An array with such dimensions must be contiguous.
    """

    def __init__(self, array: Any, dims: frozenset[int] = frozenset()) -> None:
        self.dtype, self.shape, self.strides, self.dims = array.dtype, array.shape, array.strides, dims
        self.ndim, self.sizes = array.ndim, [(dim, size) for dim, size in enumerate(array.shape) if dim not in dims]

    def __str__(self) -> str:
        if not self.dims:
            return f"{self.dtype.name}{list(self.shape)} with strides {self.strides}"
        sizes = dict(self.sizes)
        shape = ", ".join([str(sizes.get(dim, "2 or more")) for dim in range(self.ndim)])
        return f"contiguous {self.dtype.name}[{shape}]"

    def __call__(self, array: Any) -> bool:
        """Return whether an array has the same class, dtype, shape and strides, apart from the sizes that may differ."""
        if type(array) is not ndarray or array.dtype is not self.dtype:
            return False
        if not self.dims:
            return array.shape == self.shape and array.strides == self.strides
        shape = array.shape
        return (
            len(shape) == self.ndim
            and array.flags.c_contiguous
            and all(shape[dim] == size for dim, size in self.sizes)
            and all(shape[dim] > 1 for dim in self.dims)
        )

    @property
    def layout(self) -> list[int]:
        """Return the shape and the strides for `all_fit`."""
        shape = [VARIES if dim in self.dims else size for dim, size in enumerate(self.shape)]
        last = max(self.dims, default=0)
        return [*shape, *[VARIES if dim < last else step for dim, step in enumerate(self.strides)]]


@loops(noalias=False, explicit=True, plain=True)
def all_fit(
    own: Int, objects: Pointer[i64], given: Int, ARRAY: Static, BASE: Static, GRAD: Static, EDGE: Static, EXTRA: Static
) -> i64:
    """Return whether tensors and their arrays fit the numbers in `own`.

    The first number is the number of tensors. The second number is the number of tensors whose own arrays are tested. For the
    other tensors, the arrays of the gradients are tested. The third number is whether to test edges, bases and rare attributes.
    The first `given` tensors are the arguments. The others are always the same objects.
    """
    told = as_pointer(as_pointer(own, i64)[ELEMENTS], i64)
    count, tensors, whole, expected = told[0], told[1], told[2], told + 3
    for k in range(count):
        place = expected[0]
        if k < given:
            place = objects[k]
        if k >= tensors:
            place = as_pointer(place, i64)[GRAD]
        tensor = as_pointer(place, i64)
        if tensor[CLASS] != expected[1]:
            return new_reference(FALSE)
        if (whole != 0) & ((tensor[EDGE] != expected[2]) | (tensor[BASE] != NONE) | (tensor[EXTRA] != NONE)):
            return new_reference(FALSE)
        array = as_pointer(tensor[ARRAY], i64)
        ndim = expected[5]
        if (array[CLASS] != expected[3]) | (array[DTYPE] != expected[4]):
            return new_reference(FALSE)
        if i64(as_pointer(tensor[ARRAY] + 8 * NDIM, i32)[0]) != ndim:
            return new_reference(FALSE)
        shape, strides = as_pointer(array[SHAPE], i64), as_pointer(array[STRIDES], i64)
        for d in range(ndim):
            size, stride = expected[6 + d], expected[6 + ndim + d]
            if (size == VARIES) & (shape[d] > 1):
                size = shape[d]
            if stride == VARIES:
                stride = strides[d + 1] * shape[d + 1]
            if (shape[d] != size) | (strides[d] != stride):
                return new_reference(FALSE)
        expected = expected + (6 + 2 * ndim)
    return new_reference(TRUE)


@loops(noalias=False, explicit=True, plain=True)
def all_same(own: Int, objects: Pointer[i64], given: Int) -> i64:
    """Return whether the arguments are the elements of the array `own`."""
    array = as_pointer(own, i64)
    expected = as_pointer(array[ELEMENTS], i64)
    if as_pointer(array[SHAPE], i64)[0] != given:
        return new_reference(FALSE)
    for k in range(given):
        if objects[k] != expected[k]:
            return new_reference(FALSE)
    return new_reference(TRUE)


OF_CLASS, EMPTY, WITH_ITEM, WITH_KEYS, WITH_VALUES, WITH_ELEMENTS = range(6)
"""The kinds of conditions on an object: its class, its size of 0, an item or a missing item, its keys in order, its
values in order, its elements in order."""

FORMS = {
    "type({0}) is {1}": OF_CLASS,
    "not {0}": EMPTY,
    "{0}[{1}] is {2}": WITH_ITEM,
    "((t := {0}[{1}]) is {2} or (type(t) is {3} and t == {2}))": WITH_ITEM,
    "{1} not in {0}": WITH_ITEM,
    "tuple({0}) == {1}": WITH_KEYS,
    "{1}(*{0}.values())": WITH_VALUES,
    "{1}(*{0})": WITH_ELEMENTS,
}
"""The conditions that `all_unchanged` tests. Numbers and keys must be the same objects."""


def way_of(condition: str, objects: tuple[Any, ...]) -> tuple[int, int, int, int] | None:
    """Return the numbers of a condition for `all_unchanged`: the way, the object, a key or a size, and the expected value.

    Return None if `all_unchanged` cannot test the condition. The condition itself keeps the objects alive.
    """
    way, value, others = FORMS.get(condition), *(objects[:1] or (None,)), objects[1:]
    if way == OF_CLASS:
        return way, id(value), 0, id(others[0])
    if way == EMPTY and type(value) in (dict, OrderedDict):
        return way, id(value), 0, 0
    if way == WITH_ELEMENTS and type(value) is list and hasattr(others[0], "__self__"):
        return way, id(value), len(value), address(others[0].__self__)
    if way is None or type(value) is not dict:
        return None
    if way == WITH_KEYS:
        return way, id(value), len(value), id(others[0]) + tuple.__basicsize__
    if way == WITH_VALUES and hasattr(others[0], "__self__"):
        return way, id(value), len(value), address(others[0].__self__)
    if way == WITH_ITEM and type(others[0]) in (str, int):
        return way, id(value), id(others[0]), id(others[1]) if len(others) > 1 else 0
    return None


@loops(noalias=False, plain=True)
def all_unchanged(own: Int, objects: Pointer[i64], given: Int, VERSIONED: Static) -> i64:
    """Return whether objects satisfy the conditions in the array `own`.

    The array contains three words of scratch memory, the number of conditions, and for each condition four numbers and the
    last version of the dictionary that satisfied it.
    """
    work = as_pointer(as_pointer(own, i64)[ELEMENTS], i64)
    told = work + 4
    for _ in range(work[3]):
        way, value, key, expected = told[0], told[1], told[2], told[3]
        found = expected
        if way == OF_CLASS:
            found = as_pointer(value, i64)[CLASS]
        elif (way == EMPTY) | (way == WITH_ELEMENTS):
            if as_pointer(value, i64)[ELEMENTS] != key:  # the size
                return new_reference(FALSE)
            for k in range(key):
                if as_pointer(as_pointer(value, i64)[ELEMENTS + 1], i64)[k] != as_pointer(expected, i64)[k]:
                    return new_reference(FALSE)
        elif (VERSIONED == 0) | (as_pointer(value, i64)[ELEMENTS + 1] != told[4]):
            version = as_pointer(value, i64)[ELEMENTS + 1]
            if way == WITH_ITEM:
                found = item_of(value, key)
                if (found == 0) & (error_raised() != 0):
                    return 0
            elif as_pointer(value, i64)[ELEMENTS] != key:
                return new_reference(FALSE)
            else:
                work[0] = 0
                for k in range(key):
                    next_item(value, work, work + 1, work + 2)
                    if work[way - 2] != as_pointer(expected, i64)[k]:
                        return new_reference(FALSE)
            told[4] = version if found == expected else told[4]
        if found != expected:
            return new_reference(FALSE)
        told = told + 5
    return new_reference(TRUE)


item_of = function_of_python("PyDict_GetItemWithError", i64, i64, i64)
next_item = function_of_python("PyDict_Next", i32, i64, *[PointerType(i64)] * 3)


def keeping(ways: Sequence[tuple[int, int, int, int]]) -> Callable[[], bool] | None:
    """Return a native function that tests these conditions on objects, or None if that is impossible."""
    if not (ways and words()):
        return None
    numbers = numpy.array([0, 0, 0, len(ways), *chain(*[(*way, 0) for way in ways])], numpy.int64)
    return Deferred(partial(native, "all_unchanged", numbers))


def identical(objects: Iterable[Any]) -> Callable[..., bool]:
    """Return a function that tests whether its arguments are these objects, in this order."""
    held = numpy.fromiter(objects, object)
    if not words():
        return lambda *given: [*map(id, given)] == [*map(id, held)]
    return Deferred(partial(native, "all_same", held), held)


PROGRAMS = "programs of torch.compile"
"""The name under which failures of compilation are listed."""

ATTRIBUTES = ("_array", "_base", "_counter", "_edge", "_extra", "_grad")
"""The attributes that all tensors have."""


def words() -> dict[str, int]:
    """Return the positions of attributes in tensor objects, in words, or nothing if machine code cannot read objects."""
    return _places() if LOOPS.enabled and not LOOPS.has_given_up(PROGRAMS) else {}


@functools.cache
def _places() -> dict[str, int]:
    tensor, marks = new_tensor(), {name: object() for name in ATTRIBUTES}
    for name, mark in marks.items():
        setattr(tensor, name, mark)
    found = [*(ctypes.c_size_t * (Tensor.__basicsize__ // 8)).from_address(id(tensor))]
    places = {name: found.index(id(mark)) for name, mark in marks.items() if id(mark) in found}
    return places if len(places) == len(marks) else {}


def fitting(
    tensors: Sequence[Tensor], owners: Sequence[Tensor] = (), dims: Sequence[frozenset[int]] = (), *, whole: bool
) -> Callable[..., bool] | None:
    """Return a native function that tests whether tensors have these classes and layouts, or None if that is impossible.

    The function also tests the gradients of the tensors in `owners`. Its arguments take the place of the first tensors. It does
    not keep the other tensors alive. `dims`: for the first tensors, the dimensions whose sizes may differ. `whole`: whether it
    also tests that the tensors have the same edges, no bases and no rare attributes.
    """
    objects = [*tensors, *owners]
    count, tensors = len(tensors), [*tensors, *[each._grad for each in owners]]  # type: ignore[list-item]
    arrays = [tensor._array for tensor in tensors]
    if not words() or not all(type(array) is ndarray and array.dtype.isbuiltin == 1 for array in arrays):
        return None
    numbers = [
        number
        for place, tensor, array, free in zip(objects, tensors, arrays, chain(dims, repeat(frozenset())), strict=False)
        for number in (
            *(id(place), id(type(tensor)), id(tensor._edge), id(ndarray), id(array.dtype), array.ndim),
            *Fits(array, free).layout,
        )
    ]
    expected = numpy.array([len(objects), count, whole, *numbers], numpy.int64)
    return Deferred(partial(native, "all_fit", expected))


@loops(noalias=False, explicit=True, plain=True)
def new_on_array(own: Int, objects: Pointer[i64], given: Int, PLACES: Static) -> i64:
    """Create a tensor of the class `own` on an array."""
    made = new_object(own, 0)
    if made != 0:
        words = as_pointer(made, i64)
        words[PLACES[0]] = new_reference(objects[0])
        for k in unrolled(1, len(PLACES)):
            words[PLACES[k]] = new_reference(NONE)
    return made


new_object = function_of_python("PyType_GenericAlloc", i64, i64, i64)


@functools.cache
def tensor_maker() -> Callable[[ndarray], Tensor]:
    """Return a function like `wrap` that takes a fifth of the time, if new tensors are not recorded."""
    return Deferred(partial(native, "new_on_array", Tensor)) if words() else wrap


ONE = id(1)
element_of = function_of_python("PyList_GetItem", i64, i64, i64)
set_element = function_of_python("PyList_SetItem", i32, i64, i64, i64)
sum_of = function_of_python("PyNumber_Add", i64, i64, i64)


@loops(noalias=False, explicit=True, plain=True)
def elements_of(tensor: Int, ARRAY: Static) -> Int:
    """Return the address of the elements of a tensor object."""
    return as_pointer(as_pointer(tensor, i64)[ARRAY], i64)[ELEMENTS]


@loops(noalias=False, explicit=True, plain=True)
def count_steps(own: Int, objects: Pointer[i64], given: Int, T: Static, ARRAY: Static) -> i64:
    """Add 1 to equal step counts, and return the new count. Return None if the step counts are not equal."""
    first = as_pointer(elements_of(objects[0], ARRAY), T)[0]
    for k in range(given):
        if as_pointer(elements_of(objects[k], ARRAY), T)[0] != first:
            return new_reference(NONE)
    for k in range(given):
        as_pointer(elements_of(objects[k], ARRAY), T)[0] = first + T(1)
    return new_float(f64(first + T(1)))


@loops(noalias=False, explicit=True, plain=True)
def note(own: Int, objects: Pointer[i64], given: Int, COUNTER: Static) -> i64:
    """Count a change of tensors. The first argument describes the change."""
    return note_changes(objects[0], objects + 1, given - 1, COUNTER)


@loops(noalias=False, explicit=True, plain=True)
def note_changes(change: Int, tensors: Pointer[i64], number: Int, COUNTER: Static) -> i64:
    """Count a change of each of the tensors. Return None, or 0 after an error."""
    for k in range(number):
        counter = as_pointer(tensors[k], i64)[COUNTER]
        version = sum_of(element_of(counter, 0), ONE)
        if version == 0:
            return 0
        set_element(counter, 0, version)
        set_element(counter, 1, new_reference(change))
    return new_reference(NONE)


class Deferred:
    """A native function that is compiled when the program that calls it runs first.

    The capture runs the function in Python, so no machine code is needed for a function that is called once. Like a
    built-in function, it has the object that it is bound to as `__self__`.
    """

    __slots__ = ("__self__", "make")

    def __init__(self, make: Callable[[], Any], own: Any = None) -> None:
        self.make, self.__self__ = make, own

    def __call__(self, *args: Any) -> Any:
        """Compile the function, and call it."""
        return self.make()(*args)


def at_once(function: Any) -> Any:
    """Return a deferred function as a native function, and any other object unchanged."""
    return function.make() if type(function) is Deferred else function


def compile_deferred(namespace: dict[str, Any]) -> bool:
    """Replace the deferred functions in a namespace by native functions. Return False if LLVM refuses one."""
    try:
        for name, value in namespace.items():
            if type(value) is Deferred:
                namespace[name] = value.make()
    except CompilationError as error:
        LOOPS.give_up(PROGRAMS, error)
        tensor_maker.cache_clear()
        return False
    return True


def native(name: str, own: Any) -> Any:
    """Return a native function of this file, bound to the object `own`."""
    return built_in(name, addresses()[name], own)


@functools.cache
def addresses() -> dict[str, int]:
    """Return the addresses of the native functions. LLVM takes the same time for one of them as for all."""
    places = {name.strip("_").upper(): place for name, place in words().items()}
    array, counter = {"ARRAY": places["ARRAY"]}, {"COUNTER": places["COUNTER"]}
    module = Module()
    module.add(all_fit, "all_fit", {name: places[name] for name in ("ARRAY", "BASE", "GRAD", "EDGE", "EXTRA")})
    module.add(all_same, "all_same", {})
    module.add(all_unchanged, "all_unchanged", {"VERSIONED": int(sys.version_info < (3, 12))})  # PEP 509
    module.add(new_on_array, "new_on_array", {"PLACES": tuple(places.values())})
    module.add(note, "note", counter)
    module.add(count_steps, "count_float32", {"T": f32, **array})
    module.add(count_steps, "count_float64", {"T": f64, **array})
    first, *others = module.functions
    code = HOST.compile(first, module.text(), plain=True, brief=True, also=tuple(others))
    return dict(zip(module.functions, (code.address, *code.also), strict=True))
