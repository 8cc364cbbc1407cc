"""Samplers of several processes, and worker processes. Orders, seeds and states of random numbers are PyTorch's."""

from functools import partial
from itertools import product

import pytest

theirs = pytest.importorskip("torch")

import random

import numpy

import adjoint as ours

LIBRARIES = (ours, theirs)


def told(function):
    """Return the result of a function, or its exception."""
    try:
        return function()
    except Exception as error:
        return type(error).__name__, str(error)


def order(library, count, replicas, rank, shuffle, seed, drop_last):
    sampler = library.utils.data.distributed.DistributedSampler(range(count), replicas, rank, shuffle, seed, drop_last)
    sampler.set_epoch(rank)
    return len(sampler), sampler.num_samples, sampler.total_size, list(sampler)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 10, 11])
def test_distributed_samplers(count):
    for options in product([1, 2, 3, 4], range(4), [True, False], [0, 7], [True, False]):
        first, second = (told(partial(order, library, count, *options)) for library in LIBRARIES)
        assert first == second


@pytest.mark.parametrize(
    "options", [{}, {"num_replicas": 2}, {"num_replicas": 2, "rank": 2}, {"num_replicas": 2, "rank": -1}]
)
def test_what_distributed_samplers_refuse(options):
    first, second = (
        told(lambda library=library: library.utils.data.DistributedSampler(range(3), **options))
        for library in LIBRARIES
    )
    assert first == second


def drawing(library):
    class Draws(library.utils.data.Dataset):
        def __len__(self):
            return 12

        def __getitem__(self, index):
            return [
                index,
                library.utils.data.get_worker_info().id,
                library.initial_seed(),
                random.getrandbits(60),
                numpy.random.get_state()[1][:4].tolist(),
                library.randint(1 << 40, (2,)).tolist(),
            ]

    return Draws()


@pytest.mark.thorough
@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"persistent_workers": True, "shuffle": True}])
@pytest.mark.parametrize("method", [None, "fork"])
def test_seeds_and_orders(options, method):
    found = []
    for library in LIBRARIES:
        library.manual_seed(3)
        loader = library.utils.data.DataLoader(
            drawing(library), batch_size=None, num_workers=2, multiprocessing_context=method, **options
        )
        found.append([list(loader) for _ in range(3)] + [library.randint(1 << 40, (2,)).tolist()])
    assert found[0] == found[1]


@pytest.mark.thorough
@pytest.mark.parametrize("options", [{"batch_size": 2}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}])
def test_streams(options):
    found = []
    for library in LIBRARIES:

        class Stream(library.utils.data.IterableDataset):
            def __iter__(self, library=library):
                number = library.utils.data.get_worker_info().id
                return iter(range(100 * number, 100 * number + 9 - 4 * number))

        loader = library.utils.data.DataLoader(Stream(), num_workers=2, **options)
        found.append([batch if options["batch_size"] is None else batch.tolist() for batch in loader])
    assert found[0] == found[1]
