"""`functionalize`: functions whose in-place operations are those of a function that has none."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import adjoint as torch

from ..transforms import reverse as transforms

__all__ = ["functionalize"]


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """`func` as a function that gives what it would if each of its in-place operations made a new tensor instead.

    Operations are not traced here, so none is replaced; what there is to be seen of it is that

    - within `vmap`, a tensor that the function makes may be changed in place by what differs from example to example: it is
      one for each example from the beginning;
    - what an argument is changed to is written to it, but results are other tensors than the arguments that are changed,
      and, with `remove="mutations_and_views"`, no views;
    - neither `backward` nor `requires_grad_` may be called within the function, as in all functions being transformed.

    Arguments must not share memory with one another.

    Args:
        func: takes and returns tensors, in tuples, lists and dicts as it likes.
        remove: `"mutations"`, or `"mutations_and_views"`.

    >>> import adjoint as torch

    from ..transforms import reverse as transforms
    >>> def first_only(x):
    ...     result = torch.zeros(2)
    ...     result[0] = x
    ...     return result
    >>> torch.vmap(torch.func.functionalize(first_only))(torch.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [2., 0.]])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n     "
            "remove='mutations': all inplace and out= operators will be removed from the program, and replaced with their "
            "out-of-place equivalents.\n     remove='mutations_and_views': In addition to the above, all aliasing operators "
            "{view} will be replaced with their non-aliasing counterparts, {view}_copy.\n"
        )

    @functools.wraps(func)
    def functionalized(*args: Any, **keywords: Any) -> Any:
        given = [value for value in transforms.tree_flatten((args, keywords))[0] if isinstance(value, torch.Tensor)]
        versions = [_version(value) for value in given]
        with transforms.Functional() as transform, _each_its_own()(transform) if transform.batches else nullcontext():
            result = func(*args, **keywords)
        changed = [value for value, version in zip(given, versions, strict=True) if _version(value) != version]

        def apart(leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            of_changed = any(leaf is value or _share_memory(leaf, value) for value in changed)
            return leaf.clone() if of_changed or (remove == "mutations_and_views" and leaf._is_view()) else leaf

        return transforms.tree_map(apart, result)

    return functionalized


def _version(tensor: torch.Tensor) -> int | None:
    return None if tensor.is_inference() else tensor._version


def _share_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether one of two tensors is a view of the other, or both are views of one tensor."""
    bases = [tensor._base if tensor._is_view() else tensor for tensor in (one, other)]
    return bases[0] is bases[1]


@functools.cache
def _each_its_own() -> Any:
    """The mode in which new tensors have a value for each example. It is made on first use: modes slow every function."""

    class EachItsOwn(torch.overrides.TorchFunctionMode):
        def __init__(self, transform: Any) -> None:
            self.transform = transform

        def __torch_function__(
            self, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            return transforms.tree_map(self.transform.spread, func(*args, **(kwargs or {})))

    return EachItsOwn
