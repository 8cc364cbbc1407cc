"""Rare attributes of tensors, and the functions that are called for new tensors."""

from __future__ import annotations

from typing import Any

from .sequence import sequence_numbers
from .tracebacks import warn

MOST_FORMERS = 16
"""The maximum number of earlier shapes and dtypes of a leaf that are stored."""

OWN: Any = "the tensor's own"


class Tangents(dict[Any, Any]):
    """The tangents of a tensor, by level. Levels hold weak references to them, so they are freed with the tensor."""

    __slots__ = ("__weakref__",)
    __hash__ = object.__hash__  # type: ignore[assignment]


class Extra:
    """The rare attributes of a tensor in one record.

    Other tensors store a single `None`.

    `hooks`: the hooks of a leaf. `post_hooks`: the hooks that run after accumulation. `accumulator`: a weak reference
    to the `AccumulateGrad`. `inference`: whether the tensor was created in inference mode. `number`: the Python number
    that this constant replaces. `tangents`: the tangents in forward mode, by level. `transform`: the serial number of
    the function transform whose graph this leaf belongs to. `made_by`: the operations that lead from the base to this
    view, if recorded. `grad_dtype`: the dtype of `.grad`, None (any) or `OWN`. `formers`: earlier shapes and dtypes of
    a leaf, each with the number of the first node that was recorded after the change. `stands_for`: a weak reference to
    an operand that its operation changes in place. The node saves this tensor in place of the operand.
    """

    __slots__ = tuple(
        "accumulator formers grad_dtype hooks inference made_by number post_hooks stands_for tangents transform".split()
    )

    def __init__(self) -> None:
        self.hooks: Any = None
        self.post_hooks: Any = None
        self.accumulator: Any = None
        self.inference = False
        self.number: Any = None
        self.tangents: Tangents | None = None
        self.transform: int | None = None
        self.made_by: Any = None
        self.stands_for: Any = None
        self.formers: tuple[tuple[int, tuple[int, ...], Any], ...] = ()
        self.grad_dtype: Any = OWN


def warn_of_hooks(extra: Extra | None) -> None:
    """Warn about each hook of a tensor that is serialized, because hooks are not serialized."""
    for hook in (extra.hooks or {}).values() if extra is not None else ():
        if not getattr(hook, "__torch_unserializable__", False):
            warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning"
            )


def note_former(leaf: Any, array: Any) -> None:
    """Store the shape and dtype of a leaf before `array` replaces its array, for gradients from earlier graphs."""
    own = leaf._array
    if array.shape != own.shape or array.dtype != own.dtype:
        extra = leaf._own_extra()
        extra.formers = (*extra.formers[1 - MOST_FORMERS :], (next(sequence_numbers), own.shape, own.dtype))


def form_for(leaf: Any, source: Any) -> tuple[tuple[int, ...], Any]:
    """Return the shape and dtype of gradients from the node `source`: the form of the leaf when `source` was recorded."""
    if leaf._extra is not None and source is not None:
        for number, shape, dtype in leaf._extra.formers:
            if source._sequence < number:
                return shape, dtype
    return leaf._array.shape, leaf._array.dtype


NOTING: dict[int, bool] = {}
"""The threads, by number, in which code that creates a tensor calls `note_creation`, for a function transform."""
