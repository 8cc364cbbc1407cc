"""Checks of the derivatives of functions of sparse tensors with respect to the stored elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ...dispatch.decorators import publish
from ...kernels.runtime.sparse_array import SparseArray
from ...kernels.sparse import layouts as kernels
from ...tensor import Tensor, wrap
from .layouts import values, with_values


def as_sparse_gradcheck(gradcheck):
    """Return a form of `gradcheck` for functions with sparse inputs or results.

    The returned function replaces sparse inputs by their stored elements. Unless `masked` is True, all elements are
    stored first.

    >>> import adjoint as torch
    >>> x = torch.eye(2, dtype=torch.float64).to_sparse().requires_grad_()
    >>> torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)(lambda x: x * 2, x)
    True
    """

    @wraps(gradcheck)
    def of_sparse(func: Callable[..., Any], inputs: Any, **options: Any) -> bool:
        masked = bool(options.pop("masked", False))
        given = inputs if isinstance(inputs, (list, tuple)) else (inputs,)
        models = [_model(value, masked) for value in given]
        leaves = [
            value if model is None else values(model).requires_grad_(value.requires_grad)
            for value, model in zip(given, models, strict=True)
        ]

        def of_elements(*elements: Any) -> Any:
            pairs = zip(elements, models, strict=True)
            results = func(*(each if model is None else with_values(model, each) for each, model in pairs))
            if not isinstance(results, (list, tuple)):
                return _dense(results, masked)
            return tuple(_dense(result, masked) for result in results)

        return bool(gradcheck(of_elements, tuple(leaves), **options))

    return of_sparse


def _model(value: Any, masked: bool) -> Tensor | None:
    """Return a sparse copy of `value` that stores all elements to vary, or None for a value that is not sparse."""
    if not (isinstance(value, Tensor) and isinstance(value._array, SparseArray)):
        return None
    return wrap((kernels.coalesce if masked else kernels.all_stored)(value._array).copy())


def _dense(value: Any, masked: bool) -> Any:
    return value.to_dense(masked_grad=masked) if isinstance(value, Tensor) else value


publish("sparse", as_sparse_gradcheck=as_sparse_gradcheck)
