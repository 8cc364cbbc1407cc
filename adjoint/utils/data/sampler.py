"""Samplers: the order in which the indices of a dataset are read, and their division into batches.

Random samplers draw the same numbers as PyTorch's, so a seed gives the same order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import adjoint as torch

from ..._runtime.tracebacks import end_methods_at_caller

__all__ = [
    "BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler",
    "draw_seed",
]  # fmt: skip

T_co = TypeVar("T_co", covariant=True)
_DRAWN_AT_ONCE = 32


def draw_seed(generator: torch.Generator | None = None) -> int:
    """Draw a seed for another generator."""
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


class Sampler(Generic[T_co]):
    """An order of indices. Subclasses define `__iter__`, and `__len__` if the length is known."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        end_methods_at_caller(cls)

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """The indices of `data_source` in their order."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Random indices of `data_source`.

    Args:
        data_source: the dataset.
        replacement: whether to draw each index independently. Otherwise every index is drawn once before an index is
            repeated.
        num_samples: the number of drawn indices; by default the length of the dataset.
        generator: the generator for the order. The default is a new generator for each iteration, seeded from the
            global generator.

    Raises:
        TypeError: if `replacement` is not a bool.
        ValueError: if `num_samples` is not a positive int.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        count: Any = self.num_samples
        if not isinstance(count, int) or count <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={count}")

    @property
    def num_samples(self) -> int:
        """The number of drawn indices."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        generator = self.generator
        if generator is None:
            generator = torch.Generator()
            generator.manual_seed(draw_seed())
        count = len(self.data_source)
        if self.replacement:
            whole, rest = divmod(self.num_samples, _DRAWN_AT_ONCE)
            for size in itertools.chain(itertools.repeat(_DRAWN_AT_ONCE, whole), (rest,)):
                yield from torch.randint(count, (size,), dtype=torch.int64, generator=generator).tolist()
        else:
            whole, rest = divmod(self.num_samples, count)
            # PyTorch draws a permutation even for an empty rest.
            for size in itertools.chain(itertools.repeat(count, whole), (rest,)):
                yield from torch.randperm(count, generator=generator).tolist()[:size]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: torch.Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for position in torch.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[position]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """The indices from 0 to `len(weights) - 1`, drawn with the given weights. The sum of the weights need not be 1.

    Raises:
        ValueError: if `num_samples` is not a positive int, `replacement` is not a bool, or `weights` is not
            one-dimensional.
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        if not _is_count(num_samples):
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = torch.as_tensor(weights, dtype=torch.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = torch.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The indices of another sampler in lists of length `batch_size`.

    Args:
        sampler: any iterable of indices.
        batch_size: the number of indices in a batch.
        drop_last: whether to drop the last batch if it is not full.

    Raises:
        ValueError: if `batch_size` is not a positive int, or if `drop_last` is not a bool.

    >>> import adjoint as torch
    >>> list(torch.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        if not _is_count(batch_size):
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
