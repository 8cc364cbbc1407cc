"""The loader. It decides which indices form a batch, and which process fetches them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import adjoint as torch

from ..._runtime.first_use import import_late
from ..._runtime.tracebacks import end_at_caller, warn
from .collate import DatasetKind as _DatasetKind
from .collate import default_collate, default_convert
from .dataset import Dataset, IterableDataset
from .iteration import Batches, BatchesOfOneProcess
from .sampler import BatchSampler, RandomSampler, SequentialSampler
from .worker_info import get_worker_info

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)

_FIXED = frozenset(["batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"])


class DataLoader(Generic[T_co]):
    """The batches of a dataset, in order or shuffled. With the same seed, the order equals PyTorch's.

    Args:
        dataset: an object with `__getitem__` and `__len__`, or an `IterableDataset`.
        batch_size: the number of samples in a batch. None gives single samples.
        shuffle: whether each pass uses a new random order.
        sampler: the order, as an iterable of indices.
        batch_sampler: the batches, as an iterable of lists of indices.
        num_workers: the number of processes that fetch batches in advance. If it is 0, the calling process fetches
            them.
        collate_fn: a function that combines a list of samples into a batch; `default_collate` by default.
        pin_memory: accepted. It has no effect without a GPU.
        drop_last: whether to drop the last batch if it is not full.
        timeout: the number of seconds to wait for a batch of a worker. 0 waits without a limit.
        worker_init_fn: a function that each worker calls with its number before it fetches.
        multiprocessing_context: how workers are started: "fork", "spawn", "forkserver", or a context of
            `multiprocessing`.
        generator: the generator for seeds and the order.
        prefetch_factor: the number of batches that each worker fetches in advance; by default 2.
        persistent_workers: whether to keep the workers for the next pass.
        pin_memory_device: accepted.
        in_order: whether batches arrive in the order of their indices. Otherwise they arrive as soon as a worker has
            fetched them.

    Raises:
        ValueError: if arguments contradict each other.

    >>> import adjoint as torch
    >>> loader = torch.utils.data.DataLoader(range(5), batch_size=2)
    >>> [batch.tolist() for batch in loader]
    [[0, 1], [2, 3], [4]]
    """

    batch_size: int | None
    drop_last: bool
    _initialized = False

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[T_co]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset: Any = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.persistent_workers = persistent_workers
        self.generator = generator

        if isinstance(dataset, IterableDataset):
            _check_iterable(shuffle, sampler, batch_sampler)
            sampler = _Endless()
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            sized: Any = dataset
            sampler = RandomSampler(sized, generator=generator) if shuffle else SequentialSampler(sized)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.collate_fn: Callable[[Any], Any]
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self._IterableDataset_len_called: int | None = None
        self._dataset_kind = _DatasetKind.of(dataset)
        self._iterator: Any = None
        self._initialized = True
        self.check_worker_number_rationality()

    @property
    def multiprocessing_context(self) -> Any:
        """The start method of worker processes."""
        return self._multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            context = _checked_context(context, self.num_workers)
        self._multiprocessing_context = context

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0:
            return BatchesOfOneProcess(self)
        if self._iterator is not None:
            self._iterator.begin_again(self)
            return self._iterator
        self.check_worker_number_rationality()
        batches: Batches = import_late(f"{__package__}.workers").BatchesOfWorkers(self)
        if self.persistent_workers:
            self._iterator = batches
        return batches

    def check_worker_number_rationality(self) -> None:
        """Warn if there are more workers than processors."""
        try:
            processors = len(os.sched_getaffinity(0))
        except AttributeError:  # not on Linux
            processors = os.cpu_count() or 0
        if not processors:
            warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of worker "
                "in current system is unknown"
            )
        elif self.num_workers > processors:
            warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of worker "
                f"in current system is {processors}, which is smaller than what this DataLoader is going to create. Please be "
                "aware that excessive worker creation might get DataLoader running slow or even freeze, lower the worker number "
                "to avoid potential slowness/freeze if necessary."
            )

    def __len__(self) -> int:
        if not isinstance(self.dataset, IterableDataset):
            return len(self._index_sampler)  # type: ignore[arg-type]
        length = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    @property
    def _auto_collation(self) -> bool:
        """Whether the loader yields batches instead of single samples."""
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Iterable[Any]:
        """The indices for each item that the loader yields: one index, or a list of indices."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler


class _Endless:
    """An endless iterable, which replaces the indices for a dataset without indices."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_iterable(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
            )


def _checked_context(context: Any, num_workers: int) -> Any:
    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
            "num_workers=0"
        )
    from ..._runtime.platform import multiprocessing

    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                f"multiprocessing_context={context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            f"but got multiprocessing_context={context}"
        )
    return context


_collate_fn_t = Callable[[list[Any]], Any]
_BaseDataLoaderIter = Batches
_SingleProcessDataLoaderIter = BatchesOfOneProcess


def __getattr__(name: str) -> Any:
    """Return the iterator with worker processes. It is imported only if workers are used."""
    if name != "_MultiProcessingDataLoaderIter":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_late(f"{__package__}.workers").BatchesOfWorkers


end_at_caller(DataLoader, "__init__", "__iter__", "__len__", "__setattr__")
end_at_caller(Batches, "__init__", "__next__")
