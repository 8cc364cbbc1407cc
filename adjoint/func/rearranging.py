"""`rearrange`: name, reorder, split and merge the dimensions of a tensor by a pattern, as in einops."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from math import prod

import adjoint as torch

from .._runtime.tracebacks import warn

__all__ = ["DimensionBindError", "rearrange"]

ELLIPSIS = "…"
BARE = "..."  # without parentheses, it means any number of dimensions
Groups = list[list[str]]


class DimensionBindError(Exception):
    """The error for sizes that do not match the pattern."""


def rearrange(
    tensor: torch.Tensor | list[torch.Tensor] | tuple[torch.Tensor, ...], pattern: str, **axes_lengths: int
) -> torch.Tensor:
    """Rearrange the dimensions of `tensor` by `pattern` (A. Rogozhnikov, Einops, 2022).

    Args:
        tensor: the tensor. Several tensors of one shape are stacked along a new first dimension.
        pattern: the names of the dimensions before and after, such as `"a b -> b a"`. Parentheses contain the names
            that form one dimension together. `1` or `()` is a dimension of size 1, and `...` stands for all other
            dimensions.
        axes_lengths: sizes by name, for dimensions that are split.

    Raises:
        ValueError: if the pattern is not well-formed or does not match the number of dimensions.
        DimensionBindError: if sizes do not match.

    >>> import adjoint as torch
    >>> torch.func.rearrange(torch.arange(6).reshape(2, 3), "a b -> (b a)")
    tensor([0, 3, 1, 4, 2, 5])
    """
    if not isinstance(tensor, torch.Tensor):
        tensor = torch.stack(tensor)
    left, right = _sides(pattern)
    for name, length in axes_lengths.items():
        if not isinstance(length, int):
            raise TypeError(f"rearrange axis lengths must be integers, got: {type(length)}")
        if not any(name in group for group in left):
            raise ValueError(f"Identifiers not found in rearrange expression: {{{name!r}}}")
    named, ndim = sum(group != [BARE] for group in left), tensor.dim()
    dots = ndim - named if [BARE] in left else 0
    if named + dots != ndim or dots < 0:
        raise ValueError(
            f"Number of dimensions in pattern ({named}) must be equal to the number of dimensions in the tensor ({ndim})"
        )
    others = [f"{ELLIPSIS}{index}" for index in range(dots)]
    before = [part for group in left for part in ([[name] for name in others] if group == [BARE] else [group])]
    sizes = _sizes(before, tensor.shape, axes_lengths)
    order = [name for group in before for name in group]
    after = [name for group in right for name in _with_others(group, others)]
    apart = tensor.reshape([sizes[name] for name in order]).permute([order.index(name) for name in after])
    if [BARE] in right:
        place = right.index([BARE])
        right = [*right[:place], *([name] for name in others), *right[place + 1 :]]
    return apart.reshape([prod(sizes[name] for name in _with_others(group, others)) for group in right])


def _with_others(group: list[str], others: list[str]) -> list[str]:
    """Return the names of a group, with the ellipsis replaced by its names."""
    return [name for part in group for name in (others if part in (BARE, ELLIPSIS) else [part])]


def _sizes(groups: Groups, shape: Sequence[int], given: dict[str, int]) -> dict[str, int]:
    """Return the size of each name. A missing size is computed from the other sizes of its group."""
    sizes: dict[str, int] = {}
    labels = {name: f"d{number}" for number, name in enumerate(name for group in groups for name in group)}
    for group, size in zip(groups, shape, strict=True):
        unknown = [name for name in group if name not in given]
        known = prod(given[name] for name in group if name in given)
        if not group and size != 1:
            raise ValueError("rearrange only supports unnamed axes of size 1")
        if len(unknown) > 1:
            raise DimensionBindError(
                f"cannot infer the sizes of two dimensions at once {' and '.join(labels[name] for name in unknown)}"
            )
        if not unknown and known != size:
            raise DimensionBindError(
                f"Dimension sizes to do not match ({size} != {known}) when matching dimension pack "
                f"({', '.join(labels[name] for name in group)})"
            )
        if unknown and known != 1 and size % known:
            raise DimensionBindError(
                f"inferred dimension does not evenly fit into larger dimension: {size} vs "
                f"{tuple(given.get(name, '?') for name in group)}"
            )
        for name in group:
            sizes[name] = given[name] if name in given else size // known
    return sizes


def _sides(pattern: str) -> tuple[Groups, Groups]:
    """Return the groups of names on both sides of a pattern."""
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = map(_groups, sides)
    if any(ELLIPSIS in group for group in left):
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    names = [{ELLIPSIS if name == BARE else name for group in side for name in group} for side in (left, right)]
    if ELLIPSIS in names[1] - names[0]:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if names[0] ^ names[1]:
        raise ValueError(
            f"Identifiers only on one side of rearrange expression (should be on both): {names[0] ^ names[1]}"
        )
    return left, right


def _groups(expression: str) -> Groups:
    """Return one group of names for each dimension of an expression."""
    if "." in expression:
        if "..." not in expression:
            raise ValueError("Expression may contain dots only inside ellipsis (...)")
        if expression.count("...") != 1 or expression.count(".") != 3:
            raise ValueError("Expression may contain dots only inside ellipsis (...); only one ellipsis for tensor ")
        expression = expression.replace("...", f" {ELLIPSIS} ")
    groups: Groups = []
    seen: set[str] = set()
    inside = False
    for token in re.findall(r"[()]|[^()\s]+", expression):
        if token == "(":
            if inside:
                raise ValueError("Axis composition is one-level (brackets inside brackets not allowed)")
            inside = True
            groups.append([])
        elif token == ")":
            if not inside:
                raise ValueError("Brackets are not balanced")
            inside = False
        elif token == "1":
            groups += [] if inside else [[]]
        else:
            _check_name(token)
            if token in seen:
                raise ValueError(f"Indexing expression contains duplicate dimension '{token}'")
            seen.add(token)
            if inside:
                groups[-1].append(token)
            else:
                groups.append([BARE if token == ELLIPSIS else token])
    if inside:
        raise ValueError(f"Imbalanced parentheses in expression: '{expression}'")
    return groups


def _check_name(name: str) -> None:
    if name == ELLIPSIS:
        return
    if strange := next((char for char in name if not (char.isalnum() or char == "_")), None):
        raise ValueError(f"Unknown character '{strange}'")
    if name.isdecimal():
        raise ValueError("rearrange only supports unnamed axes of size 1")
    if not name.isidentifier():
        raise ValueError(f"Invalid axis identifier: {name}\nnot a valid python identifier")
    if name[0] == "_" or name[-1] == "_":
        raise ValueError(f"Invalid axis identifier: {name}\naxis name should should not start or end with underscore")
    if keyword.iskeyword(name):
        warn(f"It is discouraged to use axes names that are keywords: {name}", RuntimeWarning)
