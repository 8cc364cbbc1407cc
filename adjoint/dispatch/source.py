"""Generated source: its lines, and the source of each function."""

from __future__ import annotations

from collections.abc import Iterable

from .._runtime.forks import compile_source as compile_source

SOURCES: dict[str, str] = {}
"""The source of each generated function and node. For example, `print(adjoint.operators.SOURCES["mul"])`."""


def public_name(name: str) -> str:
    """Return the public name of a parameter. `self` in a declaration is `input` for users."""
    return "input" if name == "self" else name


def indented(lines: Iterable[str]) -> list[str]:
    """Return the lines, indented by one step."""
    return ["    " + line for line in lines]


def block(head: str, body: Iterable[str]) -> list[str]:
    """Return a compound statement."""
    return [head, *indented(body)]


def function(name: str, parameters: str, body: Iterable[str]) -> str:
    """Return the source of a function."""
    return "\n".join(block(f"def {name}({parameters}):", body)) + "\n"


def public_function(name: str, parameters: str, body: Iterable[str]) -> str:
    """Return the source of a function whose errors end at the line of the user's call."""
    tried = [*block("try:", body), "except Exception as error:", "    shorten(error)", "    raise"]
    return function(name, parameters, tried)


def guard(alternatives: Iterable[str], *statements: str) -> list[str]:
    """Return the lines that execute the statements if one of the conditions holds."""
    return block(f"if {condition}:", statements) if (condition := " or ".join(alternatives)) else []
