"""`torch.ops.aten`: operators under the names of PyTorch's dispatcher, for programs that compare them."""

from __future__ import annotations

from functools import cache
from typing import Any

from .._runtime.first_use import computed_once, import_late
from .._runtime.tracebacks import ending_at_caller
from ..dispatch.declaration import OPERATORS, VALUE, Operator
from ..dispatch.out import STRICT, all_stored, refuse_gradient
from ..dispatch.registry import load_all
from ..dispatch.wrappers import signature_of
from ..tape.torch_function import taken_over
from ..tensor import Tensor
from .gradients import backward_named
from .schemas import REDUCTIONS, FunctionSchema, overload_names, packets, schema_of


class OpOverload:
    """One overload of an operator, such as `torch.ops.aten.mm.default`. Each name has one object."""

    def __init__(self, packet: OpOverloadPacket, name: str) -> None:
        self._packet = packet
        self._overloadname = name
        self.__name__, self.__module__ = f"{packet.__name__}.{name}", packet.__module__
        self.operator: Operator | None = None  # the operator of this package
        self.changes = False

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """All overloads of the operator."""
        return self._packet

    @computed_once
    def _schema(self) -> FunctionSchema | None:
        """The signature, or None if it is not known."""
        return schema_of(self._packet.__name__, self._overloadname)

    @property
    def _opname(self) -> str:
        """The name of the operator."""
        return self._packet.__name__

    @property
    def namespace(self) -> str:
        """The namespace of the operator."""
        return "aten"

    @property
    def tags(self) -> list[Any]:
        """The tags of the operator. The list is empty, because tags describe operators to PyTorch's compiler."""
        return []

    _defined_in_python = False

    @property
    def is_view(self) -> bool:
        """Whether the result of the operator is a view of an argument."""
        return self._schema is not None and self._schema.is_view

    def name(self) -> str:
        """The name, such as `aten::mul.Tensor`. `default` is omitted."""
        ending = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"aten::{self._packet.__name__}{ending}"

    _name = property(lambda self: self.name())

    def __str__(self) -> str:
        return f"aten.{self._packet.__name__}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._packet.__name__}', overload='{self._overloadname}')>"

    def __call__(self, /, *args: Any, **names: Any) -> Any:
        """Apply the operator.

        Raises:
            RuntimeError: if there are more arguments than the operator has.
        """
        result = taken_over(self, self._applied, args, names)
        return result if not isinstance(result, tuple) else _as_declared(result, [self._schema])

    @computed_once
    def _source(self) -> OpOverload | None:
        """The overload whose results this overload writes to its targets, or None if the function itself writes there."""
        name, whole = self._packet.__name__, _operators().get(f"{self._packet.__name__}_all")
        if not self._targets or ((function := function_named(name)) is None and self.operator is None):
            return None
        of_all = self._overloadname == "out" and whole is not None and not whole.out
        if not of_all and (function is None or "out" in signature_of(function).parameters):
            return None
        source = "default" if self._overloadname == "out" else self._overloadname.removesuffix("_out")
        return overload_named(name, source) if source in self._packet.overloads() else None

    @computed_once
    def _targets(self) -> list[str]:
        """The names of the arguments that results are written to."""
        return [] if self._schema is None else [each.name for each in self._schema.arguments if each.is_out]

    def _written(self, source: OpOverload, args: tuple[Any, ...], names: dict[str, Any]) -> Any:
        """Apply `source` and write its results to the targets."""
        name, targets = self._packet.__name__, [names.pop(each) for each in self._targets]
        refuse_gradient(name, [each for each in (*args, *names.values()) if isinstance(each, Tensor)])
        results = source(*args, **names)
        written = all_stored(name, results if len(targets) > 1 else (results,), targets, STRICT)
        return tuple(written) if len(targets) > 1 else written[0]

    def _applied(self, /, *args: Any, **names: Any) -> Any:
        schema = self._schema
        written = bool(self._targets) and names.keys() >= set(self._targets)
        if written and self._source is not None:
            return self._written(self._source, args, names)
        if schema is not None and len(args) > len(schema.arguments):
            raise RuntimeError(
                f"{schema.name}() expected at most {len(schema.arguments)} argument(s) but received {len(args)} argument(s). "
                f"Declaration: {schema}"
            )
        args, names = _in_order([schema], _whole(schema, args), names)
        if written:
            targets = tuple([names.pop(each) for each in self._targets])
            names["out"] = targets if len(targets) > 1 else targets[0]
        function = function_named(self._packet.__name__)
        too_few = schema is not None and len(args) + len(names) < sum(each.required for each in schema.arguments)
        if self.operator is not None and (function is None or too_few):  # the operator takes fewer arguments
            return applied_by_name(self.operator, schema, args, names, self.changes)
        return self._packet._applied(*args, **names)


def _as_declared(results: tuple[Any, ...], schemas: list[FunctionSchema | None]) -> tuple[Any, ...] | list[Any]:
    """Return several results as PyTorch's dispatcher does: as the list that an overload declares, or as a plain tuple."""
    return list(results) if any(each is not None and each.returns_list for each in schemas) else tuple(results)


def _whole(schema: FunctionSchema | None, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return positional arguments, with single numbers repeated where the operator takes lists of a certain length."""
    if schema is None:
        return args
    return (
        tuple([each.whole(value) for each, value in zip(schema.arguments, args, strict=False)])
        + args[len(schema.arguments) :]
    )


def _in_order(
    schemas: list[FunctionSchema | None], args: tuple[Any, ...], names: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments. Those that PyTorch's operator takes by position or by name are in their position, up to a gap."""
    for schema in schemas:
        if schema is not None and names.keys() <= {each.name for each in schema.arguments}:
            order = [each.name for each in schema.arguments if not each.kwarg_only]
            while len(args) < len(order) and order[len(args)] in names:
                args = (*args, names[order[len(args)]])
            return args, {name: value for name, value in names.items() if name not in order[: len(args)]}
    return args, names


def applied_by_name(
    op: Operator, schema: FunctionSchema | None, args: tuple[Any, ...], names: dict[str, Any], inplace: bool = False
) -> Any:
    """Apply an operator to PyTorch's arguments, by name, or in order if the operator has other names for them."""
    out = names.pop("out", None)
    given = dict(zip(op.names, args, strict=False)) | names
    if schema is not None and all(each.name in op.names or not each.required for each in schema.arguments):
        known = {each.name: each.whole_default() for each in schema.arguments if each.default_value is not None}
        known |= dict(zip((each.name for each in schema.arguments), args, strict=False)) | names
        given = {name: value for name, value in known.items() if name in op.names}
    if isinstance(given.get("reduction"), int):
        given["reduction"] = REDUCTIONS[given["reduction"]]
    values = [given.get(name, op.defaults.get(name)) for name in op.names]
    values = [tuple(value) if type(value) is list and op.kinds[name] == VALUE else value
              for name, value in zip(op.names, values, strict=True)]  # fmt: skip
    positional = [value for name, value in zip(op.names, values, strict=True) if name not in op.keyword_only]
    keywords = {name: value for name, value in zip(op.names, values, strict=True) if name in op.keyword_only}
    if inplace:
        return op.inplace_function(*positional, **keywords)
    results = op.function(*positional, **keywords, **({} if out is None else {"out": out}))
    returned = () if schema is None else tuple([each.name for each in schema.returns])
    if returned != op.outputs and set(returned) == set(op.outputs):  # the declaration has another order
        return tuple(results[op.outputs.index(name)] for name in returned)
    return results


class OpOverloadPacket:
    """An operator with its overloads as attributes, such as `torch.ops.aten.mm`."""

    def __init__(self, name: str) -> None:
        self.__name__, self.__module__ = name, "torch._ops.aten"

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        if (known := overload_names(self.__name__)) and overload not in known:
            raise AttributeError(f"The underlying op of 'aten.{self.__name__}' has no overload name '{overload}'")
        made = OpOverload(self, overload)
        setattr(self, overload, made)
        return made

    def overloads(self) -> list[str]:
        """Return the names of the overloads."""
        return overload_names(self.__name__)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"

    def __call__(self, /, *args: Any, **names: Any) -> Any:
        """Apply the operator."""
        result = taken_over(self, self._applied, args, names)
        if not isinstance(result, tuple):
            return result
        return _as_declared(result, [schema_of(self.__name__, each) for each in self.overloads()])

    def _applied(self, /, *args: Any, **names: Any) -> Any:
        written = "out" in names and "out" in self.overloads() and names.keys() >= {*self.out._targets}
        if written and self.out._source is not None:
            whole = function_named(self.__name__)
            if len(args) + len(names) == 2 or "out" not in signature_of(whole).parameters:
                return self.out._applied(*args, **names)
        args = _whole(schema_of(self.__name__, "default"), args)
        if names:
            schemas = [schema_of(self.__name__, each) for each in self.overloads()]
            args, names = _in_order(schemas, args, names)
        function = function_named(self.__name__)
        if function is None and (op := _operators().get(self.__name__)) is not None:
            return applied_by_name(op, schema_of(self.__name__, op.aten), args, names)
        if function is None:
            raise NotImplementedError(
                f"torch.ops.aten.{self.__name__} is not in adjoint: call the function of `torch`."
            )
        return function(*args, **names)


class _Namespace:
    """`torch.ops.aten`."""

    @ending_at_caller
    def __getattr__(self, name: str) -> OpOverloadPacket:
        known = (not name.startswith("__") or name in packets()) and (name in _names_of_pytorch() or is_there(name))
        if not known:
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        packet = OpOverloadPacket(name)
        setattr(self, name, packet)
        return packet


def _names_of_pytorch() -> frozenset[str]:
    names: frozenset[str] = import_late("adjoint.missing").missing_names()["torch.ops.aten"]
    return names


@cache
def _operators() -> dict[str, Operator]:
    load_all()
    return {name: op for op in reversed(OPERATORS.values()) for name in (op.name, op.aten_name)}


@cache
def _public_functions() -> tuple[dict[str, Any], ...]:
    from ..dispatch.decorators import PUBLIC

    load_all()
    return PUBLIC["aten"], *(each for name, each in PUBLIC.items() if name not in ("aten", "functional"))


aten = _Namespace()


@cache
def function_named(name: str) -> Any:
    """Return the function, method or operator that computes the operator of this name from PyTorch's arguments, or None."""
    from .composites import COMPOSITES
    from .forms import FUNCTIONS

    for functions in (FUNCTIONS, COMPOSITES, *_public_functions(), vars(Tensor)):
        if (function := functions.get(name)) is not None and callable(function):
            return function
    if (function := backward_named(name)) is not None:
        return function
    from ..dispatch.decorators import PUBLIC

    if name.startswith("_") and name not in _operators():
        return getattr(import_late("adjoint"), name, None)
    module, _, own = name.partition("_")
    return PUBLIC[module].get(own) if module in ("linalg", "special", "fft") and name not in _operators() else None


def is_there(name: str) -> bool:
    """Return whether the operator of this name is supported here."""
    return function_named(name) is not None or name in _operators()


def overload_named(packet: str, overload: str) -> OpOverload:
    """Return an overload by its names, whether it is known or not."""
    found = aten.__dict__.get(packet) or OpOverloadPacket(packet)
    setattr(aten, packet, found)
    made: OpOverload | None = found.__dict__.get(overload)
    if made is None:
        made = OpOverload(found, overload)
        setattr(found, overload, made)
    return made
