"""Datasets, samplers and loaders return the same samples as PyTorch's, in the same order, and raise the same errors."""

import warnings
from collections import OrderedDict, UserDict, deque, namedtuple

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import adjoint
import adjoint.utils.data

BOTH = (torch, adjoint)
Pair = namedtuple("Pair", "x y")


def plain(value):
    """Replace tensors by their dtype and values, in any container."""
    if isinstance(value, (torch.Tensor, adjoint.Tensor)):
        return str(value.dtype), value.tolist()
    if isinstance(value, (dict, UserDict)):
        return type(value).__name__, [(key, plain(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple, deque)):
        return type(value).__name__, [plain(item) for item in value]
    return repr(value)


def outcome(call, module):
    """Return the result of a call and its warnings, or the error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plain(call(module))
        except Exception as error:
            return type(error).__name__, str(error)
    return result, [str(warning.message) for warning in caught]


def assert_same_outcome(call):
    theirs, ours = (outcome(call, module) for module in BOTH)
    assert ours == theirs


def state(generator):
    return bytes(generator.get_state().tolist())


SEEDS = st.integers(0, 2**31)


@pytest.mark.thorough
@settings(max_examples=40, deadline=None)
@given(
    seed=SEEDS,
    count=st.integers(1, 40),
    size=st.none() | st.integers(1, 9),
    drop_last=st.booleans(),
    own=st.booleans(),
    shuffle=st.booleans(),
)
def test_loaders_read_in_the_same_order(seed, count, size, drop_last, own, shuffle):
    drop_last = drop_last and size is not None

    def epochs(module):
        module.manual_seed(seed)
        generator = module.Generator().manual_seed(seed + 1) if own else None
        loader = module.utils.data.DataLoader(range(count), size, shuffle, drop_last=drop_last, generator=generator)
        read = [[plain(batch) for batch in loader] for _ in range(3)]
        states = [state(generator)] if own else []
        return [len(loader), read, states, module.rand(2).tolist()]

    assert_same_outcome(epochs)


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, count=st.integers(1, 20), size=st.integers(1, 5))
def test_interrupted_loaders_have_drawn_the_same(seed, count, size):
    def steps(module):
        generator = module.Generator().manual_seed(seed)
        loader = module.utils.data.DataLoader(range(count), size, True, generator=generator)
        batches = iter(loader)
        return [(next(batches), hash(state(generator))) for _ in range(len(loader))]

    assert_same_outcome(steps)


SAMPLERS = {
    "random": lambda data, count, number, generator: data.RandomSampler(range(count), generator=generator),
    "number": lambda data, count, number, generator: data.RandomSampler(range(count), False, number, generator),
    "replacement": lambda data, count, number, generator: data.RandomSampler(range(count), True, number, generator),
    "subset": lambda data, count, number, generator: data.SubsetRandomSampler(range(number, number + count), generator),
    "weights": lambda data, count, number, generator: data.WeightedRandomSampler(
        [1 / (1 + i) for i in range(count)], number, generator=generator
    ),
    "weights without replacement": lambda data, count, number, generator: data.WeightedRandomSampler(
        range(1, count + 1), min(number, count), False, generator
    ),
}


@pytest.mark.parametrize("name", SAMPLERS)
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, count=st.integers(1, 50), number=st.integers(1, 100), own=st.booleans())
@pytest.mark.long_cases
def test_samplers_draw_the_same(name, seed, count, number, own):
    def drawn(module):
        module.manual_seed(seed)
        generator = module.Generator().manual_seed(seed) if own else None
        sampler = SAMPLERS[name](module.utils.data, count, number, generator)
        return [len(sampler), list(sampler), list(sampler), state(generator) if own else module.rand(1).item()]

    assert_same_outcome(drawn)


@settings(max_examples=40, deadline=None)
@given(
    seed=SEEDS,
    count=st.integers(0, 30),
    lengths=st.lists(st.integers(0, 10), min_size=1, max_size=4) | st.lists(st.floats(0, 1), min_size=1, max_size=3),
    complete=st.booleans(),
)
def test_random_split(seed, count, lengths, complete):
    if isinstance(lengths[0], float):
        total = sum(lengths) * (1.0 if complete else 1.1) + 1e-3
        lengths = [(length + 1e-3 / len(lengths)) / total for length in lengths]
    elif complete:
        count = sum(lengths)

    def parts(module):
        generator = module.Generator().manual_seed(seed)
        return [list(part) for part in module.utils.data.random_split(range(count), lengths, generator)]

    assert_same_outcome(parts)


def test_random_split_with_the_global_generator():
    def parts(module):
        module.manual_seed(5)
        return [list(part) for part in module.utils.data.random_split(range(20), [0.5, 0.3, 0.2])]

    assert_same_outcome(parts)


class Names(list):
    pass


SAMPLES = [
    [1, 2], [1.5, 2.5], [True, False], [1, 2.5], [2.5, 1], [True, 2], [2, True], ["a", "b"], [b"a"], ["a", 1],
    [(1, 2.0), (3, 4.0)], [[1, 2], [3, 4]], [Pair(1, "a"), Pair(2, "b")], [{"a": 1, "b": [2.5]}, {"a": 2, "b": [3.5]}],
    [OrderedDict(a=1)], [UserDict(a=1)], [deque([1, 2])], [Names([1])], [range(3), range(3)],
    [(), ()], [{}, {}], [[], []], [], [{"a": 1}, {"a": 1, "b": 1}], [{"a": 1}, {"b": 1}], [(1, 2), (1,)],
    [None], [object], [1j], [{1}], [slice(1)],
    [numpy.ones(2), numpy.zeros(2)], [numpy.ones(2, "f4"), numpy.zeros(3, "f4")], [numpy.array(1), numpy.array(2)],
    [numpy.float32(1)], [numpy.int64(3)], [numpy.bool_(True)], [numpy.array(["a"])], [numpy.array([None])],
    [numpy.str_("x")], [numpy.ones((2, 2)).T], [numpy.arange(6)[::2]],
]  # fmt: skip


@pytest.mark.parametrize("samples", SAMPLES, ids=str)
@pytest.mark.parametrize("function", ["default_collate", "default_convert"])
def test_batches(samples, function):
    assert_same_outcome(lambda module: getattr(module.utils.data, function)(samples))


@pytest.mark.parametrize(
    "samples",
    [
        lambda module: [module.ones(2), module.zeros(2)],
        lambda module: [module.ones(2), module.zeros(3)],
        lambda module: [module.ones(2, dtype=module.int8), module.zeros(2)],
        lambda module: [{"x": module.ones(1), "y": 1}, {"x": module.zeros(1), "y": 2}],
        lambda module: [module.tensor(1), 2],
        lambda module: [module.empty(0)],
        lambda module: [module.nn.Parameter(module.ones(2))],
    ],
)
def test_batches_of_tensors(samples):
    assert_same_outcome(lambda module: module.utils.data.default_collate(samples(module)))


def stream(module, count, length=None):
    class Stream(module.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(count))

        def __repr__(self):
            return "Stream"

    if length is not None:
        Stream.__len__ = lambda self: length
    return Stream()


def squares(module, count):
    class Squares(module.utils.data.Dataset):
        def __getitem__(self, index):
            return index**2

        def __len__(self):
            return count

    return Squares()


LOADERS = [
    {}, {"batch_size": 2}, {"batch_size": 2, "drop_last": True}, {"batch_size": None}, {"batch_size": 0},
    {"batch_size": 2.5}, {"batch_size": True}, {"batch_size": None, "drop_last": True}, {"shuffle": False},
    {"batch_size": None, "shuffle": False}, {"shuffle": True, "sampler": [1]}, {"sampler": [2, 1], "batch_size": 2},
    {"sampler": 5}, {"batch_sampler": [[0], [1, 2]]}, {"batch_sampler": [[0]], "batch_size": 2},
    {"batch_sampler": [[0]], "sampler": [1]}, {"batch_sampler": [[0]], "drop_last": True}, {"num_workers": -1},
    {"timeout": -1}, {"timeout": 5}, {"prefetch_factor": 2}, {"prefetch_factor": -1, "num_workers": 1},
    {"persistent_workers": True}, {"multiprocessing_context": "fork"}, {"pin_memory": True}, {"foo": 1},
    {"multiprocessing_context": "x", "num_workers": 1}, {"multiprocessing_context": 5, "num_workers": 1},
    {"collate_fn": sum, "batch_size": 3}, {"collate_fn": 5}, {"drop_last": "x"}, {"num_workers": None},
]  # fmt: skip


@pytest.mark.parametrize("options", LOADERS, ids=str)
@pytest.mark.parametrize(
    "make", [squares, stream, lambda module, count: stream(module, count, 3)], ids=["map", "stream", "sized"]
)
def test_loaders(make, options):
    def use(module):
        loader = module.utils.data.DataLoader(make(module, 5), **options)
        batches = [batch for batch in loader]  # noqa: C416  list() would request the length
        return [batches, loader.batch_size, loader.drop_last, loader.prefetch_factor]

    assert_same_outcome(use)
    assert_same_outcome(lambda module: len(module.utils.data.DataLoader(make(module, 5), **options)))


def test_a_stream_longer_than_it_said():
    def use(module):
        loader = module.utils.data.DataLoader(stream(module, 5, 2))
        return [len(loader), [batch for batch in loader]]  # noqa: C416

    assert_same_outcome(use)


@pytest.mark.parametrize(
    "call",
    [
        lambda module, data: data.TensorDataset(module.ones(2), module.ones(3)),
        lambda module, data: data.TensorDataset(module.arange(4), module.ones(4))[1:3],
        lambda module, data: data.TensorDataset(module.arange(4))[[1, 2]],
        lambda module, data: data.TensorDataset(module.arange(4))[7],
        lambda module, data: data.Dataset()[0],
        lambda module, data: len(data.Dataset()),
        lambda module, data: list(data.Sampler()),
        lambda module, data: data.ConcatDataset([]),
        lambda module, data: data.ConcatDataset([range(3), range(4)])[5],
        lambda module, data: data.ConcatDataset([range(3), range(4)])[-7],
        lambda module, data: data.ConcatDataset([range(3), range(4)])[-8],
        lambda module, data: data.ConcatDataset([[1], [2]])[2],
        lambda module, data: data.ConcatDataset([stream(module, 1)]),
        lambda module, data: list(stream(module, 2) + stream(module, 1)),
        lambda module, data: len(stream(module, 2) + stream(module, 1)),
        lambda module, data: list(data.ChainDataset([[1]])),
        lambda module, data: data.StackDataset(range(3), a=range(3)),
        lambda module, data: data.StackDataset(range(3), range(2)),
        lambda module, data: data.StackDataset(),
        lambda module, data: data.StackDataset(a=range(3), b=range(3))[1],
        lambda module, data: data.Subset(range(9), [3, 4])[1],
        lambda module, data: data.Subset(range(9), [3, 4])[5],
        lambda module, data: data.Subset(range(9), [3, 4]).__getitems__([1, 0]),
        lambda module, data: data.random_split(range(3), [1, 1]),
        lambda module, data: data.random_split(range(3), [1.5, -0.5]),
        lambda module, data: data.RandomSampler([]),
        lambda module, data: data.RandomSampler([1], num_samples=-1),
        lambda module, data: data.RandomSampler([1], num_samples=2.0),
        lambda module, data: data.RandomSampler([1], replacement=1),
        lambda module, data: data.WeightedRandomSampler([1.0], 0),
        lambda module, data: data.WeightedRandomSampler([1.0], True),
        lambda module, data: data.WeightedRandomSampler([1.0], 1, 0),
        lambda module, data: data.WeightedRandomSampler([[1.0]], 1),
        lambda module, data: data.WeightedRandomSampler(5, 1),
        lambda module, data: list(data.WeightedRandomSampler([1.0], 2, False)),
        lambda module, data: data.BatchSampler([1], 0, False),
        lambda module, data: data.BatchSampler([1], 2.5, False),
        lambda module, data: data.BatchSampler([1], 2, 1),
        lambda module, data: [list(data.BatchSampler(range(7), 3, drop)) for drop in (True, False)],
        lambda module, data: list(data.BatchSampler(5, 3, True)),
        lambda module, data: len(data.BatchSampler(iter([1]), 3, True)),
        lambda module, data: data.get_worker_info(),
        lambda module, data: setattr(data.DataLoader([1]), "batch_size", 3),
        lambda module, data: setattr(data.DataLoader([1]), "dataset", 3),
        lambda module, data: list(data.DataLoader([])),
        lambda module, data: data.DataLoader([], shuffle=True),
        lambda module, data: list(data.DataLoader({"a": 1})),
        lambda module, data: list(
            data.DataLoader(data.TensorDataset(module.ones(3, 2), module.arange(3)), batch_size=2)
        ),
        lambda module, data: list(data.DataLoader(data.TensorDataset(module.ones(3)), batch_sampler=[[0, 5]])),
        lambda module, data: list(data.DataLoader(data.TensorDataset(module.ones(3)), batch_sampler=[[-4]])),
        lambda module, data: list(data.DataLoader(data.TensorDataset(module.ones(3)), batch_sampler=[[]])),
        lambda module, data: list(data.DataLoader(data.Subset(range(9), [5, 6, 7]), batch_size=2)),
        lambda module, data: data.StackDataset([1, 2, 3], [4, 5, 6]).__getitems__([0, 2]),
        lambda module, data: data.StackDataset(a=data.Subset(range(9), [5, 6]), b=[1, 2]).__getitems__([1, 0]),
        lambda module, data: list(data.DataLoader(data.StackDataset([1, 2, 3], [4, 5, 6]), batch_size=2)),
    ],
)
def test_calls(call):
    assert_same_outcome(lambda module: call(module, module.utils.data))
