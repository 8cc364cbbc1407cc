"""What few tensors have besides what all have, and who is told of new tensors, which few programs ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

OWN: Any = "the tensor's own"


class Extra:
    """What few tensors have, so that the others carry one `None` for all of it.

    `hooks`: the hooks of a leaf; `post_hooks`: called after accumulation; `accumulator`: weak reference to the
    `AccumulateGrad`; `inference`: made in inference mode; `number`: the Python number this constant stands for;
    `tangents`: in forward mode, the tangent by level; `transform`: the transform of a function whose graph begins here;
    `made_by`: the operations that lead from base to view, where followed; `grad_dtype`: of `.grad`, None (any) or `OWN`;
    `former`: shape and dtype of a leaf before its `data` was replaced, which graphs recorded until then go by;
    `stands_for`: weak reference to the tensor that has been changed by itself, which a node has saved this one for.
    """

    __slots__ = tuple(
        "accumulator former grad_dtype hooks inference made_by number post_hooks stands_for tangents transform".split()
    )

    def __init__(self) -> None:
        self.hooks: Any = None
        self.post_hooks: Any = None
        self.accumulator: Any = None
        self.inference = False
        self.number: Any = None
        self.tangents: dict[Any, Any] | None = None
        self.transform: Any = None
        self.made_by: Any = None
        self.stands_for: Any = None
        self.former: tuple[tuple[int, ...], Any] | None = None
        self.grad_dtype: Any = OWN


class _Creations:
    """`notes` are called with each tensor that `wrap` makes; there is one while a function is being transformed.

    For one on the memory of another it is called again, with both.
    """

    __slots__ = ("notes",)

    def __init__(self) -> None:
        self.notes: tuple[Callable[..., None], ...] = ()


CREATIONS = _Creations()
