"""The types bfloat16 and float16, which kernels only store. Arithmetic uses float32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .element_types import NumberType, VectorType, bf16, f32, i32
from .values import Value, constant

if TYPE_CHECKING:
    from .lowering import Lowering


def convert_half(lowering: Lowering, value: Value, type_: Any) -> Value:
    """Convert from or to a half-precision type through float32."""
    source, target = value.type.element, type_.element
    if source.storage_only:
        single = _widen(lowering, value)
        return lowering.convert(single, type_)
    single = lowering.convert(value, _like(type_, f32))
    return _narrow(lowering, single, type_) if target.storage_only else single


def _like(type_: Any, element: NumberType) -> Any:
    return VectorType(element, type_.width) if isinstance(type_, VectorType) else element


def _half_text(type_: Any) -> str:
    return f"<{type_.width} x half>" if isinstance(type_, VectorType) else "half"


def _widen(lowering: Lowering, value: Value) -> Value:
    single, whole = _like(value.type, f32), _like(value.type, i32)
    if value.type.element is bf16:
        extended = lowering.value(f"zext {value} to {whole.text}", whole)
        shifted = lowering.value(f"shl {extended}, {constant(16, whole).name}", whole)
        return lowering.value(f"bitcast {shifted} to {single.text}", single)
    half = lowering.fresh()
    lowering.emit(f"{half} = bitcast {value} to {_half_text(value.type)}")
    return lowering.value(f"fpext {_half_text(value.type)} {half} to {single.text}", single)


def _narrow(lowering: Lowering, single: Value, type_: Any) -> Value:
    if type_.element is not bf16:
        half = lowering.fresh()
        lowering.emit(f"{half} = fptrunc {single} to {_half_text(type_)}")
        return lowering.value(f"bitcast {_half_text(type_)} {half} to {type_.text}", type_)
    # Add half of the last kept bit, then drop the other bits. Ties are rounded to even, and NaN keeps its sign.
    whole = _like(type_, i32)
    text = whole.text
    raw = lowering.value(f"bitcast {single} to {text}", whole)
    high = lowering.value(f"lshr {raw}, {constant(16, whole).name}", whole)
    odd = lowering.value(f"and {high}, {constant(1, whole).name}", whole)
    half_up = lowering.value(f"add {odd}, {constant(0x7FFF, whole).name}", whole)
    sum_ = lowering.value(f"add {raw}, {half_up.name}", whole)
    rounded = lowering.value(f"lshr {sum_}, {constant(16, whole).name}", whole)
    nan = lowering.value(f"or {high}, {constant(0x40, whole).name}", whole)
    flag = lowering.fresh()
    lowering.emit(f"{flag} = fcmp uno {single}, {single.name}")
    flags = f"<{type_.width} x i1>" if isinstance(type_, VectorType) else "i1"
    chosen = lowering.value(f"select {flags} {flag}, {nan}, {rounded}", whole)
    return lowering.value(f"trunc {chosen} to {type_.text}", type_)
