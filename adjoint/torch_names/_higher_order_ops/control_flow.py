"""Control flow as functions.

`torch.cond` calls one of two functions, according to a truth value. `torch.while_loop` calls a function repeatedly
while a condition holds. `scan` calls a function that carries a state along a dimension. `map` applies a function to
each part of tensors along their first dimension. `associative_scan` computes all partial results of an associative
function along a dimension, in a logarithmic number of steps (Blelloch, "Prefix sums and their applications", 1990).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import adjoint as torch
from adjoint._runtime.tracebacks import ending_at_caller
from adjoint.tensor import wrap_dim
from adjoint.torch_names._C._functorch import is_batchedtensor
from adjoint.transforms import tree as pytree

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]


@ending_at_caller
def cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """Return `true_fn(*operands)` if `pred` is true, otherwise `false_fn(*operands)`.

    Within `vmap`, if `pred` differs between examples, both functions run, and `torch.where` selects the results.

    Args:
        pred: a bool, or a bool tensor with one element.
        true_fn, false_fn: the functions.
        operands: the arguments of the functions.

    Raises:
        RuntimeError: if `pred` has another type, a function is not callable, or the operands are not a tuple or list.

    >>> import adjoint as torch
    >>> torch.cond(torch.tensor(True), torch.sin, torch.cos, (torch.zeros(1),))
    tensor([0.])
    """
    if isinstance(pred, torch.Tensor):
        if pred.numel() != 1 or pred.dtype is not torch.bool:
            raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    elif not isinstance(pred, bool | int | float):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but got "
            f"{operands}."
        )
    if isinstance(pred, torch.Tensor) and is_batchedtensor(pred):
        return pytree.tree_map(partial(torch.where, pred), true_fn(*operands), false_fn(*operands))
    return true_fn(*operands) if pred else false_fn(*operands)


@ending_at_caller
def while_loop(cond_fn: Any, body_fn: Any, carried_inputs: Sequence[Any]) -> Any:
    """Run `body_fn` on `carried_inputs`, and then on its own results, while `cond_fn` of these values is true.

    Return the last values.

    Args:
        cond_fn: a function that returns a bool, or a bool tensor with one element.
        body_fn: a function that returns as many values as it takes, in a tuple. A single tensor may be returned alone.
        carried_inputs: the initial values.

    Raises:
        RuntimeError: if an argument has another type, or if `body_fn` returns another number of values.

    >>> import adjoint as torch
    >>> torch.while_loop(lambda n, x: n < 3, lambda n, x: (n + 1, x * 2), (0, torch.ones(1)))
    (3, tensor([8.]))
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"Expect carried_inputs to be a tuple of tensors or numbers, but got {carried_inputs}.")
    values, alone = tuple(carried_inputs), False
    while _truth_value(cond_fn(*values)):
        found = body_fn(*values)
        alone = isinstance(found, torch.Tensor)
        found = (found,) if alone else found
        if not isinstance(found, (tuple, list)) or len(found) != len(values):
            raise RuntimeError(f"body_fn should return a tuple of {len(values)} values, as many as it takes")
        values = tuple(found)
    return values[0] if alone else values


def _truth_value(pred: Any) -> bool:
    if not isinstance(pred, bool) and not (
        isinstance(pred, torch.Tensor) and pred.dtype is torch.bool and pred.numel() == 1
    ):
        raise RuntimeError(f"cond_fn must return a boolean scalar tensor or a boolean but got {pred}")
    return bool(pred)


def scan(combine_fn: Any, init: Any, xs: Any, *, dim: int = 0, reverse: bool = False) -> tuple[Any, Any]:
    """Apply `state, output = combine_fn(state, x)` along a dimension.

    Return the last state, and the outputs stacked along `dim`, or along their first dimension if they have fewer dimensions.

    Args:
        combine_fn: a function of a state and a part of `xs`.
        init: the initial state, a tree of tensors.
        xs: a tree of tensors with the same length along `dim`. The parts do not have this dimension.
        dim: the dimension.
        reverse: whether to start from the end. Outputs keep the positions of their parts.

    Raises:
        RuntimeError: if an argument has another type, or if the tensors are empty or differ in length.
    """
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise RuntimeError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    carried = pytree.tree_leaves(init)
    if not carried:
        raise RuntimeError("scan() operator requires init leaves.")
    for each in carried:
        if not isinstance(each, torch.Tensor):
            raise RuntimeError(f"All init leaves must be a Tensor but got {each}")
    tensors, tree = pytree.tree_flatten(xs)
    if not tensors:
        return init, []
    dim = wrap_dim(dim, tensors[0].dim())
    lengths = {each.shape[dim] for each in tensors}
    if len(lengths) != 1 or 0 in lengths:
        raise RuntimeError("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")
    parts = [pytree.tree_unflatten(list(each), tree) for each in zip(*(t.unbind(dim) for t in tensors), strict=True)]
    state, outputs = init, []
    for part in reversed(parts) if reverse else parts:
        state, output = combine_fn(state, part)
        outputs.append(output)
    if reverse:
        outputs.reverse()
    return state, pytree.tree_map(lambda *each: torch.stack(each, dim if dim <= each[0].dim() else 0), *outputs)


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """Return the stacked results of `f(x, *args)` for the parts `x` of `xs`, a tree of tensors, along their first dimension.

    Results of `f` can contain None.

    Raises:
        RuntimeError: if `xs` contains other values than tensors, if the tensors are empty or differ in length, or if `f`
            returns other values.
    """
    tensors, tree = pytree.tree_flatten(xs)
    if not all(isinstance(each, torch.Tensor) for each in tensors):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {tensors}.")
    shapes = [each.shape for each in tensors]
    if any(shape[0] != shapes[0][0] for shape in shapes):
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes {shapes}.")
    if shapes[0][0] == 0:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    found = [f(pytree.tree_unflatten(list(parts), tree), *args) for parts in zip(*tensors, strict=True)]
    return pytree.tree_map(_stacked, *found)


def _stacked(*parts: Any) -> Any:
    if parts[0] is None:
        return None
    if not isinstance(parts[0], torch.Tensor):
        raise RuntimeError(f"Expect outputs of map only contains tensors or None. Got types {[type(parts[0])]}.")
    return torch.stack(parts)


def associative_scan(combine_fn: Any, xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise") -> Any:
    """For each position along `dim`, combine all elements up to this position with `combine_fn`.

    Args:
        combine_fn: an associative function of two trees of tensors with equal shapes. It combines many elements at
            once.
        xs: a tree of tensors with the same length along `dim`.
        dim: the dimension.
        reverse: whether to start from the end.
        combine_mode: "pointwise" or "generic". Both give the same result.

    Raises:
        ValueError: if `combine_fn` is not callable, or an argument has another type.

    >>> import adjoint as torch
    >>> from adjoint._higher_order_ops import associative_scan
    >>> associative_scan(torch.mul, torch.tensor([1, 2, 3, 4]), 0)
    tensor([ 1,  2,  6, 24])
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    tensors, tree = pytree.tree_flatten(xs)
    if len({each.shape[dim] for each in tensors}) != 1:
        raise ValueError("All xs leaves must have the same length along dim")

    def combine(first: list[Any], second: list[Any]) -> list[Any]:
        result = combine_fn(pytree.tree_unflatten(first, tree), pytree.tree_unflatten(second, tree))
        return pytree.tree_flatten(result)[0]

    moved = [each.movedim(dim, 0) for each in tensors]
    moved = [each.flip(0) for each in moved] if reverse else moved
    found = _scanned(combine, moved)
    found = [each.flip(0) for each in found] if reverse else found
    return pytree.tree_unflatten([each.movedim(0, dim) for each in found], tree)


def _scanned(combine: Callable[[list[Any], list[Any]], list[Any]], parts: list[Any]) -> list[Any]:
    """Scan along the first dimension: combine pairs, scan them, and combine the results with the elements between them."""
    length = parts[0].shape[0]
    if length < 2:
        return parts
    pairs = combine([each[: length - 1 : 2] for each in parts], [each[1::2] for each in parts])
    odd = _scanned(combine, pairs)
    before = [each[: (length - 1) // 2] for each in odd]
    even = combine(before, [each[2::2] for each in parts]) if length > 2 else before
    even = [torch.cat([each[:1], rest]) for each, rest in zip(parts, even, strict=True)]
    results = []
    for first, second in zip(even, odd, strict=True):
        both = torch.stack([first[: second.shape[0]], second], 1).flatten(0, 1)
        results.append(both if length % 2 == 0 else torch.cat([both, first[-1:]]))
    return results
