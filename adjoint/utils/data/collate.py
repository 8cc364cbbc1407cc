"""Collation of samples into a batch. Tensors are stacked, numbers become tensors, and containers are traversed.

`Fetcher` converts indices to a batch. A loader uses a fetcher in its own process or in its workers.
"""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy

import adjoint as torch

from ..._runtime.tracebacks import ending_at_caller
from .dataset import IterableDataset, gather
from .worker_info import get_worker_info, memory_for_sending

__all__ = ["DatasetKind", "Fetcher", "default_collate", "default_convert", "fetcher"]

np_str_obj_array_pattern = re.compile(r"[SaUO]")
"""A pattern for the names of NumPy dtypes that tensors do not support because their elements are strings or objects."""


@ending_at_caller
def default_collate(batch: Sequence[Any]) -> Any:
    """Combine the samples of `batch` into one batch with a new first dimension.

    Tensors and NumPy arrays are stacked. Ints become an int64 tensor, and floats a float64 tensor. NumPy numbers keep
    their type. Strings and bytes stay lists. Dicts, named tuples and sequences are collated item by item, and tuples
    become lists.

    Raises:
        TypeError: if a sample has another type.
        RuntimeError: if tensors or sequences differ in size.

    >>> import adjoint as torch
    >>> torch.utils.data.default_collate([{"x": torch.ones(2), "y": 0}, {"x": torch.zeros(2), "y": 1}])
    {'x': tensor([[1., 1.],
            [0., 0.]]), 'y': tensor([0, 1])}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


Functions = dict[Any, Callable[..., Any]]
"""Functions by the type, or tuple of types, of the samples that they combine.

They are called with the keyword `collate_fn_map`.
"""


def collate(batch: Sequence[Any], *, collate_fn_map: Functions | None = None) -> Any:
    """Combine the samples of `batch` into one batch with the function for their type.

    Mappings and sequences are combined item by item.

    Args:
        batch: the samples.
        collate_fn_map: functions by type. The function of the exact type takes precedence over functions of its bases.

    Raises:
        TypeError: if a sample has another type.
        RuntimeError: if sequences differ in size.
    """
    sample = batch[0]
    functions = collate_fn_map or {}
    own = functions.get(type(sample)) or next(
        (function for kind, function in functions.items() if isinstance(sample, kind)), None
    )
    if own is not None:
        return own(batch, collate_fn_map=collate_fn_map)
    if isinstance(sample, Mapping):
        return _collate_mappings(batch, collate_fn_map)
    if isinstance(sample, Sequence):
        return _collate_sequences(batch, collate_fn_map)
    raise _unknown(type(sample))


def _unknown(kind: object) -> TypeError:
    return TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {kind}"
    )


def collate_tensor_fn(batch: Sequence[Any], *, collate_fn_map: Functions | None = None) -> Any:
    """Stack tensors."""
    return torch.stack(batch, 0, out=_memory(batch)) if get_worker_info() is not None else torch.stack(batch, 0)


def _memory(batch: Sequence[Any]) -> Any:
    """In a worker, return memory from which a batch is sent without a copy, or None if the samples do not form a plain batch."""
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


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: Functions | None = None) -> Any:
    """Stack NumPy arrays into a tensor."""
    if not _holds_numbers(batch[0]):
        raise _unknown(batch[0].dtype)
    return collate([torch.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Sequence[Any], *, collate_fn_map: Functions | None = None) -> Any:
    """Combine NumPy numbers into a tensor."""
    return torch.as_tensor(batch)


def collate_float_fn(batch: Sequence[Any], *, collate_fn_map: Functions | None = None) -> Any:
    """Combine Python floats into a tensor."""
    return torch.tensor(batch, dtype=torch.float64)


def collate_int_fn(batch: Sequence[Any], *, collate_fn_map: Functions | None = None) -> Any:
    """Combine Python integers into a tensor."""
    return torch.tensor(batch)


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: Functions | None = None) -> Any:
    """Return text and bytes unchanged."""
    return batch


def _collate_mappings(batch: Sequence[Any], functions: Functions | None) -> Any:
    first = batch[0]
    return _filled(first, {key: collate([sample[key] for sample in batch], collate_fn_map=functions) for key in first})


def _collate_sequences(batch: Sequence[Any], functions: Functions | None) -> Any:
    first = batch[0]
    if not all(len(sample) == len(first) for sample in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    return _filled(first, [collate(items, collate_fn_map=functions) for items in zip(*batch, strict=True)])


default_collate_fn_map: Functions = {
    torch.Tensor: collate_tensor_fn,
    numpy.ndarray: collate_numpy_array_fn,
    (numpy.bool_, numpy.number): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}
"""The functions of `default_collate`. Programs add functions for their types."""


@ending_at_caller
def default_convert(data: Any) -> Any:
    """Convert NumPy arrays and numbers in `data` to tensors, also within containers. Other values are returned unchanged.

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
    """Return a container like `pattern` with other content, or a plain dict or list if the type cannot be constructed."""
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


Fetcher = Callable[[Any], Any]
"""Returns the batch for one item of a loader's indices. Raises StopIteration at the end of the samples."""


class DatasetKind:
    """How a loader reads its dataset: by indices, or one sample after another. Loaders of other libraries use it too."""

    Map, Iterable = 0, 1

    @staticmethod
    def of(dataset: Any) -> int:
        """Return the kind of a dataset."""
        return DatasetKind.Iterable if isinstance(dataset, IterableDataset) else DatasetKind.Map


def fetcher(kind: int, dataset: Any, is_batched: bool, collate: Callable[[Any], Any], drop_last: bool) -> Fetcher:
    """Return the function that fetches from a dataset of this kind."""
    if kind == DatasetKind.Iterable:
        return _from_iterator(dataset, is_batched, collate, drop_last)
    if not is_batched:
        return lambda index: collate(dataset[index])

    def fetch(indices: list[Any]) -> Any:
        if collate is default_collate and isinstance(indices, list):
            gathered = gather(dataset, indices)
            if gathered is not None:
                return gathered
        get_all = getattr(dataset, "__getitems__", None)
        return collate(get_all(indices) if get_all else [dataset[index] for index in indices])

    return fetch


def _from_iterator(dataset: Any, is_batched: bool, collate: Callable[[Any], Any], drop_last: bool) -> Fetcher:
    samples = iter(dataset)
    has_ended = False

    def fetch(indices: Any) -> Any:
        nonlocal has_ended
        if has_ended:
            raise StopIteration
        if not is_batched:
            return collate(next(samples))
        data = list(itertools.islice(samples, len(indices)))
        has_ended = len(data) < len(indices)
        if not data or (drop_last and has_ended):
            raise StopIteration
        return collate(data)

    return fetch
