"""Functions of the kernel language for memory that several threads write, and for calls of machine code by its address."""

from __future__ import annotations

from typing import Any

from .element_types import PointerType
from .functions import Builtin
from .host import HOST
from .lowering import Lowering
from .values import size_of


@Builtin
def atomic_load(lowering: Lowering, pointer: Any) -> Any:
    """Read the number at an address. All earlier writes of the thread that wrote the number are then visible."""
    type_ = pointer.type.target
    return lowering.value(f"load atomic {type_.text}, {pointer} acquire, align {size_of(type_)}", type_)


@Builtin
def atomic_store(lowering: Lowering, pointer: Any, value: Any) -> None:
    """Write a number. A reader that uses `atomic_load` also sees all earlier writes of this thread."""
    type_ = pointer.type.target
    lowering.emit(f"store atomic {lowering.as_type(value, type_)}, {pointer} release, align {size_of(type_)}")


@Builtin
def atomic_add(lowering: Lowering, pointer: Any, value: Any) -> Any:
    """Add to the number at an address atomically, and return the previous number."""
    type_ = pointer.type.target
    return lowering.value(f"atomicrmw add {pointer}, {lowering.as_type(value, type_)} seq_cst", type_)


@Builtin
def atomic_exchange(lowering: Lowering, pointer: Any, value: Any) -> Any:
    """Write a number atomically, and return the previous number."""
    type_ = pointer.type.target
    return lowering.value(f"atomicrmw xchg {pointer}, {lowering.as_type(value, type_)} seq_cst", type_)


@Builtin
def atomic_replace(lowering: Lowering, pointer: Any, expected: Any, value: Any) -> Any:
    """Write a number atomically if memory contains the expected number, and return the previous number."""
    type_ = pointer.type.target
    numbers = f"{lowering.as_type(expected, type_)}, {lowering.as_type(value, type_)}"
    pair = lowering.value(f"cmpxchg {pointer}, {numbers} seq_cst seq_cst", type_)
    return lowering.value(f"extractvalue {{ {type_.text}, i1 }} {pair.name}, 0", type_)


@Builtin
def pause(lowering: Lowering) -> None:
    """Reduce the load on the processor while a loop waits for a write of another thread."""
    name, arguments = {
        "x86_64": ("llvm.x86.sse2.pause", ""),
        "aarch64": ("llvm.aarch64.hint", "i32 1"),
        "arm64": ("llvm.aarch64.hint", "i32 1"),
    }.get(HOST.machine.triple.split("-")[0], ("llvm.donothing", ""))
    lowering.declarations.add(f"declare void @{name}({arguments.split(' ')[0]})")
    lowering.emit(f"call void @{name}({arguments})")


@Builtin
def call_address(lowering: Lowering, function: Any, *arguments: Any) -> None:
    """Call the function at an address. The function returns nothing."""
    place = (
        function
        if isinstance(function.type, PointerType)
        else lowering.value(f"inttoptr {function} to ptr", PointerType(function.type))
    )
    values = ", ".join(str(item) for item in arguments)
    lowering.emit(f"call void {place.name}({values})")
