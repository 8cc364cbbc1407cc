"""Reductions, softmax and cumulative sums over the elements of a tensor that a mask selects.

Elements where the mask is False count as the identity of the operation: zero for a sum, minus infinity for a maximum.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

import adjoint as torch
from adjoint import Tensor

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median", "norm",
    "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip

Dims = int | tuple[int, ...] | list[int] | None
Mask = Tensor | None
SPARSE = (torch.sparse_coo, torch.sparse_csr)


def _given(input: Any, mask: Mask, name: str = "", *sparse: torch.layout) -> tuple[Any, Mask]:
    """Return the data, dense or in a layout of `sparse`, and their mask, broadcast to their shape."""
    if hasattr(input, "get_mask"):
        own = input.get_mask()
        if mask is not None and not torch.equal(mask, own):
            raise ValueError("Input and mask arguments of a masked tensor differ")
        input, mask = input.get_data(), own
    if name and input.layout is not torch.strided and input.layout not in sparse:
        allowed = " or ".join(["strided", *(str(layout)[6:] for layout in sparse)]).replace(
            " or ", ", ", len(sparse) - 1
        )
        raise ValueError(f"masked {name} expects {allowed} tensor (got {input.layout} tensor)")
    return input, None if mask is None else _mask_like(input, mask)


def _input_mask(input: Any, *args: Any, mask: Mask = None, **kwargs: Any) -> Tensor:
    """Return the mask of a masked tensor, or the given mask."""
    found = _given(input, mask)[1]
    if found is None:
        raise ValueError("_input_mask requires explicit mask")
    return found


def _reduction_identity(op_name: str, input: Tensor, *args: Any) -> Tensor | None:
    """Return the element that changes no result of a reduction, or None for a mean or a variance."""
    dtype = input.dtype
    value: Any
    if op_name in ("sum", "cumsum"):
        value = 0
    elif op_name in ("prod", "cumprod"):
        value = 1
    elif op_name in ("mean", "var", "std"):
        return None
    elif op_name == "median":
        value, dtype = torch.nan, dtype if dtype.is_floating_point else torch.get_default_dtype()
    elif op_name == "norm":
        value = torch.inf if args and args[0] is not None and float(args[0]) == -torch.inf else 0
        if value and not dtype.is_floating_point:
            raise AssertionError(f"input must be floating point, got {dtype}")
    elif op_name in ("amax", "argmax", "logaddexp", "logsumexp") and dtype is not torch.bool:
        is_exact = _is_exact(dtype) if op_name == "logsumexp" else not dtype.is_floating_point
        value = torch.iinfo(dtype).min if is_exact else -torch.inf
    elif op_name in ("amin", "argmin") and dtype is not torch.bool:
        value = torch.inf if dtype.is_floating_point else torch.iinfo(dtype).max
    else:
        raise NotImplementedError(f"identity of {op_name} on {dtype} input")
    return torch.tensor(value, dtype=dtype)


def _where(mask: Tensor, input: Tensor, fill_value: Any) -> Tensor:
    """Return the input with `fill_value` where the mask is False. A sparse result does not store these elements."""
    return torch.where(mask, input, fill_value) if mask.layout is torch.strided else _stored(mask, input)


def _combine_input_and_mask(op: Any, input: Any, mask: Mask, *args: Any) -> Any:
    """Return the input with the identity of `op` (a function or its name) where the mask is False."""
    data, mask = _given(input, mask)
    return _filled(data, mask, op if isinstance(op, str) else op.__name__, *args)


def _filled(input: Tensor, mask: Mask, name: str, *args: Any) -> Tensor:
    """Return the input with the identity of the function `name` where the mask is False."""
    return input if mask is None else _where(mask, input, _reduction_identity(name, input, *args))


def _output_mask(op: Any, input: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Return the mask of the result of the function `op`. It is True where the result depends on at least one element."""
    form = signature(op)
    if "mask" not in form.parameters:
        raise ValueError(f"_output_mask expected masked operation (got callable {op.__module__}.{op.__name__})")
    given = form.bind_partial(input, *args, **kwargs).arguments
    valid = _input_mask(input, mask=given.get("mask"))
    if "keepdim" not in form.parameters:
        return valid
    return _reduced_mask(valid, _canonical_dim(given.get("dim"), valid.dim()), given.get("keepdim", False))


def _reduced_mask(valid: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """Return True where at least one element was valid."""
    for dim in sorted(dims, reverse=True) if valid.dim() else ():
        valid = valid.any(dim, keepdim=keepdim)
    return valid


def _finished(original: Any, result: Any, mask: Mask, dims: tuple[int, ...], keepdim: bool) -> Any:
    """Return the result. For a masked tensor, return a masked tensor that is valid where at least one element was valid."""
    if not hasattr(original, "get_mask"):
        return result
    valid = mask if mask is not None else torch.ones_like(original.get_data(), dtype=torch.bool)
    return torch.masked.MaskedTensor(result, _reduced_mask(valid, dims, keepdim))


def _canonical_dim(dim: Dims, ndim: int) -> tuple[int, ...]:
    """Return the reduced dimensions, counted from the front."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    result = []
    for each in dims:
        limit = max(ndim, 1)
        if not -limit <= each < limit:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {each})"
            )
        if each % limit in result:
            raise RuntimeError(f"dim={each % limit} appears multiple times in the list of dims")
        result.append(each % limit)
    return tuple(result)


def _is_exact(dtype: torch.dtype) -> bool:
    return not (dtype.is_floating_point or dtype.is_complex)


def _summable(input: Tensor, dtype: torch.dtype | None) -> torch.dtype:
    """Return the dtype of sums, which is int64 for integers."""
    return dtype or (torch.int64 if _is_exact(input.dtype) else input.dtype)


def _kept(input: Tensor, dtype: torch.dtype | None) -> torch.dtype:
    return dtype or input.dtype


def _reduction(
    name: str, compute: Any, kind: Any, input: Any, dim: Dims, keepdim: bool, dtype: torch.dtype | None, mask: Mask
) -> Any:
    """Reduce the selected elements, in the dtype that `kind` chooses, by `compute(elements, dims, keepdim)`."""
    data, mask = _given(input, mask, name, *SPARSE)
    dims, keepdim = _canonical_dim(dim, data.dim()), bool(keepdim)
    kind = kind(data, dtype)
    filled = _filled(data.to(kind), mask, name)
    if data.layout is not torch.strided:
        return _reduced(name, filled, mask, dims, keepdim, kind)
    return _finished(input, compute(filled, dims, keepdim), mask, dims, keepdim)


def sum(
    input: Any, dim: Dims = None, *, keepdim: bool = False, dtype: torch.dtype | None = None, mask: Mask = None
) -> Any:
    """The sum of the elements that `mask` selects, over all dimensions or over `dim`. An empty sum is 0.

    >>> import adjoint as torch
    >>> torch.masked.sum(torch.tensor([1.0, 2.0, 4.0]), mask=torch.tensor([True, False, True]))
    tensor(5.)
    """
    return _reduction("sum", torch.sum, _summable, input, dim, keepdim, dtype, mask)


def prod(
    input: Any, dim: Dims = None, *, keepdim: bool = False, dtype: torch.dtype | None = None, mask: Mask = None
) -> Any:
    """The product of the elements that `mask` selects. An empty product is 1."""
    return _reduction("prod", _product, _summable, input, dim, keepdim, dtype, mask)


def _product(data: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    for each in sorted(dims, reverse=True):
        data = data.prod(each, keepdim=keepdim)
    return data


def amax(
    input: Any, dim: Dims = None, *, keepdim: bool = False, dtype: torch.dtype | None = None, mask: Mask = None
) -> Any:
    """The greatest of the elements that `mask` selects, or the least number of the dtype if no element is selected."""
    return _reduction("amax", torch.amax, _kept, input, dim, keepdim, dtype, mask)


def amin(
    input: Any, dim: Dims = None, *, keepdim: bool = False, dtype: torch.dtype | None = None, mask: Mask = None
) -> Any:
    """The least of the elements that `mask` selects, or the greatest number of the dtype if no element is selected."""
    return _reduction("amin", torch.amin, _kept, input, dim, keepdim, dtype, mask)


def _place(name: str, input: Any, dim: int | None, keepdim: bool, dtype: torch.dtype | None, mask: Mask) -> Any:
    data, mask = _given(input, mask, name)
    result = getattr(torch, name)(_filled(data, mask, name), dim, bool(keepdim)).to(dtype or data.dtype)
    return _finished(input, result, mask, _canonical_dim(dim, data.dim()), bool(keepdim))


def argmax(
    input: Any, dim: int | None = None, *, keepdim: bool = False, dtype: torch.dtype | None = None, mask: Mask = None
) -> Any:
    """The index of the greatest element that `mask` selects. Its dtype is the dtype of the input, as in PyTorch."""
    return _place("argmax", input, dim, keepdim, dtype, mask)


def argmin(
    input: Any, dim: int | None = None, *, keepdim: bool = False, dtype: torch.dtype | None = None, mask: Mask = None
) -> Any:
    """The index of the least element that `mask` selects. Its dtype is the dtype of the input, as in PyTorch."""
    return _place("argmin", input, dim, keepdim, dtype, mask)


def _inexact(data: Tensor, dtype: torch.dtype | None) -> torch.dtype:
    return dtype or (torch.get_default_dtype() if _is_exact(data.dtype) else data.dtype)


def _count(data: Tensor, mask: Mask, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """Return the number of elements that the mask selects."""
    every = torch.ones_like(data, dtype=torch.int64) if mask is None else mask.to(torch.int64)
    return torch.sum(every, dims, keepdim=keepdim)


def mean(
    input: Any, dim: Dims = None, *, keepdim: bool = False, dtype: torch.dtype | None = None, mask: Mask = None
) -> Any:
    """The mean of the elements that `mask` selects, or NaN if no element is selected."""
    data, mask = _given(input, mask, "mean", torch.sparse_csr)
    dims, keepdim = _canonical_dim(dim, data.dim()), bool(keepdim)
    kind = dtype or data.dtype
    if _is_exact(kind):
        raise ValueError(
            f"mean(): Could not infer output dtype. {'Input' if dtype is None else 'Optional'} dtype must be either a floating "
            f"point or complex dtype. Got: {kind}"
        )
    filled = _filled(data.to(kind), mask, "sum")
    if data.layout is not torch.strided:
        return _reduced("mean", filled, mask, dims, keepdim, kind)
    total = torch.sum(filled, dims, keepdim=keepdim, dtype=kind)
    return _finished(input, total / _count(data, mask, dims, keepdim), mask, dims, keepdim)


def median(
    input: Any, dim: int = -1, *, keepdim: bool = False, dtype: torch.dtype | None = None, mask: Mask = None
) -> Any:
    """The median along `dim` of the elements that `mask` selects (the lower of two).

    If no elements are selected, the median is NaN.
    """
    data, mask = _given(input, mask, "median")
    dims = _canonical_dim(dim, data.dim())
    data = data if dtype is None else data.to(dtype)
    if _is_exact(data.dtype):
        if mask is not None and not bool(mask.any(dims[0] if dims else 0).all()):
            raise ValueError("masked_median expects no fully masked out rows if dtype is not floating point")
        kind = data.dtype
        result = _filled(data.to(torch.float64), mask, "median").nanmedian(dim, bool(keepdim)).values.to(kind)
    else:
        result = _filled(data, mask, "median").nanmedian(dim, bool(keepdim)).values
    return _finished(input, result, mask, dims, bool(keepdim))


def logsumexp(
    input: Any, dim: Dims = None, *, keepdim: bool = False, dtype: torch.dtype | None = None, mask: Mask = None
) -> Any:
    """The logarithm of the sum of the exponentials of the elements that `mask` selects."""
    data, mask = _given(input, mask, "logsumexp")
    dims = _canonical_dim(dim, data.dim())
    kind = _inexact(data, dtype)
    result = torch.logsumexp(_filled(data, mask, "logsumexp").to(kind), dims, bool(keepdim))
    result = result.to(dtype or data.dtype)
    return _finished(input, result, mask, dims, bool(keepdim))


def logaddexp(
    input: Any, other: Any, *, dtype: torch.dtype | None = None, input_mask: Mask = None, other_mask: Mask = None
) -> Any:
    """`log(exp(input) + exp(other))`, elementwise, for the elements that the masks select."""
    data, input_mask = _given(input, input_mask)
    others, other_mask = _given(other, other_mask)
    kind = dtype or data.dtype
    first, second = (
        _filled(each.to(kind), valid, "logaddexp") for each, valid in ((data, input_mask), (others, other_mask))
    )
    return torch.logaddexp(first, second)


def norm(
    input: Any,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
    mask: Mask = None,
) -> Any:
    """The vector norm of the elements that `mask` selects."""
    data, mask = _given(input, mask, "norm")
    dims = _canonical_dim(dim, data.dim())
    kind = dtype or data.dtype
    result = torch.linalg.vector_norm(
        _filled(data.to(kind), mask, "norm", ord), 2 if ord is None else ord, dims, bool(keepdim), dtype=dtype
    )
    return _finished(input, result, mask, dims, bool(keepdim))


def _variance(
    input: Any, dim: Dims, unbiased: bool | None, correction: Any, keepdim: Any, dtype: Any, mask: Mask, root: bool
) -> Any:
    if unbiased is not None and correction is not None:
        raise RuntimeError("Only one of unbiased and correction may be given")
    data, mask = _given(input, mask, "std/var")
    dims, keepdim = _canonical_dim(dim, data.dim()), bool(keepdim)
    correction = correction if correction is not None else 1 if unbiased is None else int(unbiased)
    if data.dtype is torch.bool:
        torch.sub(data, data)  # raises an error
    kind = _inexact(data, dtype)
    data = data.to(kind)
    count = _count(data, mask, dims, True)
    center = torch.sum(_filled(data, mask, "sum"), dims, keepdim=True) / count
    apart = data - center
    squares = apart * apart.conj() if data.is_complex() else apart * apart
    total = torch.sum(_filled(squares, mask, "sum"), dims, keepdim=keepdim)
    if not keepdim:
        count = count.reshape(total.shape)
    count = torch.clamp(count.to(torch.float64) - correction, min=0).to(total.real.dtype)
    result = total / count
    return _finished(input, result.sqrt() if root else result, mask, dims, keepdim)


def var(
    input: Any,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: int | float | None = None,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
    mask: Mask = None,
) -> Any:
    """The variance of the elements that `mask` selects. The divisor is their number minus `correction`."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask, root=False)


def std(
    input: Any,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: int | None = None,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
    mask: Mask = None,
) -> Any:
    """The standard deviation of the elements that `mask` selects."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask, root=True)


def _same_shape(original: Any, result: Tensor, mask: Mask) -> Any:
    if not hasattr(original, "get_mask"):
        return result
    return torch.masked.MaskedTensor(result, mask)


def _softmax(name: str, input: Any, dim: int, dtype: torch.dtype | None, mask: Mask, extremum: str) -> Any:
    data, mask = _given(input, mask, name)
    data = data if dtype is None else data.to(dtype)
    is_integer = _is_exact(data.dtype) and data.dtype is not torch.bool  # softmax refuses them
    filled = data if is_integer else _filled(data, mask, extremum)
    return _same_shape(input, getattr(torch.nn.functional, name)(filled, dim), mask)


def softmax(input: Any, dim: int, *, dtype: torch.dtype | None = None, mask: Mask = None) -> Any:
    """The softmax along `dim` of the elements that `mask` selects.

    It is 0 for the other elements, and NaN if no element is selected.

    >>> import adjoint as torch
    >>> torch.masked.softmax(torch.zeros(3), 0, mask=torch.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    return _softmax("softmax", input, dim, dtype, mask, "amax")


def log_softmax(input: Any, dim: int, *, dtype: torch.dtype | None = None, mask: Mask = None) -> Any:
    """The logarithm of `softmax`."""
    return _softmax("log_softmax", input, dim, dtype, mask, "amax")


def softmin(input: Any, dim: int, *, dtype: torch.dtype | None = None, mask: Mask = None) -> Any:
    """The softmax of the negated elements."""
    return _softmax("softmin", input, dim, dtype, mask, "amin")


def normalize(
    input: Any, ord: float, dim: int, *, eps: float = 1e-12, dtype: torch.dtype | None = None, mask: Mask = None
) -> Any:
    """The elements that `mask` selects, divided by their norm along `dim`, or by `eps` if `eps` is larger."""
    data, mask = _given(input, mask, "normalize")
    length = norm(data, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    data = data if dtype is None else data.to(dtype)
    length = torch.maximum(length, length.new_full((), eps))
    return _same_shape(input, _filled(data, mask, "sum") / length, mask)


def cumsum(input: Any, dim: int, *, dtype: torch.dtype | None = None, mask: Mask = None) -> Any:
    """The cumulative sums along `dim` of the elements that `mask` selects."""
    data, mask = _given(input, mask, "cumsum")
    kind = dtype or data.dtype
    return _same_shape(input, torch.cumsum(_filled(data.to(kind), mask, "sum"), dim, dtype=kind), mask)


def cumprod(input: Any, dim: int, *, dtype: torch.dtype | None = None, mask: Mask = None) -> Any:
    """The cumulative products along `dim` of the elements that `mask` selects."""
    data, mask = _given(input, mask, "cumprod")
    kind = dtype or data.dtype
    return _same_shape(input, torch.cumprod(_filled(data.to(kind), mask, "prod"), dim, dtype=kind), mask)


# --- the elements that sparse tensors store: dense dimensions of hybrid tensors are not reduced -----------------


def _mask_like(input: Tensor, mask: Tensor) -> Tensor:
    """Return the mask with the shape and the layout of `input`. A sparse mask is coalesced."""
    if mask.dim() > input.dim():
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    if mask.layout is not input.layout or mask.shape != input.shape:
        mask = (mask if mask.layout is torch.strided else mask.to_dense()).broadcast_to(input.shape)
        if input.layout is torch.sparse_coo:
            mask = mask.to_sparse(input.sparse_dim())
        elif input.layout is torch.sparse_csr:
            mask = mask.to_sparse_csr()
    return (mask.coalesce() if mask.layout is torch.sparse_coo else mask).to(torch.bool)


def _stored(mask: Tensor, input: Tensor) -> Tensor:
    """Return a tensor that stores the elements of the sparse `input` where the sparse `mask` is True."""
    layout, mask = mask.layout, mask.to_sparse().coalesce()
    if mask.dense_dim() == 0 and not bool(mask.values().all()):
        kept = mask.values()
        mask = torch.sparse_coo_tensor(mask.indices()[:, kept], kept[kept], mask.shape).coalesce()
    found = input.to_sparse().coalesce().sparse_mask(mask)
    return found.to_sparse_csr() if layout is torch.sparse_csr else found


def _reduced(
    name: str, data: Tensor, mask: Tensor | None, dims: tuple[int, ...], keepdim: bool, kind: torch.dtype
) -> Tensor:
    """Return the reduction `name` over `dims` of the stored elements, which `mask` has selected, in the dtype `kind`."""
    if mask is None and name != "sum":
        shown = "amax" if name == "amin" else name  # sic
        raise ValueError(f"masked {shown} expects explicit mask for {str(data.layout)[6:]} tensor input")
    compressed = data.layout is torch.sparse_csr
    if compressed and not keepdim:
        error = RuntimeError if name in ("sum", "prod") else AssertionError
        raise error("reduction operations on CSR tensors with keepdim=False is unsupported")
    if name == "mean" and mask is not None:
        total, count = (_reduced("sum", each, mask, dims, keepdim, kind) for each in (data, mask))
        quotients = total.values() / count.values()
        return torch.sparse_csr_tensor(total.crow_indices(), total.col_indices(), quotients, total.shape)
    whole = data.to_sparse().coalesce()
    places, values = whole.indices(), whole.values().to(kind)
    kept = [dim for dim in range(whole.dim()) if dim not in dims]
    shape = [1 if dim in dims else size for dim, size in enumerate(whole.shape) if keepdim or dim not in dims]
    if kept:
        found, groups = places[kept].unique(dim=1, return_inverse=True)
    else:
        found, groups = places.new_empty((0, 1)), places.new_zeros((len(values),))
    result = values.new_full((found.shape[1], *values.shape[1:]), int(name == "prod"))
    groups = groups.reshape(-1, *([1] * (values.dim() - 1))).expand_as(values)
    result = result.scatter_reduce(0, groups, values, name, include_self=len(values) == 0)
    if not kept and not compressed:
        return result.reshape(shape).to_sparse()
    if keepdim:
        rows = iter(found)
        found = torch.stack(
            [next(rows) if dim in kept else places.new_zeros((found.shape[1],)) for dim in range(whole.dim())]
        )
    made = torch.sparse_coo_tensor(found, result, shape)
    return made.coalesce().to_sparse_csr() if compressed else made
