"""The named tuples that operators with several outputs return, printed as in PyTorch."""

from __future__ import annotations

from typing import Any

from .._runtime.places import module_named

BY_NAME: dict[str, type] = {}
"""The classes that have been created, by name, including classes for `out=`."""


def return_type(name: str, *fields: str) -> Any:
    """Return the class of tuples `torch.return_types.<name>`, shared by overloads. Its `out` is the class for `out=`."""
    known: Any = BY_NAME.get(name)
    if known is not None and known.__match_args__ == fields:
        return known
    cls = _named_tuple(name, fields)
    cls.out = _named_tuple(f"{name}_out", fields)
    return cls


def _named_tuple(name: str, fields: tuple[str, ...]) -> Any:

    def make(cls: Any, *values: Any) -> Any:
        if len(values) == 2 and type(values[0]) is tuple and values[1] == {}:  # the form in pickles
            values = values[:1]
        if len(values) == 1 and len(fields) > 1:
            values = tuple(values[0])
        if len(values) != len(fields):
            raise TypeError(
                f"torch.return_types.{name}() takes a {len(fields)}-sequence ({len(values)}-sequence given)"
            )
        return tuple.__new__(cls, values)

    def show(self: Any) -> str:
        shown = ",\n".join(f"{field}={value!r}" for field, value in zip(fields, self, strict=True))
        return f"torch.return_types.{name}(\n{shown})"

    members: dict[str, Any] = {
        "__slots__": (),
        "__module__": module_named("return_types"),
        "__new__": make,
        "__repr__": show,
        "__reduce__": lambda self: (type(self), (tuple(self), {})),
        "__match_args__": fields,
        "n_fields": len(fields),
        "n_sequence_fields": len(fields),
        "n_unnamed_fields": 0,
    }
    for index, field in enumerate(fields):
        members[field] = property(lambda self, index=index: tuple.__getitem__(self, index))  # type: ignore[misc]
    BY_NAME[name] = type(name, (tuple,), members)
    return BY_NAME[name]
