"""Collation of samples to a batch: tensors are stacked, numbers become tensors, containers are traversed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy

import adjoint as torch

from ...tracebacks import ending_at_caller
from .worker_info import get_worker_info, memory_for_sending

__all__ = ["default_collate", "default_convert"]


@ending_at_caller
def default_collate(batch: Sequence[Any]) -> Any:
    """The samples of `batch` as one batch, with a new first dimension.

    Tensors and NumPy arrays are stacked; ints become an int64 tensor, floats a float64 one, NumPy numbers keep their
    type; strings and bytes stay lists. Dicts, named tuples and sequences are collated item by item, and tuples become
    lists.

    Raises:
        TypeError: for samples of another type.
        RuntimeError: if tensors or sequences differ in size.

    >>> import adjoint as torch
    >>> torch.utils.data.default_collate([{"x": torch.ones(2), "y": 0}, {"x": torch.zeros(2), "y": 1}])
    {'x': tensor([[1., 1.],
            [0., 0.]]), 'y': tensor([0, 1])}
    """
    sample = batch[0]
    for kind, collate in _COLLATE:
        if isinstance(sample, kind):
            return collate(batch)
    raise _unknown(type(sample))


def _unknown(kind: object) -> TypeError:
    return TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {kind}"
    )


def _collate_tensors(batch: Sequence[Any]) -> Any:
    return torch.stack(batch, 0, out=_memory(batch)) if get_worker_info() is not None else torch.stack(batch, 0)


def _memory(batch: Sequence[Any]) -> Any:
    """In a worker, memory from which a batch is sent without a copy; None if the samples do not make a plain one."""
    first = batch[0]
    kind, shape = first.dtype, first.shape
    for sample in batch:
        if (
            sample.requires_grad
            or sample.dtype is not kind
            or sample.shape != shape
            or type(sample) is not torch.Tensor
        ):
            return None
    return memory_for_sending((len(batch), *shape), kind)


def _collate_arrays(batch: Sequence[Any]) -> Any:
    if not _holds_numbers(batch[0]):
        raise _unknown(batch[0].dtype)
    return torch.stack([torch.as_tensor(array) for array in batch], 0)


def _collate_mappings(batch: Sequence[Any]) -> Any:
    first = batch[0]
    return _filled(first, {key: default_collate([sample[key] for sample in batch]) for key in first})


def _collate_sequences(batch: Sequence[Any]) -> Any:
    first = batch[0]
    if not all(len(sample) == len(first) for sample in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    return _filled(first, [default_collate(items) for items in zip(*batch, strict=True)])


_COLLATE: tuple[tuple[Any, Callable[[Sequence[Any]], Any]], ...] = (
    (torch.Tensor, _collate_tensors),
    (numpy.ndarray, _collate_arrays),
    ((str, bytes), lambda batch: batch),
    ((numpy.bool_, numpy.number), torch.as_tensor),
    (float, lambda batch: torch.tensor(batch, dtype=torch.float64)),
    (int, lambda batch: torch.tensor(batch)),
    (Mapping, _collate_mappings),
    (Sequence, _collate_sequences),
)


@ending_at_caller
def default_convert(data: Any) -> Any:
    """Convert NumPy arrays and numbers in `data` to tensors, also within containers; other values are unchanged.

    >>> import adjoint as torch
    >>> import numpy
    >>> torch.utils.data.default_convert({"x": numpy.zeros(2), "name": "a"})
    {'x': tensor([0., 0.], dtype=torch.float64), 'name': 'a'}
    """
    if isinstance(data, (numpy.ndarray, numpy.generic)) and _holds_numbers(data):
        return torch.as_tensor(data)
    if isinstance(data, Mapping):
        return _filled(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _filled(data, [default_convert(item) for item in data])
    return data


def _holds_numbers(array: Any) -> bool:
    return array.dtype.kind not in "SUO"


def _filled(pattern: Any, content: Any) -> Any:
    """A container like `pattern` with other content; a plain dict or list if the type cannot be constructed."""
    if isinstance(pattern, tuple):
        return type(pattern)(*content) if hasattr(pattern, "_fields") else content
    try:
        if not isinstance(pattern, (MutableMapping, MutableSequence)):
            return type(pattern)(content)
        filled: Any = copy.copy(pattern)
        for key, item in content.items() if isinstance(content, dict) else enumerate(content):
            filled[key] = item
        return filled
    except TypeError:  # the type cannot be copied or cannot be changed
        return content
