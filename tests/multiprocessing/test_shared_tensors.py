"""Tensors of any kind, sent to another process in any way, keep their values, geometry, class and shared memory."""

from __future__ import annotations

import array
import gc
import itertools
import os
import pickle

import numpy
import pytest

import adjoint as torch
import adjoint.multiprocessing as mp
from adjoint.utils.data import DataLoader

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and descriptors that are sent"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),  # from Python 3.12 on
    pytest.mark.filterwarnings("ignore:The given"),
]

NUMBERS = numpy.arange(40.0)
BYTES = bytearray(NUMBERS[:16].tobytes())


def mapped(folder):
    path = folder / "mapped.bin"
    path.write_bytes(BYTES)
    return str(path)


def loaded(folder, **options):
    torch.save(torch.arange(16.0), folder / "saved.pt")
    return torch.load(folder / "saved.pt", **options)


MEMORY = {
    "own": lambda folder: torch.arange(16.0),
    "own, a part": lambda folder: torch.arange(20.0)[4:],
    "as_strided": lambda folder: torch.arange(16.0).as_strided((3, 3), (1, 4), 2),
    "from_numpy": lambda folder: torch.from_numpy(NUMBERS[:16].copy()),
    "from_numpy, a part": lambda folder: torch.from_numpy(NUMBERS[3:19]),
    "from_numpy, steps": lambda folder: torch.from_numpy(NUMBERS[:32:2]),
    "from_numpy, columns": lambda folder: torch.from_numpy(numpy.asfortranarray(NUMBERS[:16].reshape(4, 4))),
    "from_numpy, overlapping": lambda folder: torch.from_numpy(
        numpy.lib.stride_tricks.as_strided(NUMBERS, (4, 3), (16, 8))
    ),
    "from_numpy, a field": lambda folder: torch.from_numpy(numpy.ones(4, [("a", "f8"), ("b", "f8")])["a"]),
    "from_numpy, no elements": lambda folder: torch.from_numpy(numpy.zeros((0, 3))),
    "from_numpy, a number": lambda folder: torch.from_numpy(numpy.array(3.0)),
    "numpy.frombuffer": lambda folder: torch.from_numpy(numpy.frombuffer(BYTES)[4:].reshape(2, 6)),
    "numpy.memmap": lambda folder: torch.from_numpy(numpy.memmap(mapped(folder), numpy.float64, "r+")),
    "frombuffer": lambda folder: torch.frombuffer(BYTES, dtype=torch.float64),
    "frombuffer, a part": lambda folder: torch.frombuffer(BYTES, dtype=torch.float64, offset=8, count=9),
    "frombuffer of bytes": lambda folder: torch.frombuffer(bytes(BYTES), dtype=torch.float64),
    "frombuffer of array.array": lambda folder: torch.frombuffer(array.array("d", range(16)), dtype=torch.float64),
    "asarray": lambda folder: torch.asarray(NUMBERS[:16].copy()),
    "as_tensor": lambda folder: torch.as_tensor(NUMBERS[2:18]),
    "from_dlpack": lambda folder: torch.from_dlpack(NUMBERS[:16].copy()),
    "from_dlpack of a tensor": lambda folder: torch.from_dlpack(torch.arange(16.0)),
    "from_file": lambda folder: torch.from_file(mapped(folder), size=16, dtype=torch.float64),
    "from_file, shared": lambda folder: torch.from_file(mapped(folder), shared=True, size=16, dtype=torch.float64),
    "load": loaded,
    "load, mapped": lambda folder: loaded(folder, mmap=True),
    "set_": lambda folder: torch.empty(0).set_(torch.arange(16.0).untyped_storage(), 3, (4, 2), (1, 2)),
}


class Marked(torch.Tensor):
    """A subclass."""


class MarkedParameter(torch.nn.Parameter):
    """A subclass of `Parameter`."""


KINDS = {
    "as it is": lambda x: x,
    "transposed": lambda x: x.reshape(-1, 1).t() if x.dim() < 2 else x.t(),
    "steps": lambda x: x[::2] if x.dim() else x,
    "expanded": lambda x: x.expand(2, *x.shape),
    "requires grad": lambda x: x.detach().requires_grad_(),
    "parameter": torch.nn.Parameter,
    "buffer": torch.nn.Buffer,
    "subclass": lambda x: x.as_subclass(Marked),
    "subclass of parameters": MarkedParameter,
    "sparse": lambda x: x.to_sparse(),
    "compressed": lambda x: x.reshape(1, -1).to_sparse_csr(),
    "bool": lambda x: x > 2,
    "bfloat16": lambda x: x.bfloat16(),
    "float8": lambda x: x.to(torch.float8_e5m2),
    "uint16": lambda x: x.to(torch.int32).to(torch.uint16),
    "conjugated": lambda x: x.to(torch.complex64).conj(),
    "meta": lambda x: x.to("meta"),
}


def told(tensor, steps=True):
    """Return all visible properties of a tensor."""
    plain = tensor.detach()
    dense = plain if plain.layout is torch.strided else plain.to_dense()
    values = None if tensor.is_meta else dense.to(torch.complex128).tolist()
    geometry = tensor.stride() if steps and tensor.layout is torch.strided else None
    return (
        type(tensor).__name__,
        str(tensor.dtype),
        tuple(tensor.shape),
        str(tensor.layout),
        tensor.requires_grad,
        values,
        geometry,
    )


def one_by_one(folder):
    return ((name, kind, KINDS[kind](make(folder))) for name, make in MEMORY.items() for kind in KINDS)


def all_tensors(folder):
    return [*one_by_one(folder)]


def answer(inbox, outbox):
    """Answer each tensor with the properties of the tensor, and write into the tensor's memory."""
    for tensor in iter(inbox.get, None):
        outbox.put(told(tensor))
        if tensor.layout is torch.strided and not tensor.is_meta:
            tensor.detach().fill_(1)
        outbox.put(None)


METHODS = pytest.mark.parametrize(
    ("method", "step"), [("fork", 5), pytest.param("spawn", 1, marks=pytest.mark.thorough)], ids=["fork", "spawn"]
)
"""The start methods of processes, each with the number of tensors to draw, which cover each kind of tensor and memory."""


@pytest.mark.thorough
@pytest.mark.alone
@METHODS
def test_queues(method, step, tmp_path):
    context = mp.get_context(method)
    inbox, outbox = context.SimpleQueue(), context.SimpleQueue()
    process = context.Process(target=answer, args=(inbox, outbox), daemon=True)
    process.start()
    for name, kind, tensor in itertools.islice(one_by_one(tmp_path), 0, None, step):
        expected = told(tensor)
        inbox.put(tensor)
        assert outbox.get() == expected, (name, kind)
        outbox.get()
        if tensor.layout is torch.strided and not tensor.is_meta:
            assert tensor.is_shared() and (tensor.detach() == 1).all(), (
                name,
                kind,
            )  # the other process has written these values
    inbox.put(None)
    process.join(30)
    assert process.exitcode == 0


@pytest.mark.thorough
def test_what_lies_on_foreign_memory_moves_with_it():
    array = numpy.arange(6.0)
    whole, other = torch.from_numpy(array), torch.from_numpy(array)
    row, alias = whole.view(2, 3)[1], whole.detach()
    mp.SimpleQueue().put(row)
    row[0] = 7
    assert all(each.is_shared() for each in (whole, row, alias)) and whole[3] == alias[3] == 7
    assert not other.is_shared() and other[3] == array[3] == 3  # another storage, as in PyTorch


@pytest.mark.parametrize("kind", ["alone", "a part", "a view", "a view of a parameter"])
def test_tensors_on_a_memory_are_known_without_a_search(kind, monkeypatch):
    base = torch.nn.Parameter(torch.ones(3, 4)) if "parameter" in kind else torch.ones(3, 4)
    tensor = {"alone": base, "a part": torch.ones(5)[2:]}.get(kind)
    if tensor is None:
        with torch.no_grad():
            tensor = base[1]

    def searched(*objects):
        raise AssertionError("all objects are looked at")

    monkeypatch.setattr(gc, "get_referrers", searched)
    tensor.share_memory_()
    monkeypatch.undo()
    tensor.detach()[0] = 7
    assert "view" not in kind or (base.is_shared() and base[1, 0] == 7)


def test_what_lies_on_memory_is_found_among_frozen_objects_and_subclasses():
    class Tagged(torch.Tensor):
        pass

    base = torch.ones(3, 4)
    row, tagged, storage = base[1], base[2].as_subclass(Tagged), base.untyped_storage()
    gc.freeze()  # never unfrozen, because the collector would then visit all objects of the tests
    base.share_memory_()
    assert gc.get_freeze_count()
    assert all(each.is_shared() for each in (row, tagged, storage))


def test_what_comes_in_inference_mode_is_an_inference_tensor():
    queue = mp.SimpleQueue()
    queue.put(torch.ones(3))
    queue.put(torch.ones(3))
    with torch.inference_mode():
        assert queue.get().is_inference()
    assert not queue.get().is_inference()


@pytest.mark.thorough
@pytest.mark.alone
def test_pipes_and_pools(tmp_path):
    tensors = [tensor for _, _, tensor in all_tensors(tmp_path)[::7]]
    near, far = mp.Pipe()
    for tensor in tensors:
        near.send(tensor)
        assert told(far.recv()) == told(tensor)
    with mp.get_context("fork").Pool(1) as pool:
        assert pool.map(told, tensors) == [told(tensor) for tensor in tensors]


@pytest.mark.thorough
@pytest.mark.alone
@METHODS
def test_loaders(method, step, tmp_path):
    tensors = all_tensors(tmp_path)[::step]
    samples = [tensor for _, _, tensor in tensors]
    loader = DataLoader(samples, batch_size=None, num_workers=1, multiprocessing_context=method)
    for (name, kind, tensor), received in zip(tensors, loader, strict=True):
        assert told(received, steps=False) == told(tensor, steps=False), (name, kind)


@pytest.mark.parametrize(
    "protocol", [pytest.param(each, marks=pytest.mark.thorough if each % 2 else ()) for each in range(6)]
)
@pytest.mark.long_cases
def test_plain_pickles(protocol, tmp_path):
    for name, kind, tensor in all_tensors(tmp_path):
        assert told(pickle.loads(pickle.dumps(tensor, protocol))) == told(tensor), (name, kind)


def test_what_reduce_tensor_returns_gives_the_tensor_in_this_process():
    tensor = torch.arange(6.0).view(2, 3).t()[1:].requires_grad_()
    rebuild, arguments = mp.reductions.reduce_tensor(tensor)
    again = rebuild(*arguments)
    assert (again.stride(), again.is_leaf, again.data_ptr()) == (tensor.stride(), True, tensor.data_ptr())
