"""Reductions of segments: neighbouring elements along a dimension, given by `lengths` or `offsets`."""

from __future__ import annotations

import math

import numpy

from ... import dtypes
from ...array_attributes import wrap_dim
from ...dispatch.annotations import Array
from ...dispatch.decorators import internal, public, tensors
from ...dispatch.sequential import is_readable, read_array
from ...kernels.reduce import counting as kernels
from ...kernels.runtime.floating import refuse
from ...tensor import wrap

_REDUCTIONS = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "min": "amin"}
_OF_NOTHING = {"sum": 0.0, "mean": math.nan, "prod": 1.0, "max": -math.inf, "min": math.inf}


@internal(kernels.segment_of_each, out=False)
class segment_of_each:
    """The number of the segment of each of `size` elements. Elements outside all segments get the number of segments."""

    def forward(given: Array, of_lengths, size): ...


@public()
def segment_reduce(
    data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe: bool = False, initial=None
):
    """Each segment of `data` along `axis`, reduced to one element by "sum", "mean", "prod", "max" or "min".

    `lengths` or `offsets` give the segments. Both contain integers. The last dimension corresponds to `axis`, and the
    other dimensions are the first dimensions of `data`. Elements after the last segment are not used. With `lengths`,
    such elements are an error unless `unsafe` is true. `initial` is included in every segment. Without `initial`, an
    empty segment gives 0 (sum), NaN (mean), 1 (prod), -inf (max) or inf (min).

    >>> import adjoint as torch
    >>> torch.segment_reduce(torch.tensor([1.0, 2.0, 5.0]), "max", lengths=torch.tensor([2, 1]))
    tensor([2., 5.])
    """
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    axis = wrap_dim(axis, data._array.ndim)
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    _check(data, lengths, offsets, axis, unsafe)
    given = lengths if offsets is None else offsets
    size = data._array.shape[axis]
    found = given if offsets is None else given.diff()
    trailing = (1,) * (data._array.ndim - axis - 1)
    counts = found.reshape((*found._array.shape, *trailing)) if trailing else found
    if reduce in ("sum", "mean") and not axis and is_readable(given):
        bounds = wrap(kernels.segment_bounds(given._array, offsets is None, size))
        sums = tensors.sum_of_runs(data, bounds)
        return _means(sums if initial is None else sums + float(initial), reduce, counts, initial)
    segments = segment_of_each(given, offsets is None, size)
    if axis:
        combine, places = (
            tensors.scatter_reduce,
            segments.reshape((*segments._array.shape, *trailing)).expand(data.shape),
        )
    else:
        combine, places = _index_reduce, segments
    covered = lengths is not None and not unsafe and is_readable(lengths)  # has been checked
    return _reduced(data, reduce, axis, combine, places, counts, initial, 0 if covered else 1)


def _index_reduce(base, axis, places, data, reduce, include_self):
    """`index_reduce`, extended by sums."""
    if reduce == "sum":
        return tensors.index_add(base, axis, places, data)
    return tensors.index_reduce(base, axis, places, data, reduce, include_self=include_self)


def _reduced(data, reduce, axis, combine, places, lengths, initial, spare):
    """Return the reduced segments. Elements outside all segments are reduced into a `spare` segment, which is dropped."""
    start = _OF_NOTHING[reduce] if initial is None else float(initial)
    shape = list(data._array.shape)
    count = lengths._array.shape[axis]
    shape[axis] = count + spare
    extreme = reduce in ("max", "min")
    first = _OF_NOTHING[reduce] if extreme else 0.0 if reduce == "mean" and initial is None else start
    base = data.new_full((), first).expand(shape)  # which `combine` copies
    found = combine(base, axis, places, data, _REDUCTIONS[reduce], include_self=not extreme)
    found = found.narrow(axis, 0, count).clone() if spare else found
    if extreme and initial is not None:
        kept = found > start if reduce == "max" else found < start
        return tensors.where(kept | found.isnan(), found, start)
    return _means(found, reduce, lengths, initial)


def _means(sums, reduce, lengths, initial):
    """Return the sums of segments of these lengths, or the means if requested."""
    if reduce != "mean":
        return sums
    mean = sums / lengths.clamp(min=1).to(sums.dtype)
    return mean if initial is not None else tensors.where(lengths > 0, mean, math.nan)


def _check(data, lengths, offsets, axis, unsafe):
    dtype = data.dtype
    if not dtype.is_floating_point:
        raise refuse("_segment_reduce_cpu", dtype)
    for name, given in (("lengths", lengths), ("offsets", offsets)):
        if given is None:
            continue
        if given._array.ndim > max(data._array.ndim, 0):
            raise RuntimeError(
                "Expected data.dim() >= lengths_value.dim() to be true, but got false.  (Could this error message be improved?  "
                "If so, please report an enhancement request to adjoint.)"
            )
        if axis != given._array.ndim - 1:
            raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}.")
        if given.dtype not in (dtypes.int32, dtypes.int64):
            raise refuse(f"_segment_reduce_{name}_cpu_kernel1", dtype)
        if name == "offsets" and not given._array.shape[-1]:
            size = [*given._array.shape[:-1], -1, *data._array.shape[axis + 1 :]]
            raise RuntimeError(f"Trying to create tensor with negative dimension -1: {size}")
    if lengths is None or unsafe or not is_readable(lengths):
        return
    counts = read_array(lengths)
    if not counts.size:
        raise RuntimeError(
            "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
            "argument."
        )
    if numpy.count_nonzero(counts < 0):
        raise RuntimeError("lengths contains negative value!")
    if numpy.count_nonzero(numpy.add.reduce(counts, -1) != data._array.shape[axis]):
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
        )
