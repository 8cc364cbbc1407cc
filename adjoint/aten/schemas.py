"""The signatures of the operators of PyTorch's dispatcher, such as `torch.ops.aten.sum.dim_IntList._schema`.

They are read from `schemas.txt` on first use. `scripts/list_aten_schemas.py` writes this file.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from .. import dtypes
from .._runtime.first_use import computed_once
from ..device import contiguous_format

REDUCTIONS = ("none", "mean", "sum")
"""How losses are reduced, by PyTorch's numbers."""


class AliasInfo(NamedTuple):
    """The aliasing of an argument and results: the letter of its memory, and whether the operator writes to it."""

    letter: str
    is_write: bool

    @property
    def before_set(self) -> set[str]:
        """The letter of the memory, as a set."""
        return {self.letter}


class Argument:
    """One argument, or one result, of an operator. `type` is its type in PyTorch's notation.

    `element`: the type of one element of a list, or of the value. `optional`: whether None is allowed. `is_list`:
    whether the value is a list. `expands`: whether a single element becomes a list. `is_out`: whether the operator
    writes its result to the argument.
    """

    __slots__ = (
        "alias_info", "default_value", "element", "expands", "is_list", "is_out", "kwarg_only", "name", "optional", "required",
        "type",
    )  # fmt: skip

    def __init__(self, text: str, kwarg_only: bool) -> None:
        text, given, default = text.partition("=")
        kind, _, self.name = text.rpartition(" ") if " " in text else (text, "", "")
        alias = re.search(r"\((\w+)(!?)[^)]*\)", kind)
        self.alias_info = None if alias is None else AliasInfo(alias[1], bool(alias[2]))
        self.type = kind if alias is None else kind.replace(alias[0], "")
        self.kwarg_only = kwarg_only
        self.required = not given
        self.default_value = _value(default) if given else None
        self.is_out = kwarg_only and self.alias_info is not None and self.alias_info.is_write
        self.element = self.type.replace("SymInt", "int").removesuffix("?")
        self.optional, self.is_list, self.expands = self.type.endswith("?"), self.element.endswith("]"), False
        if self.is_list:
            self.element, _, count = self.element.removesuffix("]").rpartition("[")
            self.expands = count != ""

    def has_default_value(self) -> bool:
        """Return whether the argument may be omitted."""
        return not self.required

    def whole_default(self) -> Any:
        """Return the default. A single value for a list is repeated as often as the type requires."""
        return self._repeated(self.default_value, int | float)

    def whole(self, value: Any) -> Any:
        """Return a given value. A single number for a list of `int` or `float` is repeated as often as the type requires."""
        repeatable = {"int": int, "float": float}.get(self.type.partition("[")[0])
        return value if repeatable is None else self._repeated(value, repeatable)

    def _repeated(self, value: Any, repeatable: Any) -> Any:
        count = re.search(r"\[(\d+)\]", self.type) if isinstance(value, repeatable) else None
        return value if count is None else [value] * int(count[1])

    def __repr__(self) -> str:
        return f"<Argument {self.type} {self.name}>"


class FunctionSchema:
    """The signature of one overload of an operator.

    >>> import adjoint as torch
    >>> schema = torch.ops.aten.add_.Tensor._schema
    >>> schema
    aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
    >>> schema.is_mutable, [argument.name for argument in schema.arguments]
    (True, ['self', 'other', 'alpha'])
    """

    def __init__(self, text: str, namespace: str = "aten") -> None:
        self._text = f"{namespace}::{text}"
        name, _, rest = text.partition("(")
        packet, _, self.overload_name = name.partition(".")
        self.name = f"{namespace}::{packet}"
        arguments, _, returned = rest.rpartition(") -> ")
        self.arguments: list[Argument] = []
        keyword = False
        for part in _parts(arguments):
            if part == "*":
                keyword = True
            else:
                self.arguments.append(Argument(part, keyword))
        inner = returned[1:-1] if returned.startswith("(") else returned
        self.returns = [Argument(part, False) for part in _parts(inner)]

    @computed_once
    def returns_list(self) -> bool:
        """Whether the operator returns one list."""
        return len(self.returns) == 1 and self.returns[0].is_list

    @computed_once
    def is_mutable(self) -> bool:
        """Whether the operator changes one of its arguments."""
        return any(each.alias_info is not None and each.alias_info.is_write for each in self.arguments)

    @computed_once
    def is_view(self) -> bool:
        """Whether a result shares the memory of an argument that is not changed."""
        return not self.is_mutable and any(each.alias_info is not None for each in self.returns)

    def __repr__(self) -> str:
        return self._text


_KIND = re.compile(
    r"(Tensor|SymInt|SymBool|int|float|bool|complex|Scalar|ScalarType|str|Device|Layout|MemoryFormat|Generator|Dimname|Storage|Any|"
    r"__torch__\S*|\w+\.\w[\w.]*)\b"
)
"""The names of types in schemas."""


def checked_schema(schema: str) -> str:
    """Return a signature in PyTorch's notation unchanged, or raise an error for any other text."""
    name, begun, rest = schema.partition("(")
    if not begun:
        if " " in name.strip():
            raise RuntimeError(f"expected eof but found 'ident' here:\n{schema}")
        raise RuntimeError("Tried to parse a function schema but only the operator name was given")
    if ") -> " not in rest:
        raise RuntimeError(f"expected arrow but found 'eof' here:\n{schema}")
    parsed = FunctionSchema(schema)
    for argument in parsed.arguments:
        if not argument.name:
            raise RuntimeError(f"expected ident but found ')' here:\n{schema}")
    for argument in (*parsed.arguments, *parsed.returns):
        if not _KIND.match(argument.type):
            raise RuntimeError(
                "\nunknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar; for a "
                "full list, please see https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md#func :\n"
                f"{schema}"
            )
    return schema


def parse_schema(schema: Any) -> FunctionSchema:
    """Return the signature of an operator from a text in PyTorch's notation. Without a namespace, the operator is of `aten`.

    Raises:
        RuntimeError: if it is not a signature.
        TypeError: if it is not a string.

    >>> import adjoint as torch
    >>> torch._C.parse_schema("twice(Tensor x) -> Tensor").arguments[0].name
    'x'
    """
    if not isinstance(schema, str):
        raise TypeError(
            f"parse_schema(): incompatible function arguments. Expected (schema: str), got {type(schema).__name__}"
        )
    namespace, found, text = checked_schema(schema).partition("::")
    return FunctionSchema(text, namespace) if found and "(" not in namespace else FunctionSchema(schema)


def _parts(text: str) -> list[str]:
    """Return the parts between commas, ignoring commas in brackets."""
    parts, depth, begun = [], 0, 0
    for place, letter in enumerate(text):
        if letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == "," and not depth:
            parts.append(text[begun:place].strip())
            begun = place + 1
    last = text[begun:].strip()
    return [*parts, last] if last else parts


_WORDS: dict[str, Any] = {
    "None": None, "True": True, "False": False, "Mean": 1, "Sum": 2,
    "contiguous_format": contiguous_format, "long": dtypes.int64, "float": dtypes.float32,
}  # fmt: skip


def _value(text: str) -> Any:
    """Return the value of a default."""
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith("["):
        return [_value(part) for part in _parts(text[1:-1])]
    if text.startswith(('"', "'")):
        return text[1:-1]
    try:
        return int(text)
    except ValueError:
        return float(text)


@cache
def _lines() -> dict[str, dict[str, str]]:
    """Return the text of each signature, by packet and overload."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for line in Path(__file__).with_name("schemas.txt").read_text(encoding="utf-8").splitlines()[1:]:
        packet, _, overload = line.partition("(")[0].partition(".")
        found[packet][overload or "default"] = line
    return dict(found)


def packets() -> frozenset[str]:
    """Return the names of the operators with known signatures."""
    return frozenset(_lines())


def overload_names(packet: str) -> list[str]:
    """Return the names of the overloads of an operator, or none if the operator is not known."""
    return list(_lines().get(packet, ()))


@cache
def schema_of(packet: str, overload: str) -> FunctionSchema | None:
    """Return the signature of an overload, or None if it is not known."""
    text = _lines().get(packet, {}).get(overload)
    return None if text is None else FunctionSchema(text)
