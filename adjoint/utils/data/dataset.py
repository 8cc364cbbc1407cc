"""Datasets: samples by index or from an iterator, and datasets composed of other datasets."""

from __future__ import annotations

import bisect
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import adjoint as torch
from adjoint import Tensor

from ..._runtime.tracebacks import end_methods_at_caller, ending_at_caller, warn
from .worker_info import memory_for_sending

__all__ = [
    "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset",
    "gather", "random_split",
]  # fmt: skip

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """A dataset with samples by index. Subclasses define `__getitem__`, and `__len__` for samplers.

    If `__getitems__(indices)` is defined, it receives all indices of a batch together.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        end_methods_at_caller(cls)

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], ABC):
    """A dataset with samples from an iterator. Subclasses define `__iter__`, and `__len__` if the length is known."""

    @abstractmethod
    def __iter__(self) -> Iterator[T_co]: ...

    def __add__(self, other: Dataset[T_co]) -> ChainDataset[T_co]:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """A dataset whose samples are the rows of tensors with equal numbers of rows.

    Raises:
        AssertionError: if the numbers of rows differ.

    >>> import adjoint as torch
    >>> dataset = torch.utils.data.TensorDataset(torch.arange(4).reshape(2, 2), torch.tensor([0, 1]))
    >>> dataset[1]
    (tensor([2, 3]), tensor(1))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensor.size(0) != tensors[0].size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].size(0))


def gather(dataset: Any, indices: list[Any]) -> list[Tensor] | None:
    """Return the result of `default_collate` for rows of a `TensorDataset` or of its subset, computed for all rows together.

    For other datasets and indices, and if gradients are recorded, return None. The rows are then collated one by one.
    """
    while type(dataset) is Subset and set(map(type, indices)) == {int}:
        dataset, indices = dataset.dataset, [dataset.indices[index] for index in indices]
    if type(dataset) is not TensorDataset or set(map(type, indices)) != {int}:
        return None
    if any(type(tensor) is not Tensor or tensor.requires_grad for tensor in dataset.tensors):
        return None
    if not all(tensor.is_contiguous() for tensor in dataset.tensors):
        return None
    rows = torch.tensor(indices)
    memory = [memory_for_sending((len(indices), *tensor.shape[1:]), tensor.dtype) for tensor in dataset.tensors]
    return [
        tensor[rows] if out is None else torch.index_select(tensor, 0, rows, out=out)
        for tensor, out in zip(dataset.tensors, memory, strict=True)
    ]


class StackDataset(Dataset[Any]):
    """A dataset whose samples are tuples of the samples of several datasets, or dicts if the datasets are given by name.

    Raises:
        ValueError: if the datasets differ in length, or if only some of them are named.
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        members: list[Any] = [*args, *kwargs.values()]
        self._length = len(members[0])
        if any(len(member) != self._length for member in members):
            raise ValueError("Size mismatch between datasets")
        self.datasets = args or kwargs

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """Return the samples at `indices`. Each dataset returns its samples together if it supports this.

        Raises:
            ValueError: if a dataset returns another number of samples.
        """
        if isinstance(self.datasets, dict):
            columns = [_samples_at(dataset, indices) for dataset in self.datasets.values()]
            return [dict(zip(self.datasets, row, strict=True)) for row in zip(*columns, strict=True)]
        return list(zip(*(_samples_at(dataset, indices) for dataset in self.datasets), strict=True))

    def __len__(self) -> int:
        return self._length


def _samples_at(dataset: Any, indices: list[int]) -> list[Any]:
    get_all = getattr(dataset, "__getitems__", None)
    if get_all is None:
        return [dataset[index] for index in indices]
    found: list[Any] = get_all(indices)
    if len(found) != len(indices):
        raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(found)}")
    return found


class ConcatDataset(Dataset[T_co]):
    """The samples of several datasets, one dataset after the other.

    Raises:
        AssertionError: if the list is empty, or if a dataset has no indices.
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(dataset) for dataset in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    @property
    def cummulative_sizes(self) -> list[int]:
        """An old name of `cumulative_sizes`."""
        warn("`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning)
        return self.cumulative_sizes

    def __getitem__(self, index: int) -> T_co:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[which - 1] if which else 0
        sample: T_co = self.datasets[which][index - before]
        return sample


class ChainDataset(IterableDataset[T_co]):
    """The samples of several iterable datasets, one dataset after the other."""

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = datasets

    def _members(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[T_co]:
        for dataset in self._members():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._members())


class Subset(Dataset[T_co]):
    """The samples of `dataset` at `indices`."""

    dataset: Any
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            sample: T_co = self.dataset[[self.indices[each] for each in index]]
        else:
            sample = self.dataset[self.indices[index]]
        return sample

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        """Return the samples at several positions, together if the dataset supports it."""
        chosen = [self.indices[index] for index in indices]
        get_all = getattr(self.dataset, "__getitems__", None)
        samples: list[T_co] = get_all(chosen) if callable(get_all) else [self.dataset[index] for index in chosen]
        return samples

    def __len__(self) -> int:
        return len(self.indices)


@ending_at_caller
def random_split(
    dataset: Dataset[T], lengths: Sequence[int | float], generator: torch.Generator | None = None
) -> list[Subset[T]]:
    """Split a dataset at random into parts that do not overlap.

    Args:
        dataset: the dataset.
        lengths: the lengths of the parts, or fractions with the sum 1. With fractions, the remaining samples go to the
            first parts.
        generator: the generator for the order.

    Raises:
        ValueError: if the sum of the lengths differs from the length of the dataset.

    >>> import adjoint as torch
    >>> generator = torch.Generator().manual_seed(42)
    >>> [list(part) for part in torch.utils.data.random_split(range(10), [0.3, 0.7], generator)]
    [[2, 6, 1], [8, 4, 5, 0, 9, 3, 7]]
    """
    total = len(dataset)  # type: ignore[arg-type]
    fractions = math.isclose(sum(lengths), 1) and sum(lengths) <= 1
    counts: Sequence[Any] = _whole_lengths(lengths, total) if fractions else lengths
    if sum(counts) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = torch.randperm(sum(counts), generator=generator).tolist()
    starts = itertools.accumulate(counts, initial=0)
    return [Subset(dataset, order[start : start + length]) for start, length in zip(starts, counts, strict=False)]


def _whole_lengths(fractions: Sequence[float], total: int) -> list[int]:
    for i, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
    lengths = [math.floor(total * fraction) for fraction in fractions]
    for i in range(total - sum(lengths)):
        lengths[i % len(lengths)] += 1
    for i, length in enumerate(lengths):
        if length == 0:
            warn(f"Length of split at index {i} is 0. This might result in an empty dataset.")
    return lengths
