"""Datasets, samplers, batches: samples, their order, and collation."""

import itertools
import pickle
import warnings
from collections import OrderedDict, UserDict, defaultdict, deque, namedtuple

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import adjoint as torch
from adjoint.utils import data
from adjoint.utils.data import DataLoader, TensorDataset, default_collate, default_convert

Pair = namedtuple("Pair", "x y")


class Squares(data.Dataset):
    def __init__(self, count):
        self.count = count

    def __getitem__(self, index):
        return index**2

    def __len__(self):
        return self.count


class Stream(data.IterableDataset):
    def __init__(self, count, length=None):
        self.count, self.length = count, length

    def __iter__(self):
        return iter(range(self.count))

    def __len__(self):
        if self.length is None:
            raise TypeError("object of type 'Stream' has no len()")
        return self.length


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def lists(batches):
    return [batch.tolist() for batch in batches]


# ---------------------------------------------------------------------------------------------------------------------
# Datasets


def test_rows_of_tensors():
    dataset = TensorDataset(torch.arange(6).reshape(3, 2), torch.tensor([5, 6, 7]))
    assert len(dataset) == 3
    x, y = dataset[1]
    assert x.tolist() == [2, 3] and y.item() == 6
    x, y = dataset[[0, 2]]
    assert x.tolist() == [[0, 1], [4, 5]] and y.tolist() == [5, 7]
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        TensorDataset(torch.ones(2), torch.ones(3))


def test_what_subclasses_must_define():
    with pytest.raises(NotImplementedError, match=r"Subclasses of Dataset should implement __getitem__\."):
        data.Dataset()[0]
    with pytest.raises(TypeError, match="abstract"):
        data.IterableDataset()
    with pytest.raises(NotImplementedError):
        list(data.Sampler())


def test_datasets_after_each_other():
    joined = Squares(3) + Squares(2)
    assert isinstance(joined, data.ConcatDataset)
    assert len(joined) == 5 and joined.cumulative_sizes == [3, 5]
    assert [joined[i] for i in range(5)] == [0, 1, 4, 0, 1] == [joined[i] for i in range(-5, 0)]
    with pytest.raises(IndexError):
        joined[5]
    with pytest.raises(ValueError, match="absolute value of index should not exceed dataset length"):
        joined[-6]
    with pytest.raises(AssertionError, match="datasets should not be an empty iterable"):
        data.ConcatDataset([])
    with pytest.raises(AssertionError, match="ConcatDataset does not support IterableDataset"):
        data.ConcatDataset([Stream(2)])


def test_streams_after_each_other():
    chained = Stream(2, 2) + Stream(3, 3)
    assert list(chained) == [0, 1, 0, 1, 2] and len(chained) == 5
    with pytest.raises(AssertionError, match="ChainDataset only supports IterableDataset"):
        list(data.ChainDataset([Squares(2)]))


def test_datasets_beside_each_other():
    assert data.StackDataset(Squares(3), Squares(3))[2] == (4, 4)
    assert data.StackDataset(a=Squares(3), b=Squares(3))[2] == {"a": 4, "b": 4}
    assert len(data.StackDataset(Squares(3))) == 3
    with pytest.raises(ValueError, match="Size mismatch between datasets"):
        data.StackDataset(Squares(3), Squares(2))
    with pytest.raises(ValueError, match="At least one dataset should be passed"):
        data.StackDataset()
    with pytest.raises(ValueError, match="both types are given"):
        data.StackDataset(Squares(3), b=Squares(3))


def test_subsets():
    subset = data.Subset(Squares(10), [3, 1, 4])
    assert len(subset) == 3 and [subset[i] for i in range(3)] == [9, 1, 16]
    assert subset.__getitems__([2, 0]) == [16, 9]
    rows = data.Subset(TensorDataset(torch.arange(5)), [4, 2])
    assert rows[[0, 1]][0].tolist() == [4, 2]


def test_batches_are_got_at_once_where_the_dataset_can():
    class Batched(Squares):
        def __getitems__(self, indices):
            return [-index for index in indices]

    assert lists(DataLoader(Batched(4), batch_size=2)) == [[0, -1], [-2, -3]]
    assert lists(DataLoader(data.Subset(Batched(4), [3, 1]), batch_size=2)) == [[-3, -1]]
    assert list(DataLoader(Batched(2), batch_size=None)) == [0, 1]


@given(st.lists(st.integers(0, 10), min_size=1, max_size=5), st.integers(0, 5))
def test_random_split_is_a_partition(lengths, seed):
    total = sum(lengths)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = data.random_split(range(total), lengths, generator(seed))
    assert [len(part) for part in parts] == lengths
    assert sorted(sample for part in parts for sample in part) == list(range(total))


def test_random_split_by_fractions():
    assert [len(part) for part in data.random_split(range(11), [0.25] * 4)] == [3, 3, 3, 2]
    with pytest.warns(UserWarning, match=r"Length of split at index 1 is 0\. This might result in an empty dataset\."):
        assert [len(part) for part in data.random_split(range(1), [0.5, 0.5])] == [1, 0]
    with pytest.raises(ValueError, match="Sum of input lengths does not equal the length of the input dataset!"):
        data.random_split(range(10), [3, 3])
    with pytest.raises(ValueError, match="Fraction at index 0 is not between 0 and 1"):
        data.random_split(range(10), [1.5, -0.5])


# ---------------------------------------------------------------------------------------------------------------------
# Samplers


@pytest.mark.parametrize(("replacement", "first"), [(True, [86, 48, 37]), (False, [86, 42, 89])])
def test_the_first_of_very_many_random_indices_comes_at_once(replacement, first):
    sampler = data.RandomSampler(range(100), replacement, num_samples=10**15, generator=generator(3))
    assert list(itertools.islice(sampler, 3)) == first


def test_orders_that_pytorch_draws():
    assert list(data.RandomSampler(range(8), generator=generator(3))) == [2, 4, 3, 5, 1, 0, 6, 7]
    assert list(data.RandomSampler(range(3), num_samples=7, generator=generator(3))) == [1, 0, 2, 1, 2, 0, 1]
    drawn = list(data.RandomSampler(range(50), replacement=True, num_samples=35, generator=generator(3)))
    assert drawn[:8] == [36, 48, 37, 17, 10, 30, 40, 25] and drawn[32:] == [4, 33, 19]
    assert list(data.SubsetRandomSampler("abcd", generator=generator(3))) == ["c", "d", "b", "a"]
    assert list(data.WeightedRandomSampler([0.1, 0.2, 0.7], 8, generator=generator(3))) == [0, 1, 2, 1, 2, 2, 1, 2]
    torch.manual_seed(0)
    loader = DataLoader(range(6), batch_size=4, shuffle=True)
    assert [lists(loader) for _ in range(2)] == [[[0, 4, 3, 5], [2, 1]], [[2, 3, 1, 5], [4, 0]]]
    assert lists(DataLoader(range(6), batch_size=4, shuffle=True, generator=generator(3))) == [[1, 3, 2, 0], [4, 5]]
    assert [list(part) for part in data.random_split(range(10), [3, 7], generator(42))] == [
        [2, 6, 1],
        [8, 4, 5, 0, 9, 3, 7],
    ]


def test_an_order_is_a_permutation():
    assert sorted(data.RandomSampler(Squares(20))) == list(range(20))
    assert sorted(data.RandomSampler(Squares(5), num_samples=10)) == sorted([*range(5)] * 2)
    assert sorted(data.SubsetRandomSampler([3, 5, 8])) == [3, 5, 8]
    assert list(data.SequentialSampler(Squares(4))) == [0, 1, 2, 3]
    assert set(data.WeightedRandomSampler([0.0, 1.0, 1.0], 100)) == {1, 2}
    assert sorted(data.WeightedRandomSampler([1, 2, 3], 3, replacement=False)) == [0, 1, 2]


def test_lengths_of_samplers():
    assert len(data.RandomSampler(Squares(5))) == 5
    assert len(data.RandomSampler(Squares(5), num_samples=7)) == 7
    assert len(data.SequentialSampler(Squares(5))) == 5
    assert len(data.SubsetRandomSampler([1, 2])) == 2
    assert len(data.WeightedRandomSampler([1.0], 9)) == 9


@given(st.integers(0, 20), st.integers(1, 7), st.booleans())
def test_batches_of_indices(count, size, drop_last):
    sampler = data.BatchSampler(range(count), size, drop_last)
    batches = list(sampler)
    assert len(batches) == len(sampler)
    assert [index for batch in batches for index in batch] == list(range(count // size * size if drop_last else count))
    assert all(len(batch) == size for batch in batches[:-1])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: data.RandomSampler([]), ValueError, "num_samples should be a positive integer value, but got"),
        (lambda: data.RandomSampler([1], num_samples=2.0), ValueError, "but got num_samples=2.0"),
        (lambda: data.RandomSampler([1], replacement=1), TypeError, "replacement should be a boolean value"),
        (lambda: data.WeightedRandomSampler([1], 0), ValueError, "num_samples should be a positive integer value"),
        (lambda: data.WeightedRandomSampler([1], True), ValueError, "num_samples should be a positive integer value"),
        (lambda: data.WeightedRandomSampler([1], 1, 0), ValueError, "replacement should be a boolean value"),
        (lambda: data.WeightedRandomSampler([[1]], 1), ValueError, "weights should be a 1d sequence but given"),
        (lambda: data.BatchSampler([1], 0, False), ValueError, "batch_size should be a positive integer value"),
        (lambda: data.BatchSampler([1], True, False), ValueError, "batch_size should be a positive integer value"),
        (lambda: data.BatchSampler([1], 1, 0), ValueError, "drop_last should be a boolean value, but got drop_last=0"),
    ],
)  # fmt: skip
def test_samplers_refuse(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---------------------------------------------------------------------------------------------------------------------
# Batches


def assert_batch(batch, expected):
    if isinstance(expected, torch.Tensor):
        assert isinstance(batch, torch.Tensor) and batch.dtype is expected.dtype and batch.tolist() == expected.tolist()
    elif isinstance(expected, dict):
        assert type(batch) is type(expected) and list(batch) == list(expected)
        for key in expected:
            assert_batch(batch[key], expected[key])
    elif isinstance(expected, (list, tuple, deque)):
        assert type(batch) is type(expected) and len(batch) == len(expected)
        for item, wanted in zip(batch, expected, strict=True):
            assert_batch(item, wanted)
    else:
        assert batch == expected


class Names(list):
    pass


INTS = torch.tensor([1, 2])
FLOATS = torch.tensor([1.5, 2.5], dtype=torch.float64)
COLLATED = [
    ([1, 2], INTS),
    ([1.5, 2.5], FLOATS),
    ([True, False], torch.tensor([True, False])),
    ([1, 2.5], torch.tensor([1.0, 2.5])),
    (["a", "b"], ["a", "b"]),
    ([b"a", b"b"], [b"a", b"b"]),
    ([torch.tensor(1), torch.tensor(2)], INTS),
    ([numpy.array([1, 2]), numpy.array([3, 4])], torch.tensor([[1, 2], [3, 4]])),
    ([numpy.array(1), numpy.array(2)], INTS),
    ([numpy.float32(1.5), numpy.float32(2.5)], torch.tensor([1.5, 2.5])),
    ([numpy.float64(1.5), numpy.float64(2.5)], FLOATS),
    ([numpy.bool_(True)], torch.tensor([True])),
    ([(1, 1.5), (2, 2.5)], [INTS, FLOATS]),
    ([[1, "a"], [2, "b"]], [INTS, ("a", "b")]),
    ([Pair(1, 1.5), Pair(2, 2.5)], Pair(INTS, FLOATS)),
    ([{"a": 1, "b": 1.5}, {"a": 2, "b": 2.5}], {"a": INTS, "b": FLOATS}),
    ([OrderedDict(a=1), OrderedDict(a=2)], OrderedDict(a=INTS)),
    ([{"a": (1, {"b": 1.5})}, {"a": (2, {"b": 2.5})}], {"a": [INTS, {"b": FLOATS}]}),
    ([deque([1]), deque([2])], deque([INTS])),
    ([Names([1]), Names([2])], Names([INTS])),
    ([range(1, 2), range(2, 3)], [INTS]),
    ([(), ()], []),
    ([{}, {}], {}),
]


@pytest.mark.parametrize(("samples", "batch"), COLLATED, ids=[str(samples) for samples, _ in COLLATED])
def test_batches(samples, batch):
    assert_batch(default_collate(samples), batch)


def test_batches_of_other_containers():
    batch = default_collate([UserDict(a=1), UserDict(a=2)])
    assert type(batch) is UserDict and batch["a"].tolist() == [1, 2]
    batch = default_collate([defaultdict(list, a=1), defaultdict(list, a=2)])
    assert batch.default_factory is list and batch["a"].tolist() == [1, 2]


def test_batches_record_gradients():
    leaf = torch.ones(2, requires_grad=True)
    default_collate([leaf, leaf * 2]).sum().backward()
    assert leaf.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    ("samples", "error", "message"),
    [
        ([None], TypeError, "batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class 'NoneT"),
        ([object()], TypeError, "found <class 'object'>"),
        ([{1, 2}], TypeError, "found <class 'set'>"),
        ([1j], TypeError, "found <class 'complex'>"),
        ([numpy.array(["a"])], TypeError, "found <U1"),
        ([numpy.array([None])], TypeError, "found object"),
        ([(1, 2), (1,)], RuntimeError, "each element in list of batch should be of equal size"),
        ([torch.ones(2), torch.ones(3)], RuntimeError, "stack expects each tensor to be equal size"),
        ([{"a": 1}, {"b": 1}], KeyError, "a"),
    ],
)  # fmt: skip
def test_objects_that_cannot_be_batches(samples, error, message):
    with pytest.raises(error, match=message):
        default_collate(samples)


def test_conversion():
    array = numpy.ones(2)
    for value, expected in [
        (array, torch.ones(2, dtype=torch.float64)),
        (numpy.float32(2), torch.tensor(2.0)),
        ({"a": array}, {"a": torch.ones(2, dtype=torch.float64)}),
        ((1, array), [1, torch.ones(2, dtype=torch.float64)]),
        (Pair(1, array), Pair(1, torch.ones(2, dtype=torch.float64))),
        ("a", "a"),
        (None, None),
    ]:
        assert_batch(default_convert(value), expected)
    tensor = torch.ones(2)
    assert default_convert(tensor) is tensor
    text = numpy.array(["a"])
    assert default_convert(text) is text


# ---------------------------------------------------------------------------------------------------------------------
# The loader


@given(st.integers(1, 20), st.integers(1, 7), st.booleans(), st.booleans())
def test_every_sample_once(count, size, shuffle, drop_last):
    loader = DataLoader(Squares(count), batch_size=size, shuffle=shuffle, drop_last=drop_last)
    batches = lists(loader)
    assert len(batches) == len(loader) == len(iter(loader))
    samples = [sample for batch in batches for sample in batch]
    assert len(samples) == (count // size * size if drop_last else count)
    assert len(set(samples)) == len(samples) and set(samples) <= {index**2 for index in range(count)}


def test_tensors_in_batches():
    loader = DataLoader(TensorDataset(torch.arange(6.0).reshape(3, 2), torch.tensor([0, 1, 2])), batch_size=2)
    (x, y), last = loader
    assert x.tolist() == [[0.0, 1.0], [2.0, 3.0]] and y.tolist() == [0, 1]
    assert last[0].tolist() == [[4.0, 5.0]]


@pytest.mark.parametrize("indices", [[0, 2], [-1, 1], [3, 3], [torch.tensor(1), 2]], ids=str)
def test_rows_got_at_once_are_those_got_one_by_one(indices):
    rows = torch.arange(24.0).reshape(4, 3, 2)
    leaf = torch.ones(4, requires_grad=True)
    for tensors in (
        [rows, torch.arange(4)],
        [rows.transpose(1, 2)],
        [rows, leaf],
        [rows[:, 1]],
        [torch.arange(4).bool()],
    ):
        for dataset in (TensorDataset(*tensors), data.Subset(TensorDataset(*tensors), [3, 2, 1, 0])):
            [batch] = DataLoader(dataset, batch_sampler=[indices])
            expected = default_collate([dataset[index] for index in indices])
            assert_batch(batch, expected)
            assert [part.stride() for part in batch] == [part.stride() for part in expected]
            assert [part.requires_grad for part in batch] == [part.requires_grad for part in expected]


def test_missing_rows():
    for dataset in (TensorDataset(torch.arange(3)), data.Subset(TensorDataset(torch.arange(3)), [0, 1, 2])):
        with pytest.raises(IndexError):
            list(DataLoader(dataset, batch_sampler=[[0, 3]]))


def test_each_pass_is_another_order():
    torch.manual_seed(0)
    loader = DataLoader(range(100), batch_size=100, shuffle=True)
    first, second = lists(loader), lists(loader)
    assert first != second
    torch.manual_seed(0)
    assert lists(loader) == first


def test_two_passes_at_once():
    loader = DataLoader(range(3))
    assert [(a.item(), b.item()) for a in loader for b in loader] == [(a, b) for a in range(3) for b in range(3)]


def test_an_order_from_outside():
    assert lists(DataLoader(Squares(9), batch_size=2, sampler=[8, 1, 2])) == [[64, 1], [4]]
    loader = DataLoader(Squares(9), batch_sampler=[[8], [1, 2]])
    assert lists(loader) == [[64], [1, 4]] and len(loader) == 2
    assert loader.batch_size is None
    assert lists(DataLoader({"a": 1, "b": 2}, sampler=["b", "a"])) == [[2], [1]]


def test_single_samples():
    loader = DataLoader(Squares(3), batch_size=None)
    assert list(loader) == [0, 1, 4] and len(loader) == 3


def test_collate_fn():
    assert list(DataLoader(Squares(4), batch_size=3, collate_fn=sum)) == [5, 9]
    assert list(DataLoader(Squares(3), batch_size=None, collate_fn=lambda sample: -sample)) == [0, -1, -4]


def test_streams():
    assert lists(DataLoader(Stream(5), batch_size=2)) == [[0, 1], [2, 3], [4]]
    assert lists(DataLoader(Stream(5), batch_size=2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]
    assert [len(DataLoader(Stream(5, 5), batch_size=size)) for size in (1, 2, None)] == [5, 3, 5]
    assert len(DataLoader(Stream(5, 5), batch_size=2, drop_last=True)) == 2
    with pytest.raises(TypeError, match="has no len"):
        len(DataLoader(Stream(5)))
    loader = DataLoader(Stream(3, 2))
    assert len(loader) == 2
    with pytest.warns(
        UserWarning, match=r"was reported to be 2\(when accessing len\(dataloader\)\), but 3 samples have been fetched"
    ):
        assert len(lists(loader)) == 3


def test_empty_datasets():
    assert list(DataLoader([])) == [] and len(DataLoader([])) == 0
    assert list(DataLoader(Stream(0))) == []


def test_errors_of_the_dataset_come_through():
    class Broken(Squares):
        def __getitem__(self, index):
            raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        list(DataLoader(Broken(3)))


@pytest.mark.thorough
def test_workers_change_nothing():
    torch.manual_seed(0)
    expected = lists(DataLoader(Squares(10), batch_size=3, shuffle=True))
    torch.manual_seed(0)
    loader = DataLoader(Squares(10), batch_size=3, shuffle=True, num_workers=2, persistent_workers=True, timeout=5)
    assert lists(loader) == expected and loader.prefetch_factor == 2
    assert data.get_worker_info() is None


def test_there_is_no_memory_to_pin():
    with pytest.warns(UserWarning, match="'pin_memory' argument is set as true but no accelerator is found"):
        assert len(list(DataLoader(range(2), pin_memory=True))) == 2


def test_what_is_fixed_after_creation():
    loader = DataLoader(range(3))
    for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
            setattr(loader, name, 1)
    loader.collate_fn = list
    assert list(loader) == [[0], [1], [2]]


def test_loaders_can_be_pickled():
    loader = pickle.loads(pickle.dumps(DataLoader(Squares(5), batch_size=2)))
    assert lists(loader) == [[0, 1], [4, 9], [16]]


CONTRADICTIONS = [
    ({"batch_size": 0}, "batch_size should be a positive integer value, but got batch_size=0"),
    ({"batch_size": None, "drop_last": True}, "batch_size=None option disables auto-batching and is"),
    ({"shuffle": True, "sampler": [1]}, "sampler option is mutually exclusive with shuffle"),
    *(
        ({"batch_sampler": [[1]], **other}, "batch_sampler option is mutually exclusive with batch_size, shuffle,")
        for other in ({"batch_size": 2}, {"shuffle": True}, {"sampler": [1]}, {"drop_last": True})
    ),
    ({"num_workers": -1}, "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing"),
    ({"timeout": -1}, "timeout option should be non-negative"),
    ({"prefetch_factor": 2}, "prefetch_factor option could only be specified in multiprocessing"),
    ({"prefetch_factor": -2, "num_workers": 1}, "prefetch_factor option should be non-negative"),
    ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
    ({"multiprocessing_context": "fork"}, "multiprocessing_context can only be used with multi-process loading"),
    ({"multiprocessing_context": "foo", "num_workers": 1}, "multiprocessing_context option should specify a valid"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), CONTRADICTIONS, ids=[str(options) for options, _ in CONTRADICTIONS])
def test_options_that_contradict_each_other(options, message):
    with pytest.raises(ValueError, match=message):
        DataLoader(Squares(3), **options)


@pytest.mark.parametrize("option", ["shuffle", "sampler", "batch_sampler"])
def test_streams_have_an_order_already(option):
    with pytest.raises(
        ValueError, match=f"DataLoader with IterableDataset: expected unspecified {option} option, but got"
    ):
        DataLoader(Stream(3), **{option: True})


def test_other_errors():
    with pytest.raises(AssertionError, match="requires timeout == 0"):
        iter(DataLoader(range(3), timeout=5))
    with pytest.raises(TypeError, match="multiprocessing_context option should be a valid context object"):
        DataLoader(range(3), num_workers=1, multiprocessing_context=5)
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        DataLoader(range(3), foo=1)


def test_functions_for_types_of_a_program(monkeypatch):
    functions = data._utils.collate.default_collate_fn_map
    collate = data._utils.collate.collate

    class Point:
        def __init__(self, x):
            self.x = x

    class Other(Point):
        pass

    def points(batch, *, collate_fn_map=None):
        return "points", collate([sample.x for sample in batch], collate_fn_map=collate_fn_map)

    monkeypatch.setitem(functions, Point, points)
    name, batch = default_collate([{"at": Other(1)}, {"at": Point(2)}])["at"]
    assert name == "points"
    assert torch.equal(batch, torch.tensor([1, 2]))
    assert collate([[1, 2], [3, 4]], collate_fn_map={int: lambda batch, **_: sum(batch)}) == [4, 6]
    with pytest.raises(TypeError, match="found <class 'int'>"):
        collate([1, 2])
    assert data._utils.worker._generate_state(123, 4) == [3133042655, 609701789, 3156826794, 1639029168]


def test_sizes_are_no_symbols():
    from adjoint.fx.experimental import proxy_tensor, symbolic_shapes

    assert proxy_tensor.get_proxy_mode() is None
    assert symbolic_shapes.guard_or_true(True)
    assert not symbolic_shapes.guard_or_false(False)
    assert symbolic_shapes.statically_known_true(torch.ones(3).shape[0] > 2)
    assert not symbolic_shapes.free_symbols(torch.ones(2)) | symbolic_shapes.free_unbacked_symbols(torch.ones(2))
