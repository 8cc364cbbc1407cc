"""The source of the parameters of each operator's function: names, defaults, NumPy's names, deprecated orders."""

from __future__ import annotations

from typing import Any

from .declaration import Operator
from .source import public_name

NUMPY_NAMES = {"x": "input", "a": "input", "x1": "input", "x2": "other", "axis": "dim", "keepdims": "keepdim"}
"""The public names of parameters, by NumPy's names for them."""


def signature(op: Operator, defaults: dict[str, Any]) -> str:
    """Return the parameters as they appear in the `def` of the function. Defaults are stored in its namespace."""
    parts, star = [], False
    for name in op.names:
        if name in op.keyword_only and not star:
            parts.append("*more" if op.deprecated_order else "*")
            star = True
        default = "MISSING"
        if name in op.defaults:
            default = f"default_{name}"
            defaults[default] = op.defaults[name]
        parts.append(f"{public_name(name)}={default}")
    if not star:
        parts.append("*")
    if op.out:
        parts.append("out=None")
    parts.extend(f"{name}=MISSING" for name in numpy_names(op))
    if parts[-1] == "*":
        parts.pop()
    return ", ".join(parts)


def numpy_names(op: Operator) -> list[str]:
    """Return the alternative names that this operator's parameters accept."""
    names = {public_name(name) for name in op.names}
    meant = [[other for other, own in NUMPY_NAMES.items() if own == public_name(name)] for name in op.names]
    return [other for others in meant for other in others if other not in names]


def variant_signature(op: Operator, defaults: dict[str, Any], variant: str) -> str:
    """Return the parameters of a variant, which are the parameters of the declaration."""
    parts: list[str] = []
    for name in op.names:
        if name in op.keyword_only and not {"*", "*more"} & {*parts}:
            parts.append("*more" if op.deprecated_order and variant == "inplace" else "*")
        if name in op.defaults:
            defaults[f"default_{name}"] = op.defaults[name]
            parts.append(f"{public_name(name)}=default_{name}")
        else:
            checked = parts and (variant.startswith("inplace") or any("=" in part for part in parts))
            parts.append(f"{public_name(name)}{'=MISSING' if checked else ''}")
    return ", ".join(parts)


def deprecated_order_lines(op: Operator, variant: str) -> list[str]:
    """Return the lines that put the arguments of a deprecated form, with numbers before tensors, into their places."""
    if not op.deprecated_order or variant not in ("function", "inplace"):
        return []
    positional = ", ".join(public_name(name) for name in op.names if name not in op.keyword_only)
    keywords = ", ".join(name for name in op.names if name in op.keyword_only)
    places = f"OP, ({positional}, *more), ({keywords},), {variant == 'inplace'}"
    return ["if more:", f"    {positional}, {keywords}, = in_new_order({places})"]
