"""`torch.ops.aten`: operators under the names of PyTorch's dispatcher, for programs that compare them."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..first_use import import_late
from ..tracebacks import ending_at_caller
from .declaration import OPERATORS, Operator
from .registry import load_all


class OpOverload:
    """One overload of an operator: `torch.ops.aten.mm.default`. There is one object for each name."""

    def __init__(self, packet: OpOverloadPacket, name: str) -> None:
        self._packet = packet
        self._overloadname = name
        self.__name__ = f"{packet.__name__}.{name}"

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """All overloads of the operator."""
        return self._packet

    def name(self) -> str:
        """The name, as in `aten::mul.Tensor`; `default` is omitted."""
        ending = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"aten::{self._packet.__name__}{ending}"

    def __str__(self) -> str:
        return f"aten.{self._packet.__name__}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._packet.__name__}', overload='{self._overloadname}')>"

    def __call__(self, *args: Any, **names: Any) -> Any:
        """Apply the operator."""
        return self._packet(*args, **names)


class OpOverloadPacket:
    """An operator by name, with its overloads as attributes: `torch.ops.aten.mm`."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        made = OpOverload(self, overload)
        setattr(self, overload, made)
        return made

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"

    def __call__(self, *args: Any, **names: Any) -> Any:
        """Apply the operator."""
        function = _functions().get(self.__name__)
        if function is None:
            raise NotImplementedError(
                f"torch.ops.aten.{self.__name__} is not in adjoint: call the function of `torch`."
            )
        return function(*args, **names)


class _Namespace:
    """`torch.ops.aten`."""

    @ending_at_caller
    def __getattr__(self, name: str) -> OpOverloadPacket:
        known = not name.startswith("__") and (name in _functions() or name in _names_of_pytorch())
        if not known:
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        packet = OpOverloadPacket(name)
        setattr(self, name, packet)
        return packet


def _names_of_pytorch() -> frozenset[str]:
    names: frozenset[str] = import_late("adjoint.missing").pytorch_names()["torch.ops.aten"]
    return names


@cache
def _functions() -> dict[str, Any]:
    from .decorators import PUBLIC

    load_all()
    by_name = {op.function_name: op.function for op in OPERATORS.values()}
    for functions in PUBLIC.values():
        by_name.update(functions)
    return by_name


aten = _Namespace()


def overload_of(op: Operator) -> OpOverload:
    """The overload that `op` is."""
    packet: OpOverloadPacket = getattr(aten, op.function_name)
    overload: OpOverload = getattr(packet, op.aten)
    return overload
