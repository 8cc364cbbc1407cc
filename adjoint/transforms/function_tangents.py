"""The tangents that the `jvp` of a custom `Function` returns: checks, and rules for views and changed inputs."""

from __future__ import annotations

from typing import Any

from ..autograd.function import FunctionNode
from ..tensor import Tensor


def checked_tangents(returned: Any, count: int) -> tuple[Tensor | None, ...]:
    """Return the result of a `jvp` as a tuple of `count` tangents. Raise RuntimeError for any other result."""
    tangents: tuple[Any, ...] = returned if isinstance(returned, tuple) else (returned,)
    for number, tangent in enumerate(tangents):
        if tangent is not None and not isinstance(tangent, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(tangent).__name__}) for grad output {number}.")
    if len(tangents) != count:
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {count} but got {len(tangents)})"
        )
    return tangents


def check_changed(given: Tensor | None, version: int | None, tangent: Tensor | None) -> None:
    """Raise an error unless `jvp` has changed and returned the tangent `given`, as `forward` has done with the input."""
    if given is None or given._version == version:
        raise RuntimeError(
            "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an "
            "input inplace, then the jvp function must modify the corresponding gradient inplace."
        )
    if tangent is not given:
        raise RuntimeError(
            "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying an input "
            "inplace, then the jvp function must modify the gradient inplace and return it as-is."
        )


def is_view_of_dual(output: Tensor, tangent: Tensor, args: tuple[Any, ...], given: list[Any]) -> bool:
    """Return whether an output is a view of an input with a tangent, of which its tangent must then be a view."""
    if output._base is None:
        return False
    found = False
    for arg, direction in zip(args, given, strict=True):
        if (
            not isinstance(arg, Tensor)
            or direction is None
            or output._base is not (arg if arg._base is None else arg._base)
        ):
            continue
        if tangent._base is None:
            raise RuntimeError(
                "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
            )
        if tangent._base is not (direction if direction._base is None else direction._base):
            of = "the given grad input" if direction._base is None else "the same base as the given grad input"
            raise RuntimeError(f"A custom Function is returning a view but the jvp is not returning a view of {of}.")
        found = True
    return found


def check_layout(view: Tensor, tangent: Tensor) -> None:
    """Raise an error unless `tangent` has the layout of `view`, so that in-place changes reach the same elements."""
    if tangent.stride() != view.stride():
        raise RuntimeError(
            "Expected the output of forward differentiable view operations to have the tangent have the same layout as primal. "
            f"The strides of the view are {list(view.stride())} and those of its tangent {list(tangent.stride())}."
        )


def share_tangents(output: Tensor) -> None:
    """Give the saved form of an output the tangents of that output."""
    edge = output._edge
    for saved in edge[0]._saved or () if type(edge) is tuple and isinstance(edge[0], FunctionNode) else ():
        if saved is not None and saved.output_nr == edge[1] and isinstance(saved.tensor, Tensor):
            saved.tensor._own_extra().tangents = output._own_extra().tangents
