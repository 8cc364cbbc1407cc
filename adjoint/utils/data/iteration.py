"""One pass over a loader's dataset in the calling process: the seed, the batches, and warnings about their number.

The attributes that a pass reads from its loader have PyTorch's names, including private names, because libraries pass
other objects in place of a loader.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..._runtime.tracebacks import warn
from .collate import fetcher
from .sampler import draw_seed

if TYPE_CHECKING:
    from .dataloader import DataLoader

__all__ = ["Batches", "BatchesOfOneProcess"]

_IN_WORKERS = (
    "For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset replica at each "
    "worker. Please see https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
)


class Batches(Iterator[Any]):
    """An iterator for one pass over a loader's dataset. Subclasses define `_next_batch`."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        if loader.pin_memory:
            warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used."
            )
        self._loader: Any = loader
        self._begin()
        # PyTorch draws a seed for its workers first, even without workers: the order depends on that.
        self._base_seed = draw_seed(loader.generator)

    def _begin(self) -> None:
        """Start at the first index."""
        loader = self._loader
        self._indices = iter(loader._index_sampler)
        self._yielded = 0
        self._reported_length = loader._IterableDataset_len_called

    def __next__(self) -> Any:
        batch = self._next_batch()
        self._yielded += 1
        if self._reported_length is not None and self._yielded > self._reported_length:
            loader = self._loader
            warn(
                f"Length of IterableDataset {loader.dataset} was reported to be {self._reported_length}"
                f"(when accessing len(dataloader)), but {self._yielded} samples have been fetched. "
                f"{_IN_WORKERS if loader.num_workers else ''}"
            )
        return batch

    def _next_batch(self) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class BatchesOfOneProcess(Batches):
    """An iterator that fetches each batch on request."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        super().__init__(loader)
        self._fetch = fetcher(
            loader._dataset_kind, loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last
        )

    def _next_batch(self) -> Any:
        return self._fetch(next(self._indices))
