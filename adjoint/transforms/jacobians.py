"""Jacobians and Hessians of functions, in reverse and in forward mode, with one row or column for each unit vector."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from .._runtime.tracebacks import ending_at_caller
from ..dispatch.decorators import tensors as operators
from ..tensor import Tensor
from .reverse import Reverse, positions, pulled, pushed, vmap
from .tree import tree_flatten, tree_map, tree_unflatten

__all__ = ["hessian", "jacfwd", "jacrev"]


def unit_vectors(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the unit vectors of the joint space of all `tensors`: for each tensor its part, of shape (total, *shape)."""
    counts = [tensor.numel() for tensor in tensors]
    total = sum(counts)
    parts, start = [], 0
    for tensor, count in zip(tensors, counts, strict=True):
        part = tensor.new_zeros((total, count))
        part.diagonal(-start).fill_(1)
        parts.append(part.view((total, *tensor.shape)))
        start += count
    return parts


def by_output(rows: Tensor, outputs: Sequence[Tensor]) -> list[Tensor]:
    """Divide the rows of the Jacobian for one input, which lie along dimension 0, into one block for each output."""
    parts = rows.split([output.numel() for output in outputs], 0)
    return [part.reshape((*output.shape, *rows.shape[1:])) for part, output in zip(parts, outputs, strict=True)]


def by_input(columns: Tensor, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Divide the columns of the Jacobian of one output, which lie along dimension 0, into one block for each input."""
    parts = columns.movedim(0, -1).split([tensor.numel() for tensor in inputs], -1)
    return [part.reshape((*columns.shape[1:], *tensor.shape)) for part, tensor in zip(parts, inputs, strict=True)]


def _check_real(leaves: list[Tensor], what: str, name: str) -> None:
    for index, leaf in enumerate(leaves):
        if leaf.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened input idx: {index}"
            )


def jacrev(
    func: Callable[..., Any],
    argnums: Any = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """Return a function that returns the Jacobian of `func`, with one row for each output, by reverse mode.

    `chunk_size`: the number of rows to compute together by `vmap`. 1 computes them one by one, and None computes all.

    >>> import adjoint as torch
    >>> torch.func.jacrev(torch.sin)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    @ending_at_caller
    def jacobian(*args: Any, **keywords: Any) -> Any:
        places = positions(argnums, len(args))
        chosen = [args[place] for place in places]
        _check_real([leaf for leaf in tree_flatten(chosen)[0] if isinstance(leaf, Tensor)], "inputs", "jacrev")
        reverse = Reverse()
        result = pulled(reverse, func, args, places, keywords, has_aux)
        output, pull = result[:2]
        outputs, shape = tree_flatten(output)
        _check_real(outputs, "outputs", "jacrev")
        basis = tree_unflatten(unit_vectors(outputs), shape)
        count = sum(leaf.numel() for leaf in outputs)
        if chunk_size == 1 and count:  # without `vmap`, for functions that it does not support
            by_row = [pull(tree_map(itemgetter(row), basis)) for row in range(count)]
            rows = tree_map(lambda *parts: operators.stack(parts), *by_row)
        else:
            rows = vmap(pull, chunk_size=chunk_size)(basis)
        reverse.release_arguments()
        leaves, structure = tree_flatten(rows)
        jacobians = []
        for row in zip(*[by_output(leaf, outputs) for leaf in leaves], strict=True):
            nested = tree_unflatten(row, structure)
            jacobians.append(nested if isinstance(argnums, tuple) else nested[0])
        found = tree_unflatten(jacobians, shape)
        return (found, result[2]) if has_aux else found

    return jacobian


def jacfwd(
    func: Callable[..., Any],
    argnums: Any = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that returns the Jacobian of `func`, with one column for each input, by forward mode.

    `chunk_size`: the number of columns to compute together; None computes all.

    >>> import adjoint as torch
    >>> torch.func.jacfwd(torch.sin)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    @functools.wraps(func)
    @ending_at_caller
    def jacobian(*args: Any, **keywords: Any) -> Any:
        places = positions(argnums, len(args))
        chosen = tuple(args[place] for place in places)

        def partial(*values: Any) -> Any:
            replaced = list(args)
            for place, value in zip(places, values, strict=True):
                replaced[place] = value
            return func(*replaced, **keywords)

        def column(directions: Any) -> Any:
            results = pushed(partial, chosen, directions, (args, keywords), has_aux=has_aux)
            _check_real(tree_flatten(results[1])[0], "outputs", "jacfwd")
            return results[1:] if has_aux else results[1]

        inputs, structure = tree_flatten(chosen)
        _check_real([leaf for leaf in inputs if isinstance(leaf, Tensor)], "inputs", "jacfwd")
        basis = tree_unflatten(unit_vectors(inputs), structure)
        out_dims: Any = (0, None) if has_aux else 0
        columns = vmap(column, out_dims=out_dims, randomness=randomness, chunk_size=chunk_size)(basis)
        aux = None
        if has_aux:
            columns, aux = columns
        leaves, shape = tree_flatten(columns)
        jacobians = []
        for leaf in leaves:
            nested = tree_unflatten(by_input(leaf, inputs), structure)
            jacobians.append(nested if isinstance(argnums, tuple) else nested[0])
        found = tree_unflatten(jacobians, shape)
        return (found, aux) if has_aux else found

    return jacobian


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """Return a function that returns the matrix of second derivatives of `func`, by forward mode over reverse mode.

    >>> import adjoint as torch
    >>> torch.func.hessian(lambda x: (x ** 3).sum())(torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
