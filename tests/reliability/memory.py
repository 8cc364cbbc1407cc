"""Wrong sizes, strides and offsets: no tensor reads or writes outside its memory.

Random calls of functions that set sizes on a storage run on memory with canaries before and after the storage. A refused call
does not change the memory. All elements of a created tensor lie within its storage, and writes to all elements leave the canaries
unchanged.
"""

from __future__ import annotations

import io
import pickle
import random
import warnings
from typing import Any

import numpy

import adjoint as torch
from adjoint.kernels.runtime.meta_array import Released
from adjoint.serialization import tensors as rebuilding

from . import Outcome, experiment
from .hostile_files import archive, tensor_pickle

MARGIN = 64
CANARY = b"\xa5" * MARGIN
REFUSALS = (
    RuntimeError,
    TypeError,
    ValueError,
    MemoryError,
    IndexError,
    OverflowError,
    BufferError,
    pickle.UnpicklingError,
)
DTYPES = [
    torch.float32,
    torch.float64,
    torch.int8,
    torch.int64,
    torch.bool,
    torch.bfloat16,
    torch.complex64,
    torch.float16,
]


class Memory:
    """A block of bytes between canaries, and tensors with various layouts in this block."""

    def __init__(self, rng: random.Random) -> None:
        self.length = rng.choice([0, 7, 24, 96, 96, 200])
        self.bytes = numpy.frombuffer(bytearray(CANARY + bytes(self.length) + CANARY), numpy.uint8)
        self.kind = rng.choice(DTYPES)
        count = self.length // self.kind.itemsize
        self.inner = self.bytes[MARGIN : MARGIN + count * self.kind.itemsize].view(self.kind.numpy)
        self.first = self.bytes.ctypes.data + MARGIN
        self.last = self.first + self.length

    def tensor(self, rng: random.Random) -> Any:
        array = self.inner
        how = rng.randrange(7)
        if how == 1 and array.size >= 6:
            array = array[: array.size // 6 * 6].reshape(-1, 6).T
        elif how == 2:
            array = array[1::2]
        elif how == 3 and array.size:
            array = numpy.broadcast_to(array[:1], (5,))
        elif how == 4 and array.size:
            return torch.frombuffer(self.bytes.data, dtype=self.kind, offset=MARGIN, count=array.size)[1:]
        elif how == 5 and array.size:
            return (
                torch.from_dlpack(array.reshape(1, -1).T)
                if self.kind is not torch.bfloat16
                else torch.from_numpy(array)
            )
        elif how == 6:  # the test owns this memory
            return torch.zeros(array.size, dtype=self.kind)[rng.randrange(3) :]
        return torch.from_numpy(array)

    def check(self, tensor: Any) -> None:
        """Assert that elements lie in the storage, and the storage between the canaries or in new memory.

        Assert that the canaries are unchanged.
        """
        array = tensor._array
        storage = tensor.untyped_storage()
        first = storage.data_ptr()
        last = first + storage.nbytes()
        if self.first - MARGIN <= first <= self.last + MARGIN and storage.nbytes():
            assert self.first <= first and last <= self.last, "the storage is larger than its memory"
        if array.size:
            low, high = numpy.lib.array_utils.byte_bounds(array)
            assert first <= low and high <= last, "elements lie outside the storage"
            if array.size <= 1000 and array.flags.writeable:
                tensor.fill_(1)
                assert bool((tensor == 1).all()), "what was written is not there"
        whole = self.bytes[:MARGIN].tobytes() == CANARY == self.bytes[-MARGIN:].tobytes()
        assert whole, "memory outside has changed"


SIZES = [0, 1, 1, 2, 2, 3, 4, 6, 8, 12, 24, 25]
STEPS = [0, 1, 1, 1, 2, 3, 4, 6, 12]
ODD = [
    -1,
    -1,
    -2,
    -6,
    2**31,
    2**32,
    2**40,
    2**61,
    2**62,
    2**63 - 1,
    -(2**63),
    2**63,
    2**64,
    2**70,
    -(2**70),
    True,
    1.0,
    None,
    "1",
]


def number(rng: random.Random, usual: list[int]) -> Any:
    return rng.choice(ODD) if rng.random() < 0.08 else rng.choice(usual)


def geometry(rng: random.Random) -> tuple[tuple[Any, ...], tuple[Any, ...], Any]:
    dims = rng.choice([0, 1, 1, 1, 2, 2, 3])
    others = dims if rng.random() < 0.95 else rng.randrange(4)
    size = tuple(number(rng, SIZES) for _ in range(dims))
    return size, tuple(number(rng, STEPS) for _ in range(others)), number(rng, [0, 0, 1, 2, 3, 5, 23, 24, 25])


def small(size: Any, stride: Any, offset: Any) -> bool:
    """Return whether a storage for these elements is small enough for a test."""
    numbers = [value for value in (*size, *stride, offset) if isinstance(value, (int, float))]
    return max(map(abs, numbers), default=0) < 1000 or max(map(abs, numbers)) >= 2**61


def set_from_tensor(x: Any, y: Any, rng: random.Random) -> Any:
    size, stride, offset = geometry(rng)
    return x.set_(y, offset, size, stride) if small(size, stride, offset) else x


def set_from_storage(x: Any, y: Any, rng: random.Random) -> Any:
    size, stride, offset = geometry(rng)
    source = y.untyped_storage() if rng.random() < 0.5 else y.storage()
    return x.set_(source, offset, size, stride) if small(size, stride, offset) else x


def set_whole(x: Any, y: Any, rng: random.Random) -> Any:
    return x.set_(rng.choice([y, y.storage(), y.untyped_storage()]))


def as_strided(x: Any, y: Any, rng: random.Random) -> Any:
    return x.as_strided(*geometry(rng))


def as_strided_from_here(x: Any, y: Any, rng: random.Random) -> Any:
    return x.as_strided(*geometry(rng)[:2])


def as_strided_in_place(x: Any, y: Any, rng: random.Random) -> Any:
    return x.as_strided_(*geometry(rng))


def as_strided_copied(x: Any, y: Any, rng: random.Random) -> Any:
    size, stride, offset = geometry(rng)
    return torch.as_strided_copy(x, size, stride, offset) if small(size, (), 0) else x


def resized(x: Any, y: Any, rng: random.Random) -> Any:
    size = geometry(rng)[0]
    return x.resize_(size) if small(size, (), 0) else x


def resized_as(x: Any, y: Any, rng: random.Random) -> Any:
    return x.resize_as_(y) if y.numel() < 1000 else x


def storage_resized(x: Any, y: Any, rng: random.Random) -> Any:
    storage = y.untyped_storage() if rng.random() < 0.5 else y.storage()
    length = number(rng, [0, 1, 7, 24, 96, 100])
    if isinstance(length, int) and 1000 < length < 2**61:
        return x
    storage.resize_(length)
    return y


def empty_strided(x: Any, y: Any, rng: random.Random) -> Any:
    size, stride, _ = geometry(rng)
    return torch.empty_strided(size, stride, dtype=x.dtype) if small(size, stride, 0) else x


def rebuilt(x: Any, y: Any, rng: random.Random) -> Any:
    size, stride, offset = geometry(rng)
    if rng.random() < 0.5:
        return rebuilding.rebuild_tensor(y.storage(), offset, size, stride)
    return rebuilding.rebuild_tensor_v3(y.untyped_storage(), offset, size, stride, False, None, rng.choice(DTYPES))


def constructed(x: Any, y: Any, rng: random.Random) -> Any:
    return x.new(rng.choice([y.storage(), y.untyped_storage()]))


def other_dtype(x: Any, y: Any, rng: random.Random) -> Any:
    return x.view(rng.choice(DTYPES))


def part(x: Any, y: Any, rng: random.Random) -> Any:
    way = rng.randrange(6)
    if way == 0:
        return x.unfold(number(rng, [0, -1]), number(rng, SIZES), number(rng, STEPS))
    if way == 1:
        return x.expand(*geometry(rng)[0])
    if way == 2:
        return x[number(rng, [0, 1, 2]) :]
    if way == 3:
        return x.narrow(0, number(rng, SIZES), number(rng, SIZES))
    if way == 4:
        return x.diagonal(number(rng, [0, 1, 2, 5]))
    return x.view(*geometry(rng)[0])


def data_set(x: Any, y: Any, rng: random.Random) -> Any:
    x.data = y
    return x


def copied(x: Any, y: Any, rng: random.Random) -> Any:
    file = io.BytesIO()
    torch.save([x, y], file)
    file.seek(0)
    return torch.load(file)[0]


def unpickled(x: Any, y: Any, rng: random.Random) -> Any:
    size, stride, offset = geometry(rng)
    pickled = tensor_pickle(count=number(rng, [0, 1, 4, 4, 4, 5]), size=size, stride=stride, offset=offset)
    return torch.load(io.BytesIO(archive(pickled)))


def from_buffer(x: Any, y: Any, rng: random.Random) -> Any:
    buffer, dtype = bytearray(rng.choice([0, 7, 24, 96])), rng.choice(DTYPES)
    return torch.frombuffer(
        buffer, dtype=dtype, count=number(rng, [-1, 0, 1, 3, 24]), offset=number(rng, [0, 0, 1, 4, 8])
    )


def through_dlpack(x: Any, y: Any, rng: random.Random) -> Any:
    return torch.from_dlpack(x)


def through_numpy(x: Any, y: Any, rng: random.Random) -> Any:
    array = x.numpy()
    if array.ndim and rng.random() < 0.5:
        array = array[:: rng.choice([1, 2, 3, -1])]
    return torch.from_numpy(array)


WAYS = [
    *[set_from_tensor, set_from_storage, as_strided, as_strided_in_place, resized, rebuilt, part] * 3,
    *[set_whole, as_strided_from_here, as_strided_copied, resized_as, storage_resized, empty_strided, constructed],
    *[other_dtype, data_set, copied, unpickled, from_buffer, through_dlpack, through_numpy],
]


def look(tensor: Any) -> tuple[Any, ...]:
    return (
        tensor._array.__array_interface__["data"][0],
        tensor.shape,
        tensor._array.strides,
        tensor.dtype,
        tensor._version,
    )


@experiment("strides", tries=100_000, short=3_000)
def strides(count: int) -> Outcome:
    """Random sizes, strides and offsets for every function that accepts them: only the tensor's own memory may change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _calls(count, random.Random(count))


def _calls(count: int, rng: random.Random) -> Outcome:
    outcome = Outcome()
    memory, pool = Memory(rng), []
    for turn in range(count):
        if turn % 12 == 0:
            memory = Memory(rng)
            pool = [memory.tensor(rng) for _ in range(3)]
        x, y = rng.choice(pool), rng.choice(pool)
        way = rng.choice(WAYS)
        before, result = (look(x), look(y)), None
        try:
            result = way(x, y, rng)
        except REFUSALS:
            outcome.note(None if (look(x), look(y)) == before else f"{way.__name__} failed and has changed something")
            continue
        except Exception as error:
            outcome.note(f"{way.__name__} raised {type(error).__name__}: {str(error)[:100]}")
            continue
        try:
            for tensor in {id(tensor): tensor for tensor in (result, x, y)}.values():
                if not isinstance(tensor._array, Released):
                    memory.check(tensor)
            outcome.note(None)
        except AssertionError as error:
            outcome.note(f"{way.__name__}: {error}")
        pool[rng.randrange(3)] = result
    return outcome
