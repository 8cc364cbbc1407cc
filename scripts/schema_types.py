"""The types of tensor functions, from their signatures in PyTorch's dispatcher (`adjoint/aten/schemas.txt`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from adjoint.aten import schemas
from adjoint.dispatch.return_types import BY_NAME

OF_SCHEMAS = {
    "Tensor": "Tensor",
    "Scalar": "_Number",
    "int": "_int",
    "SymInt": "_int",
    "float": "_float",
    "bool": "_bool",
    "str": "str",
    "ScalarType": "_dtype",
    "Layout": "_layout",
    "Device": "_Device",
    "MemoryFormat": "_memory_format",
    "Generator": "Generator",
    "Storage": "UntypedStorage",
}
"""The types of arguments, in the notation of schemas and in Python's notation."""

RETURNED = {"Tensor[]": "tuple[Tensor, ...]", "Scalar": "_int | _float", "()": "None"}
"""Types that only results have. PyTorch declares the number that `item()` returns as real, even for complex tensors."""


NUMBERED = ("ScalarType", "Layout", "MemoryFormat")
"""Types whose defaults are written as numbers in schemas."""


class Parameter(NamedTuple):
    """One parameter. `types` are the alternative types, and `default` is the text of the default value, or None."""

    name: str
    types: tuple[str, ...]
    default: str | None
    keyword_only: bool

    def __str__(self) -> str:
        if not self.types:
            return self.name
        return f"{self.name}: {' | '.join(self.types)}" + ("" if self.default is None else f" = {self.default}")


class Signature(NamedTuple):
    """One overload."""

    parameters: tuple[Parameter, ...]
    returns: str

    @property
    def names(self) -> list[str]:
        """Return the names of the parameters."""
        return [parameter.name for parameter in self.parameters]

    def as_function(self) -> Signature:
        """Return the signature of the function, in which the tensor is named `input`."""
        return self._replace(
            parameters=tuple(each._replace(name="input") if each.name == "self" else each for each in self.parameters)
        )

    def as_method(self) -> Signature | None:
        """Return the signature of the method of `Tensor`, or None if the schema has no tensor `self`."""
        if not any(each.name == "self" and "Tensor" in each.types for each in self.parameters):
            return None
        others = [each for each in self.parameters if each.name not in ("self", "out")]
        return self._replace(parameters=(Parameter("self", (), None, False), *others))

    def with_names_in(self, accepted: set[str] | None) -> Signature | None:
        """Return the signature with the accepted parameters only, or None if a required parameter is not accepted."""
        if accepted is None:
            return self
        kept = tuple(each for each in self.parameters if each.name in accepted)
        dropped = [each for each in self.parameters if each.name not in accepted]
        return self._replace(parameters=kept) if all(each.default is not None for each in dropped) else None

    def text(self) -> str:
        """Return the text between the name and the colon of the `def`."""
        parts, keyword_only = [], False
        for parameter in self.parameters:
            if parameter.keyword_only and not keyword_only:
                parts.append("*")
                keyword_only = True
            parts.append(str(parameter))
        return f"({', '.join(parts)}) -> {self.returns}"

    def variadic(self) -> str | None:
        """Return the text with `*` before a list of numbers, or None if the first parameter is not such a list."""
        own = self.parameters[:1] if self.names[:1] == ["self"] else ()
        listed, *rest = self.parameters[len(own) :]
        if "Sequence[_int]" not in listed.types or not all(each.keyword_only for each in rest):
            return None
        parts = [*map(str, own), f"*{listed.name}: _int", *map(str, rest)]
        return f"({', '.join(parts)}) -> {self.returns}"


def type_of(text: str) -> tuple[str, ...]:
    """Return the alternatives of the type of an argument.

    >>> type_of("int[1]?"), type_of("Tensor?[]"), type_of("Scalar")
    (('_int', 'Sequence[_int]', 'None'), ('Sequence[Tensor | None]',), ('_Number',))
    """
    if text.endswith("?"):
        return (*type_of(text[:-1]), "None")
    several = re.fullmatch(r"(.+)\[(\d*)\]", text)
    if several is None:
        return (OF_SCHEMAS[text],)
    element = type_of(several[1])
    return (*(element if several[2] else ()), f"Sequence[{' | '.join(element)}]")


def signatures(packet: str) -> list[Signature]:
    """Return the overloads of an operator packet.

    Overloads that differ only in types are merged, and `out` becomes a parameter.
    """
    found: list[Signature] = []
    out_of: dict[str, str] = {}
    known = [schemas.schema_of(packet, overload) for overload in schemas.overload_names(packet)]
    for schema in filter(None, known):
        if outs := [each for each in schema.arguments if each.is_out]:
            names = " ".join(each.name for each in schema.arguments if not each.is_out)
            out_of[names] = "Tensor" if len(outs) == 1 else "Sequence[Tensor]"
    for schema in filter(None, known):
        if any(each.is_out for each in schema.arguments):
            continue
        if not all(each.name for each in schema.arguments) or any(
            each.type.endswith("]") and each.alias_info is not None and each.alias_info.is_write
            for each in schema.arguments
        ):
            continue  # TorchScript uses these overloads for lists
        try:
            signature = _signature(schema, out_of)
        except KeyError:  # a type of TorchScript
            continue
        found = list(_added(found, signature))
    return [each for each in found if not any(_covers(other, each) for other in found)]


def _covers(wider: Signature, signature: Signature) -> bool:
    """Return whether `signature` equals `wider` without some of the optional parameters of `wider`."""
    further = [each for each in wider.parameters if each.name not in signature.names]
    kept = tuple(each for each in wider.parameters if each.name in signature.names)
    return (
        kept == signature.parameters
        and wider.returns == signature.returns
        and bool(further)
        and all(each.default is not None for each in further)
    )


def _signature(schema: schemas.FunctionSchema, out_of: dict[str, str]) -> Signature:
    parameters = []
    for each in schema.arguments:
        default = (
            None if each.required else "..." if each.type.rstrip("?") in NUMBERED else _default(each.default_value)
        )
        types = type_of(each.type)
        if each.type == "Generator?":
            default = "None"
        elif each.name == "pin_memory":
            default = "False"
        elif each.name == "stride" and each.default_value == []:
            types, default = (*types, "None"), "None"
        parameters.append(Parameter(each.name, types, default, each.kwarg_only))
    names = {each.name for each in schema.arguments}
    if (out := out_of.get(" ".join(each.name for each in schema.arguments))) or (
        out := out_of.get(" ".join(each.name for each in schema.arguments if each.name not in FACTORY))
    ):
        parameters.append(Parameter("out", (out, "None"), "None", True))
    if names >= {"dtype", "layout", "device", "pin_memory"}:
        parameters.append(Parameter("requires_grad", ("_bool",), "False", True))
    return Signature(tuple(parameters), _returned(schema))


FACTORY = frozenset({"dtype", "layout", "device", "pin_memory"})


def _returned(schema: schemas.FunctionSchema) -> str:
    results = schema.returns
    if not results:
        return "None"
    types = [RETURNED.get(each.type) or " | ".join(type_of(each.type)) for each in results]
    if len(types) == 1:
        return types[0]
    name = schema.name.removeprefix("aten::")
    if all(each.name for each in results) and name in BY_NAME:
        return f"return_types.{name}"
    return f"tuple[{', '.join(types)}]"


def _default(value: object) -> str:
    return repr(value) if value is None or isinstance(value, bool | int | float | str) else "..."


def _added(found: Iterable[Signature], new: Signature) -> Iterator[Signature]:
    """Add a signature, or merge its types with a signature that has the same names."""
    taken = False
    for known in found:
        if not taken and known.returns == new.returns and _alike(known, new):
            taken = True
            yield Signature(tuple(map(_either, known.parameters, new.parameters)), known.returns)
        else:
            yield known
    if not taken:
        yield new


def _alike(known: Signature, new: Signature) -> bool:
    shape = [[(each.name, each.default is None) for each in signature.parameters] for signature in (known, new)]
    differing = sum(a.types != b.types for a, b in zip(known.parameters, new.parameters, strict=False))
    return shape[0] == shape[1] and differing <= 1


def _either(known: Parameter, new: Parameter) -> Parameter:
    return known._replace(
        types=tuple(dict.fromkeys((*known.types, *new.types))), keyword_only=known.keyword_only or new.keyword_only
    )
