"""The built-in functions of the kernel language for loops, memory, vectors, bits, and exact processor operations.

unrolled(n)             a loop over numbers that are known when the kernel is compiled
vectorized(n)           a loop whose iterations are independent of one another; LLVM vectorizes it
rolled(n)               a loop that is compiled unchanged, which saves compile time if its body is long
vector(T, 16)           a type; `vector(T, 16)(x)` converts or repeats
table(u32, [1, 2])      the address of constants in the machine code
fields(address, TABLE)  the named fields of a table of integers that a `Struct` describes
local(T, 4)             private memory of the kernel, which is in registers if all indices are known
load(p, 16)             16 numbers from an address of any alignment; `load(p, 16, mask)` returns 0 where `mask` is false
store(p, v)             write the numbers to an address; also `store(p, v, mask)`
gather(p, indices)      the numbers at these indices; also `gather(p, indices, mask)`
fma(a, b, c)            a * b + c, rounded once
where(c, a, b)          `a if c else b`, also for vectors
mask_bits(c)            the truth values of a vector as bits of an integer
minimum(a, b)           the smaller number, or NaN if one is NaN; `fmin` is faster and returns `b` if one is NaN
"""

from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any

from .element_types import PointerType, VectorType, boolean, i32, i64, u32, u64
from .functions import Builtin, LoopRange
from .host import HOST
from .lowering import Lowering
from .values import CompilationError, Value, alignment, constant, is_number

__all__ = [
    "Struct", "as_integer", "as_pointer", "bits", "broadcast", "cast_pointer", "ceil", "copysign", "fabs", "fields", "floor",
    "fma", "fmax", "fmin", "from_bits", "gather", "lanes", "load", "local", "mask_bits", "maximum", "minimum", "prefetch",
    "reduce_add", "reduce_max", "reduce_min", "reduce_or",
    "rint", "rolled", "scale", "shuffle", "sqrt", "store", "table", "trailing_zeros", "trunc", "unrolled", "unsigned",
    "vector", "vectorized", "where",
]  # fmt: skip
"""The names that the kernel language provides."""


def _value(value: Any) -> Value:
    if not isinstance(value, Value):
        raise CompilationError(f"{value!r} is known when the kernel is compiled; a value was expected")
    return value


def _floating(value: Any) -> Value:
    value = _value(value)
    if isinstance(value.type, PointerType) or value.type.kind != "f" or value.type.element.storage_only:
        raise CompilationError(f"a floating-point number was expected, not {value.type}")
    return value


def _pointer(value: Any) -> Value:
    if not isinstance(value, Value) or not isinstance(value.type, PointerType):
        raise CompilationError("an address was expected")
    return value


class Struct:
    """The layout of a table of 64-bit integers.

        PLANES = Struct("many step sizes:3")
        PLANES.pack(many=4, step=100, sizes=(3, 8, 8))

    A kernel reads the table at an address: `planes = fields(table[0], PLANES)`, then `planes.many`, `planes.sizes[K]`.
    """

    def __init__(self, fields: str) -> None:
        self.counts: dict[str, int | None] = {}
        for field in fields.split():
            name, _, count = field.partition(":")
            self.counts[name] = int(count) if count else None
        self.places: dict[str, int] = {}
        self.size = 0
        for name, numbers in self.counts.items():
            self.places[name] = self.size
            self.size += numbers or 1

    def pack(self, **given: Any) -> list[int]:
        """Return the integers of the table. Raise TypeError if names or counts do not match the fields."""
        if given.keys() != self.counts.keys():
            raise TypeError(f"{' '.join(given)} are not the fields {' '.join(self.counts)}")
        numbers = [given[name] if count else (given[name],) for name, count in self.counts.items()]
        if [len(item) for item in numbers] != [count or 1 for count in self.counts.values()]:
            raise TypeError(f"{given} do not fit {self.counts}")
        return [int(number) for item in numbers for number in item]


# -- loops ----------------------------------------------------------------------------------------------------------------


@Builtin
def unrolled(_lowering: Lowering, *bounds: Any) -> Any:
    """Iterate over numbers that are known when the kernel is compiled, like `range`."""
    if not all(isinstance(bound, int) for bound in bounds):
        raise CompilationError("the bounds of an unrolled loop have to be known when the kernel is compiled")
    return range(*bounds)


@Builtin
def vectorized(_lowering: Lowering, *bounds: Any) -> Any:
    """Iterate over the numbers of `range` with iterations that do not depend on one another."""
    return LoopRange(bounds, vectorized=True)


@Builtin
def rolled(_lowering: Lowering, *bounds: Any) -> Any:
    """Iterate over the numbers of `range` in a loop whose code should stay small. The loop is neither unrolled nor vectorized."""
    return LoopRange(bounds, rolled=True)


# -- memory and vectors ---------------------------------------------------------------------------------------------------


@Builtin
def vector(_lowering: Lowering, element: Any, width: int) -> Any:
    """Return the type of `width` numbers in one register."""
    return element if width == 1 else VectorType(element, width)


@Builtin
def local(lowering: Lowering, type_: Any, count: int = 1) -> Any:
    """Return the address of private memory for `count` values, with undefined content."""
    return Value(PointerType(type_), lowering.allocate(type_, count))


@Builtin
def table(lowering: Lowering, type_: Any, numbers: Any) -> Any:
    """Return the address of constants in the machine code."""
    values = ", ".join(str(constant(number, type_)) for number in numbers)
    text = f"private unnamed_addr constant [{len(numbers)} x {type_.text}] [{values}], align 64"
    name = f"@table{sum(line.startswith('@table') for line in lowering.declarations)}"
    lowering.declarations.add(f"{name} = {text}")
    return Value(PointerType(type_), name)


@Builtin
def as_pointer(lowering: Lowering, number: Any, type_: Any) -> Any:
    """Return the address that an integer represents, as a pointer to values of this type."""
    return lowering.value(f"inttoptr {lowering.as_index(number)} to ptr", PointerType(type_))


@Builtin
def fields(lowering: Lowering, place: Any, struct: Struct) -> Any:
    """Read all fields of the table at an address and return them."""
    table = place if isinstance(place.type, PointerType) else as_pointer.lower(lowering, place, i64)
    words = iter([lowering.load(lowering.offset(table, number)) for number in range(struct.size)])
    return SimpleNamespace(
        **{name: [next(words) for _ in range(count)] if count else next(words) for name, count in struct.counts.items()}
    )


@Builtin
def as_integer(lowering: Lowering, pointer: Any) -> Any:
    """Return an address as an integer."""
    return lowering.value(f"ptrtoint ptr {_pointer(pointer).name} to i64", i64)


@Builtin
def cast_pointer(_lowering: Lowering, pointer: Any, type_: Any) -> Any:
    """Return the same address as a pointer to another type."""
    return Value(PointerType(type_), _pointer(pointer).name)


@Builtin
def load(lowering: Lowering, pointer: Any, width: int = 1, mask: Any = None) -> Any:
    """Load consecutive numbers."""
    pointer = _pointer(pointer)
    type_ = pointer.type.target if width == 1 else VectorType(pointer.type.target, width)
    if mask is None:
        return lowering.load(_at(pointer, type_))
    text = type_.text
    name = f"llvm.masked.load.{_suffix(type_)}.p0"
    lowering.declarations.add(f"declare {text} @{name}(ptr, <{width} x i1>, {text})")
    zero = "zeroinitializer"
    at = f"ptr align {alignment(type_)} {pointer.name}"
    return lowering.value(f"call {text} @{name}({at}, {mask}, {text} {zero})", type_)


@Builtin
def store(lowering: Lowering, pointer: Any, value: Any, mask: Any = None) -> Any:
    """Store consecutive numbers. If a processor has no masks of bits, whole masks are detected."""
    pointer = _pointer(pointer)
    if not isinstance(value, Value):
        return lowering.store(pointer, value)
    if mask is None:
        return lowering.store(_at(pointer, value.type), value)
    end = ""
    if HOST.vector_bytes < 64:
        whole, part, end = (lowering.fresh(name) for name in ("whole", "part", "end"))
        every = lowering.value(f"call i1 @llvm.vector.reduce.and.v{value.type.width}i1({mask})", boolean)
        lowering.declarations.add(
            f"declare i1 @llvm.vector.reduce.and.v{value.type.width}i1(<{value.type.width} x i1>)"
        )
        lowering.branch_if(every, whole, part)
        lowering.label(whole)
        lowering.store(_at(pointer, value.type), value)
        lowering.branch(end)
        lowering.label(part)
    text = value.type.text
    name = f"llvm.masked.store.{_suffix(value.type)}.p0"
    lowering.declarations.add(f"declare void @{name}({text}, ptr, <{value.type.width} x i1>)")
    lowering.emit(f"call void @{name}({value}, ptr align {alignment(value.type)} {pointer.name}, {mask})")
    if end:
        lowering.label(end)
    return None


def _at(pointer: Value, type_: Any) -> Value:
    return Value(PointerType(type_), pointer.name)


def _suffix(type_: Any) -> str:
    if isinstance(type_, VectorType):
        return f"v{type_.width}{_suffix(type_.element)}"
    return f"f{type_.bits}" if type_.kind == "f" and not type_.storage_only else f"i{type_.bits}"


@Builtin
def gather(lowering: Lowering, pointer: Any, indices: Any, mask: Any = None) -> Any:
    """Load the numbers at these indices."""
    pointer, indices = _pointer(pointer), _value(indices)
    width = indices.type.width
    type_ = VectorType(pointer.type.target, width)
    text = type_.text
    places = lowering.fresh()
    lowering.emit(f"{places} = getelementptr {pointer.type.target.text}, ptr {pointer.name}, {indices}")
    name = f"llvm.masked.gather.{_suffix(type_)}.v{width}p0"
    lowering.declarations.add(f"declare {text} @{name}(<{width} x ptr>, <{width} x i1>, {text})")
    chosen = mask if mask is not None else constant(1, VectorType(boolean, width))
    zero = "zeroinitializer"
    at = f"<{width} x ptr> align {alignment(type_)} {places}"
    return lowering.value(f"call {text} @{name}({at}, {chosen}, {text} {zero})", type_)


@Builtin
def broadcast(lowering: Lowering, value: Any, width: int) -> Any:
    """Return a vector that contains one number in every element."""
    return _value(value) if width == 1 else lowering.broadcast(_value(value), width)


@Builtin
def shuffle(lowering: Lowering, first: Any, second: Any, indices: Any) -> Any:
    """Return a vector of elements of two other vectors, selected by indices that are known when the kernel is compiled."""
    first, second = lowering.unify(first, second)
    chosen = ", ".join(f"i32 {index}" for index in indices)
    type_ = VectorType(first.type.element, len(indices))
    return lowering.value(f"shufflevector {first}, {second}, <{len(indices)} x i32> <{chosen}>", type_)


@Builtin
def lanes(lowering: Lowering, type_: Any, width: int) -> Any:
    """Return the vector 0, 1, 2, ... of an integer type."""
    del lowering
    numbers = ", ".join(f"{type_.text} {index}" for index in range(width))
    return Value(VectorType(type_, width), f"<{numbers}>")


def _reduction(name: str, signed: str, unsigned: str, floating: str) -> Any:
    def reduce(lowering: Lowering, value: Any) -> Any:
        value = _value(value)
        if not isinstance(value.type, VectorType):
            return value
        element = value.type.element
        kind = floating if element.kind == "f" else signed if element.kind == "i" else unsigned
        full = f"llvm.vector.reduce.{kind}.{_suffix(value.type)}"
        if kind != "fadd":
            return lowering.intrinsic(full, element, value)
        text = element.text
        lowering.declarations.add(f"declare {text} @{full}({text}, {value.type.text})")
        zero = constant(-0.0, element)
        return lowering.value(f"call reassoc {text} @{full}({zero}, {value})", element)

    reduce.__name__ = name
    return Builtin(reduce)


reduce_add = _reduction("reduce_add", "add", "add", "fadd")
reduce_min = _reduction("reduce_min", "smin", "umin", "fminimum")
reduce_max = _reduction("reduce_max", "smax", "umax", "fmaximum")
reduce_or = _reduction("reduce_or", "or", "or", "or")


@Builtin
def mask_bits(lowering: Lowering, mask: Any) -> Any:
    """Return the truth values of a vector as the bits of an integer. The first value is the lowest bit."""
    mask = _value(mask)
    width = mask.type.width
    narrow = lowering.fresh()
    lowering.emit(f"{narrow} = bitcast {mask} to i{width}")
    return Value(i64, narrow) if width == 64 else lowering.value(f"zext i{width} {narrow} to i64", i64)


@Builtin
def prefetch(lowering: Lowering, pointer: Any, written: bool = False) -> Any:
    """Prefetch the memory at an address that is soon to be read or, if `written`, written."""
    lowering.declarations.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    lowering.emit(f"call void @llvm.prefetch.p0(ptr {_pointer(pointer).name}, i32 {int(written)}, i32 3, i32 1)")


# -- numbers --------------------------------------------------------------------------------------------------------------


def _unary(name: str) -> Any:
    def function(lowering: Lowering, value: Any) -> Any:
        value = _floating(value)
        return lowering.intrinsic(f"llvm.{name}.{_suffix(value.type)}", value.type, value)

    function.__name__ = name
    return Builtin(function)


sqrt, floor, ceil, trunc, rint, fabs = map(_unary, ("sqrt", "floor", "ceil", "trunc", "rint", "fabs"))


def _binary(name: str, signed: str = "", unsigned: str = "") -> Any:
    def function(lowering: Lowering, first: Any, second: Any) -> Any:
        if is_number(first) and is_number(second):
            return {"minimum": min, "maximum": max}[name](first, second)
        first, second = lowering.unify(first, second)
        kind = first.type.kind
        chosen = name if kind == "f" else signed if kind == "i" else unsigned
        return lowering.intrinsic(f"llvm.{chosen}.{_suffix(first.type)}", first.type, first, second)

    function.__name__ = name
    return Builtin(function)


minimum = _binary("minimum", "smin", "umin")
maximum = _binary("maximum", "smax", "umax")
copysign = _binary("copysign")


@Builtin
def scale(lowering: Lowering, value: Any, exponent: Any) -> Any:
    """Return `value` times 2 to the power `exponent`, an integral number of the same type."""
    value, exponent = _floating(value), _floating(exponent)
    type_, element, width = value.type, value.type.element, value.type.width
    registers = width * element.bits // 512
    if registers > 1:
        half = width // 2
        parts = [
            scale.lower(lowering, *[shuffle.lower(lowering, item, item, indices) for item in (value, exponent)])
            for indices in (range(half), range(half, width))
        ]
        return shuffle.lower(lowering, *parts, range(width))
    text = type_.text
    if registers == 1:
        name = f"llvm.x86.avx512.mask.scalef.{'ps' if element.bits == 32 else 'pd'}.512"
        lowering.declarations.add(f"declare {text} @{name}({text}, {text}, {text}, i{width}, i32)")
        return lowering.value(
            f"call {text} @{name}({value}, {exponent}, {text} zeroinitializer, i{width} -1, i32 4)", type_
        )
    whole = lowering.convert(exponent, lowering.with_element(type_, i32 if element.bits == 32 else i64))
    return lowering.intrinsic(f"llvm.ldexp.{_suffix(type_)}.{_suffix(whole.type)}", type_, value, whole)


@Builtin
def fmin(lowering: Lowering, first: Any, second: Any) -> Any:
    """Return the smaller number, or the second if either number is NaN. This is one instruction."""
    first, second = lowering.unify(first, second)
    return lowering.select(lowering.compare(ast.Lt, first, second), first, second)


@Builtin
def fmax(lowering: Lowering, first: Any, second: Any) -> Any:
    """Return the larger number, or the second if either number is NaN. This is one instruction."""
    first, second = lowering.unify(first, second)
    return lowering.select(lowering.compare(ast.Gt, first, second), first, second)


@Builtin
def fma(lowering: Lowering, first: Any, second: Any, third: Any) -> Any:
    """Return `first * second + third`, rounded once."""
    operands = [first, second, third]
    typed = max((item for item in operands if isinstance(item, Value)), key=lambda item: int(item.type.width))
    values = [lowering.as_type(item, typed.type) for item in operands]
    return lowering.intrinsic(f"llvm.fma.{_suffix(typed.type)}", typed.type, *values)


@Builtin
def where(lowering: Lowering, condition: Any, first: Any, second: Any) -> Any:
    """Return `first` where the condition holds, and `second` elsewhere."""
    if not isinstance(condition, Value):
        return first if condition else second
    return lowering.select(condition, first, second)


@Builtin
def bits(lowering: Lowering, value: Any) -> Any:
    """Return the bits of a floating-point number as a signed integer."""
    value = _floating(value)
    type_ = lowering.with_element(value.type, i32 if value.type.element.bits == 32 else i64)
    return lowering.value(f"bitcast {value} to {type_.text}", type_)


@Builtin
def from_bits(lowering: Lowering, value: Any, element: Any) -> Any:
    """Return the floating-point number with these bits."""
    value = _value(value)
    type_ = lowering.with_element(value.type, element.element)
    return lowering.value(f"bitcast {value} to {type_.text}", type_)


@Builtin
def trailing_zeros(lowering: Lowering, value: Any) -> Any:
    """Return the number of zeros below the lowest one among the bits of an integer."""
    value = _value(value)
    return lowering.intrinsic(f"llvm.cttz.{_suffix(value.type)}", value.type, value, "i1 false")


@Builtin
def unsigned(lowering: Lowering, value: Any) -> Any:
    """Return the bits of a signed integer as an unsigned integer."""
    value = _value(value)
    return Value(lowering.with_element(value.type, {32: u32, 64: u64}[value.type.element.bits]), value.name)
