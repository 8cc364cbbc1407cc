"""`functionalize` turns a function with in-place operations into a function without in-place operations."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import adjoint as torch

from ..transforms import reverse as transforms
from ..utils import _python_dispatch
from .functional_operators import FunctionalOperators

__all__ = ["functionalize"]


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Transform `func` as if each of its in-place operations created a new tensor instead.

    Modes that receive operators, such as those of `make_fx`, receive operators without in-place changes, and with
    `remove="mutations_and_views"` copies in place of views. Otherwise the operations are not replaced. The visible effects
    are:

    - Within `vmap`, a tensor that the function creates may be changed in place by batched values, because it is batched
      from the beginning.
    - A new value of an argument is written to the argument. Results are separate tensors and, with
      `remove="mutations_and_views"`, not views.
    - As in all function transforms, the function must not call `backward` or `requires_grad_`.

    Arguments must not share memory with one another.

    Args:
        func: a function that takes and returns tensors, which may be nested in tuples, lists and dicts.
        remove: `"mutations"`, or `"mutations_and_views"`.

    >>> import adjoint as torch
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
        if _python_dispatch._get_current_dispatch_mode() is not None:
            with transforms.Functional():
                with FunctionalOperators(remove == "mutations_and_views") as operators:
                    result = func(*args, **keywords)
                result = transforms.tree_map(operators.result_of, result)
                operators.finish(given)
            return result
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
    """Return whether one tensor is a view of the other, or both are views of one tensor."""
    bases = [tensor._base if tensor._is_view() else tensor for tensor in (one, other)]
    return bases[0] is bases[1]


@functools.cache
def _each_its_own() -> Any:
    """Return the mode in which new tensors are batched, made on first use because modes slow down every function."""

    class EachItsOwn(torch.overrides.TorchFunctionMode):
        def __init__(self, transform: Any) -> None:
            self.transform = transform

        def __torch_function__(
            self, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            return transforms.tree_map(self.transform.spread, func(*args, **(kwargs or {})))

    return EachItsOwn
