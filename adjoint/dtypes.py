"""Data types: the types of the elements of tensors, and type promotion.

Every type is one object (`float32` is `float`), which wraps a NumPy dtype. This module depends on neither tensors nor
arrays. Promotion works on abstract operands, pairs of a type and a `Rank`, so that operators look up the type of a
result in one dictionary.
"""

import builtins
from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any

import numpy

from ._runtime.platform import missing, ml_dtypes
from ._runtime.tracebacks import ending_at_caller

NumpyDtype = numpy.dtype[Any]


class dtype:
    """The type of a tensor's elements.

    Attributes:
        name: the name within the package, such as `'float32'`.
        numpy: the NumPy dtype that holds such elements.
        itemsize: the number of bytes of an element.
        is_floating_point, is_complex, is_signed: the kind of numbers.
        roles: the roles that support these elements, if kernels cannot compute with them directly; None for other
            dtypes. A view supports all roles. Other operators declare the roles that they support (`dispatch.narrow`).
        abbr: a short name, such as `'f32'`.
        scalar_type: the name in error messages, such as `'Float'`. The name `torch.FloatTensor` contains it.
    """

    __module__ = "adjoint"
    __slots__ = tuple("abbr is_complex is_floating_point is_signed itemsize name numpy roles scalar_type".split())

    name: str
    numpy: NumpyDtype
    itemsize: "builtins.int"
    is_floating_point: "builtins.bool"
    is_complex: "builtins.bool"
    is_signed: "builtins.bool"
    abbr: str
    roles: str | None
    scalar_type: str

    def __new__(cls) -> "dtype":
        """Raise an error, because all dtypes already exist."""
        raise TypeError("cannot create 'torch.dtype' instances")

    def to_real(self) -> "dtype":
        """Return the type of the real part, such as `float32` for `complex64`. A real dtype is returned unchanged."""
        return _REAL.get(self, self)

    def to_complex(self) -> "dtype":
        """Return the complex type with parts of this type. `bfloat16` gives `complex64`, as in PyTorch.

        Raises:
            RuntimeError: if the dtype is an integer type or bool.
        """
        try:
            return _COMPLEX[self]
        except KeyError:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_type}") from None

    if not ml_dtypes:

        def __getattr__(self, name: str) -> NumpyDtype:
            if name != "numpy":
                raise AttributeError(f"'torch.dtype' object has no attribute {name!r}")
            raise missing("ml_dtypes", repr(self))

    def __repr__(self) -> str:
        return "torch." + self.name

    def __reduce__(self) -> str:
        return self.name

    def __copy__(self) -> "dtype":
        return self

    def __deepcopy__(self, memo: object) -> "dtype":
        return self


HELD: dict[dtype, NumpyDtype] = {}
"""The NumPy dtype of each dtype. No array has that of a dtype that needs `ml_dtypes`, if this is not installed."""


def _opaque(name: str, itemsize: "builtins.int" = 1) -> NumpyDtype:
    """Create a NumPy dtype for elements that have only a name and a size."""
    return numpy.dtype([(name, f"V{itemsize}")])


def _declare(name: str, scalar: type | NumpyDtype, abbr: str, scalar_type: str, roles: str | None = None) -> dtype:
    held = numpy.dtype(scalar)
    new = object.__new__(dtype)
    new.name = name
    new.numpy = HELD[new] = held
    new.itemsize = held.itemsize
    new.is_floating_point = name.startswith(("float", "bfloat"))
    new.is_complex = name.startswith("complex")
    new.is_signed = not name.startswith(("u", "bool")) and name != "float8_e8m0fnu"
    new.abbr = abbr
    new.roles = roles
    new.scalar_type = scalar_type
    return new


def _of_ml_dtypes(name: str, itemsize: "builtins.int", abbr: str, scalar_type: str, roles: str | None = None) -> dtype:
    """Declare a dtype for elements that `ml_dtypes` adds to NumPy. If it is not installed, no array has such elements."""
    new = _declare(name, getattr(ml_dtypes, name) if ml_dtypes else _opaque(name, itemsize), abbr, scalar_type, roles)
    if not ml_dtypes:
        del new.numpy
    return new


uint8 = _declare("uint8", numpy.uint8, "u8", "Byte")
int8 = _declare("int8", numpy.int8, "i8", "Char")
int16 = short = _declare("int16", numpy.int16, "i16", "Short")
int32 = int = _declare("int32", numpy.int32, "i32", "Int")
int64 = long = _declare("int64", numpy.int64, "i64", "Long")
uint16 = _declare("uint16", numpy.uint16, "u16", "UInt16")
uint32 = _declare("uint32", numpy.uint32, "u32", "UInt32")
uint64 = _declare("uint64", numpy.uint64, "u64", "UInt64")
float16 = half = _declare("float16", numpy.float16, "f16", "Half")
bfloat16 = _of_ml_dtypes("bfloat16", 2, "bf16", "BFloat16")
float32 = float = _declare("float32", numpy.float32, "f32", "Float")
float64 = double = _declare("float64", numpy.float64, "f64", "Double")
complex64 = cfloat = _declare("complex64", numpy.complex64, "c64", "ComplexFloat")
complex128 = cdouble = _declare("complex128", numpy.complex128, "c128", "ComplexDouble")
bool = _declare("bool", numpy.bool_, "b8", "Bool")

# Types that kernels copy and convert, and with which they compute only if PyTorch does.
_ROLES = "moves converts reads alike"
float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu = (
    _of_ml_dtypes(
        f"float8_{form}",
        1,
        f"f8{form}",
        f"Float8_{form}",
        _ROLES if form == "e8m0fnu" else f"{_ROLES} computes eighths",
    )
    for form in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
)
complex32 = chalf = _of_ml_dtypes("complex32", 4, "c32", "ComplexHalf", f"{_ROLES} computes halves")


def _name(name: str, scalar_type: str, abbr: str | None = None, itemsize: "builtins.int" = 1, roles: str = "") -> dtype:
    return _declare(name, _opaque(name, itemsize), abbr or name, scalar_type, roles)


# The other dtypes of PyTorch, which NumPy lacks. Bits can be copied; the others can only be viewed.
qint8 = _name("qint8", "QInt8")
qint32 = _name("qint32", "QInt32", itemsize=4)
quint8 = _name("quint8", "QUInt8")
quint4x2 = _name("quint4x2", "QUInt4x2")
quint2x4 = _name("quint2x4", "QUInt2x4")
bits8 = _name("bits8", "Bits8", "b8x1", roles="moves")
bits16 = _name("bits16", "Bits16", "b16x1", 2, roles="moves")
bits1x8 = _name("bits1x8", "Bits1x8", "b1x8", roles="moves")
bits2x4 = _name("bits2x4", "Bits2x4", "b2x4", roles="moves")
bits4x2 = _name("bits4x2", "Bits4x2", "b4x2", roles="moves")
int1, int2, int3, int4, int5, int6, int7 = (_name(f"int{bits}", f"Int{bits}") for bits in range(1, 8))
uint1, uint2, uint3, uint4, uint5, uint6, uint7 = (_name(f"uint{bits}", f"UInt{bits}") for bits in range(1, 8))
float4_e2m1fn_x2 = _name("float4_e2m1fn_x2", "Float4_e2m1fn_x2", "f4e2m1fnx2", roles="moves")

_ALL = (
    uint8, int8, int16, int32, int64, uint16, uint32, uint64,
    float16, bfloat16, float32, float64, complex32, complex64, complex128, bool,
)  # fmt: skip
_REAL = {complex32: float16, complex64: float32, complex128: float64}
_COMPLEX = {
    complex32: complex32, float16: complex32, bfloat16: complex64, float32: complex64, float64: complex128,
    complex64: complex64, complex128: complex128,
}  # fmt: skip

_FROM_NUMPY = {held: kind for kind, held in HELD.items()}
NARROW = {kind: held for kind, held in HELD.items() if kind.roles is not None}
"""The dtypes that only some operators support (`roles`), each with its NumPy dtype."""

OPAQUE = {held: _opaque(kind.name, kind.itemsize) for kind, held in NARROW.items()}
"""The NumPy dtypes of elements with which no kernel can compute."""

_FROM_NUMPY.update({OPAQUE[held]: kind for kind, held in NARROW.items()})


def from_numpy(np_dtype: NumpyDtype) -> dtype:
    """Return the type of a NumPy array's elements. Raise an error if there is none in the byte order of the machine."""
    try:
        return _FROM_NUMPY[np_dtype]
    except KeyError:
        raise _unsupported(np_dtype) from None


def _unsupported(np_dtype: NumpyDtype) -> Exception:
    if not np_dtype.isnative and np_dtype.newbyteorder("=") in _FROM_NUMPY:
        return ValueError(
            "given numpy array has byte order different from the native byte order. "
            "Conversion between byte orders is currently not supported."
        )
    scalar = np_dtype.type
    return TypeError(
        f"can't convert np.ndarray of type {scalar.__module__}.{scalar.__name__}. The only supported types are: "
        "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, "
        "and bool."
    )


# ---------------------------------------------------------------------------------------------------------------------
# The default type

_default: dtype = float32


def get_default_dtype() -> dtype:
    """Return the dtype of a tensor that is created from Python floats: `float32` unless `set_default_dtype` has changed it."""
    return _default


@ending_at_caller
def set_default_dtype(d: dtype, /) -> None:
    """Set the dtype of tensors that are created from Python floats, and of quotients of integers.

    Raises:
        TypeError: if `d` is not a floating-point type.
    """
    global _default
    if type(d) is not dtype:
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if d.roles is not None:
        raise TypeError(f"couldn't find storage object {d.scalar_type}Storage")
    _default = d


def get_default_complex() -> dtype:
    """Return the dtype of a tensor that is created from Python complex numbers: the complex counterpart of the default dtype."""
    return _COMPLEX[_default]


def scalar_dtype(value: object) -> dtype:
    """Return the type of a Python (or NumPy) scalar in promotion. Raise TypeError if `value` is not a number."""
    return dtype_of_numbers(type(value))


def dtype_of_numbers(kind: type) -> dtype:
    """Return the type in promotion of scalars of a Python or NumPy class, such as `int64` for `int`."""
    if issubclass(kind, (builtins.bool, numpy.bool_)):
        return bool
    if issubclass(kind, (builtins.int, numpy.integer)):
        return int64
    if issubclass(kind, (builtins.float, numpy.floating)):
        return _default
    if issubclass(kind, (complex, numpy.complexfloating)):
        return _COMPLEX[_default]
    raise TypeError(f"expected Number, not {kind.__name__}")


# ---------------------------------------------------------------------------------------------------------------------
# Promotion

# Rows and columns in the order of _ALL; `-` marks pairs that have no common type.
_PROMOTED = """
u8    i16   i16   i32   i64   -     -     -     f16   bf16  f32   f64   c32   c64   c128  u8
i16   i8    i16   i32   i64   -     -     -     f16   bf16  f32   f64   c32   c64   c128  i8
i16   i16   i16   i32   i64   -     -     -     f16   bf16  f32   f64   c32   c64   c128  i16
i32   i32   i32   i32   i64   -     -     -     f16   bf16  f32   f64   c32   c64   c128  i32
i64   i64   i64   i64   i64   -     -     -     f16   bf16  f32   f64   c32   c64   c128  i64
-     -     -     -     -     u16   -     -     f16   bf16  f32   f64   -     -     -     -
-     -     -     -     -     -     u32   -     f16   bf16  f32   f64   -     -     -     -
-     -     -     -     -     -     -     u64   f16   bf16  f32   f64   -     -     -     -
f16   f16   f16   f16   f16   f16   f16   f16   f16   f32   f32   f64   c32   c64   c128  f16
bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  f32   bf16  f32   f64   c64   c64   c128  bf16
f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   f64   c64   c64   c128  f32
f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   c128  c128  c128  f64
c32   c32   c32   c32   c32   -     -     -     c32   c64   c64   c128  c32   c64   c128  c32
c64   c64   c64   c64   c64   -     -     -     c64   c64   c64   c128  c64   c64   c128  c64
c128  c128  c128  c128  c128  -     -     -     c128  c128  c128  c128  c128  c128  c128  c128
u8    i8    i16   i32   i64   -     -     -     f16   bf16  f32   f64   c32   c64   c128  b8
"""


def _read_promotions() -> dict[tuple[dtype, dtype], dtype]:
    by_abbr = {kind.abbr: kind for kind in _ALL}
    rows = [line.split() for line in _PROMOTED.strip().splitlines()]
    return {
        (first, second): by_abbr[cell]
        for first, row in zip(_ALL, rows, strict=True)
        for second, cell in zip(_ALL, row, strict=True)
        if cell != "-"
    }


_PAIRS = _read_promotions()


@ending_at_caller
def promote_types(type1: dtype, type2: dtype) -> dtype:
    """Return the smallest type to which `type1` and `type2` can be converted without a change of category.

    Raises:
        RuntimeError: if `uint16`, `uint32` or `uint64` is combined with another integer, bool or complex type.
        TypeError: if an argument is not a dtype.
    """
    try:
        return _PAIRS[type1, type2]
    except (KeyError, TypeError):
        _require_dtype("promote_types", "type1", 1, type1)
        _require_dtype("promote_types", "type2", 2, type2)
        return _rarely_promoted(type1, type2)


def _rarely_promoted(type1: dtype, type2: dtype) -> dtype:
    """Return the common dtype of a rare dtype and another dtype, or raise RuntimeError."""
    one, other = type1.scalar_type, type2.scalar_type
    if type1 is type2:
        return type1
    for kind, rest in ((type1, type2), (type2, type1)):
        if kind.scalar_type.startswith("UInt") and rest.is_floating_point and rest in _ALL:
            return rest
    if "Q" in (one[0], other[0]):
        raise RuntimeError(
            "promoteTypes with quantized numbers is not handled yet; figure out what the correct rules should be, "
            f"offending types: {one} {other}"
        )
    if one.startswith("Bits") or other.startswith("Bits"):
        raise RuntimeError(f"Promotion from {one} and {other} is unsupported.")
    kinds = "Float8 Types" if "Float8" in one + other else "uint16, uint32, uint64 types"
    raise RuntimeError(f"Promotion for {kinds} is not supported, attempted to promote {one} and {other}")


@ending_at_caller
def can_cast(from_: dtype, to: dtype | None = None) -> "builtins.bool":
    """Return whether `from_` can be converted to `to` without a lower category (bool < integer < float < complex)."""
    if to is None:
        raise TypeError('can_cast() missing 1 required positional arguments: "to"')
    _require_dtype("can_cast", "from_", 1, from_)
    _require_dtype("can_cast", "to", 2, to)
    return category(from_) <= category(to)


@cache
def category(kind: dtype) -> "builtins.int":
    """Return the place of a dtype in the order bool, integer, float, complex."""
    return 3 if kind.is_complex else 2 if kind.is_floating_point else 0 if kind is bool else 1


def _require_dtype(function: str, argument: str, position: "builtins.int", value: object) -> None:
    if type(value) is not dtype:
        raise TypeError(
            f"{function}(): argument '{argument}' (position {position}) must be torch.dtype, not {type(value).__name__}"
        )


class Rank(IntEnum):
    """The precedence of an operand's type in promotion: Python scalars, zero-dimensional tensors, other tensors."""

    SCALAR = 0
    ZERO_DIM = 1
    DIMENSIONED = 2


Operand = tuple[dtype, "builtins.int"]


class _Promotions(dict[tuple[Operand, ...], dtype]):
    """The result types by operands. An entry is computed on first use."""

    def __missing__(self, operands: tuple[Operand, ...]) -> dtype:
        by_rank: list[dtype | None] = [None, None, None]
        for kind, rank in operands:
            held = by_rank[rank]
            by_rank[rank] = kind if held is None else promote_types(held, kind)
        scalar, zero_dim, dimensioned = by_rank
        result = _prefer(dimensioned, _prefer(zero_dim, scalar))
        if result is None:
            raise TypeError("promote() takes at least one operand")
        self[operands] = result
        return result


def _prefer(stronger: dtype | None, weaker: dtype | None) -> dtype | None:
    """Return the type of the stronger rank, unless the weaker type has a higher category."""
    if stronger is None:
        return weaker
    if weaker is None or category(weaker) <= category(stronger):
        return stronger
    if weaker.is_complex and stronger.is_floating_point:
        return stronger.to_complex()
    if weaker.is_complex:
        return weaker
    return promote_types(stronger, weaker)


promote: Callable[[tuple[Operand, ...]], dtype] = _Promotions().__getitem__
"""Return the type of a result, from its operands as a tuple of `(dtype, rank)`.

`promote_types` decides between operands of one rank. A weaker rank affects the result only if its category (bool <
integer < float < complex) is higher. For example, `promote(((int32, Rank.DIMENSIONED), (int64, Rank.SCALAR)))` is
`int32`. The type of a Python scalar is `scalar_dtype(value)`. After the first call, a dictionary look-up returns the
result.
"""


# ---------------------------------------------------------------------------------------------------------------------
# Limits


def limits_of(held: NumpyDtype) -> Any:
    """Return the limits of a floating-point type of NumPy or `ml_dtypes`."""
    return numpy.finfo(held) if held.isbuiltin == 1 else ml_dtypes.finfo(held)


def _limit_of(info: str, kind: object) -> dtype:
    if type(kind) is not dtype:
        raise TypeError(f"{info}(): argument 'type' (position 1) must be torch.dtype, not {type(kind).__name__}")
    return kind


class finfo:
    """The limits of a floating-point type, by default of the default dtype. A complex type gives the limits of its parts.

    The attributes are `bits`, `eps`, `max`, `min`, `tiny`, `smallest_normal`, `resolution` and `dtype`, the type's
    name.

    >>> import adjoint as torch
    >>> torch.finfo(torch.bfloat16).eps
    0.0078125
    """

    __slots__ = ("_kind", "bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")
    __hash__ = None  # type: ignore[assignment]

    @ending_at_caller
    def __init__(self, type: dtype | None = None) -> None:
        kind = get_default_dtype() if type is None else _limit_of("finfo", type).to_real()
        if not kind.is_floating_point:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        limits = limits_of(kind.numpy)
        self._kind = kind
        self.bits: builtins.int = limits.bits
        self.eps = 0.125 if kind is float8_e5m2fnuz else builtins.float(limits.eps)  # as in PyTorch
        self.max = builtins.float(limits.max)
        self.min = builtins.float(limits.min)
        self.tiny = self.smallest_normal = builtins.float(limits.smallest_normal)
        self.resolution = 1.0 if kind.itemsize == 1 else 10.0**-limits.precision
        self.dtype = kind.name

    def __eq__(self, other: object) -> "builtins.bool":
        return isinstance(other, finfo) and other._kind is self._kind

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join(f'{name}={getattr(self, name):g}' for name in names)}, dtype={self.dtype})"


class iinfo:
    """The limits of an integer type. The attributes are `bits`, `max`, `min` and `dtype`, the type's name.

    >>> import adjoint as torch
    >>> torch.iinfo(torch.int8).max
    127
    """

    __slots__ = ("_kind", "bits", "dtype", "max", "min")
    __hash__ = None  # type: ignore[assignment]

    @ending_at_caller
    def __init__(self, type: dtype) -> None:
        kind = _limit_of("iinfo", type)
        if kind.numpy.kind not in "biu":
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if kind is bool:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        limits = numpy.iinfo(kind.numpy)
        self._kind = kind
        self.bits: builtins.int = limits.bits
        self.max: builtins.int = limits.max
        self.min: builtins.int = limits.min
        self.dtype = kind.name

    def __eq__(self, other: object) -> "builtins.bool":
        return isinstance(other, iinfo) and other._kind is self._kind

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


C_NAMES = {
    **{kind: f"c10::{kind.scalar_type}" for kind in NARROW}, complex32: "c10::complex<c10::Half>",
    float32: "float", float64: "double", float16: "c10::Half", bfloat16: "c10::BFloat16",
    int64: "long int", int32: "int", int16: "short int", int8: "signed char",
    uint8: "unsigned char", uint16: "short unsigned int", uint32: "unsigned int",
    uint64: "long unsigned int", bool: "bool", complex64: "c10::complex<float>",
    complex128: "c10::complex<double>",
}  # fmt: skip
"""The names of the C++ types that appear in some messages."""
