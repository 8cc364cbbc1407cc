"""The part of a dataset that one of several processes reads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import adjoint as torch

from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[Any]):
    """The indices that process number `rank` of `num_replicas` reads.

    Each process reads the same number of indices.

    Args:
        dataset: the dataset.
        num_replicas: the number of processes; by default the number in `torch.distributed`.
        rank: the number of this process, from 0; by default its rank in `torch.distributed`.
        shuffle: whether the order is random. All processes use the same order. Each `set_epoch` changes it.
        seed: the seed of the random numbers. It must be the same in all processes.
        drop_last: whether to drop indices that cannot be divided evenly. Otherwise the first indices are repeated.

    >>> list(DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if (num_replicas is None or rank is None) and not torch.distributed.is_available():
            raise RuntimeError("Requires distributed package to be available")
        num_replicas = torch.distributed.get_world_size() if num_replicas is None else num_replicas
        rank = torch.distributed.get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        self.epoch = 0
        rest = len(dataset) - num_replicas if drop_last and len(dataset) % num_replicas else len(dataset)
        self.num_samples = math.ceil(rest / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        if self.shuffle:
            generator = torch.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = torch.randperm(count, generator=generator).tolist()
        else:
            indices = list(range(count))
        if not self.drop_last:
            times = math.ceil(self.total_size / count) if count else 0
            indices = indices * times
        return iter(indices[: self.total_size][self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Use another random order."""
        self.epoch = epoch
