"""From indices to a batch: the samples of a dataset, collated. A loader fetches in its own process or in its workers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from .collate import default_collate
from .dataset import IterableDataset, gather

__all__ = ["DatasetKind", "Fetcher", "fetcher"]

Fetcher = Callable[[Any], Any]
"""Gives the batch for one item of a loader's indices; StopIteration where the samples end."""


class DatasetKind:
    """How a loader reads its dataset: by indices, or one sample after another. Loaders of other libraries say it, too."""

    Map, Iterable = 0, 1

    @staticmethod
    def of(dataset: Any) -> int:
        """The kind of a dataset."""
        return DatasetKind.Iterable if isinstance(dataset, IterableDataset) else DatasetKind.Map


def fetcher(kind: int, dataset: Any, is_batched: bool, collate: Callable[[Any], Any], drop_last: bool) -> Fetcher:
    """The function that fetches from a dataset of a kind."""
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
