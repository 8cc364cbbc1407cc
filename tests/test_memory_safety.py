"""No tensor reads or writes outside its memory, whatever size, strides and offset it is given.

Random calls of every function that sets sizes on a storage run on memory with canaries before and after it. A refused
call changes nothing. All elements of a created tensor are within its storage, and writing to all of them leaves the
canaries unchanged.
"""

import ast
import io
import random
from pathlib import Path

import numpy
import pytest

import adjoint as torch
from adjoint.kernels.runtime.meta_array import Released
from adjoint.serialization import tensors as rebuilding

MARGIN = 64
CANARY = b"\xa5" * MARGIN
REFUSALS = (RuntimeError, TypeError, ValueError, MemoryError, IndexError)
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
    """A stretch of bytes between canaries, and tensors that lie in it in various ways."""

    def __init__(self, rng):
        self.length = rng.choice([0, 7, 24, 96, 96, 200])
        self.bytes = numpy.frombuffer(bytearray(CANARY + bytes(self.length) + CANARY), numpy.uint8)
        self.kind = rng.choice(DTYPES)
        count = self.length // self.kind.itemsize
        self.inner = self.bytes[MARGIN : MARGIN + count * self.kind.itemsize].view(self.kind.numpy)
        self.first = self.bytes.ctypes.data + MARGIN
        self.last = self.first + self.length

    def tensor(self, rng):
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
        elif how == 6:  # memory of our own
            return torch.zeros(array.size, dtype=self.kind)[rng.randrange(3) :]
        return torch.from_numpy(array)

    def check(self, tensor):
        """Fail unless all elements lie in the storage, that in memory between canaries or of our own, and the canaries live."""
        array = tensor._array
        storage = tensor.untyped_storage()
        first = storage.data_ptr()
        last = first + storage.nbytes()
        if self.first - MARGIN <= first <= self.last + MARGIN and storage.nbytes():
            assert self.first <= first and last <= self.last
        if array.size:
            low, high = numpy.lib.array_utils.byte_bounds(array)
            assert first <= low and high <= last
            if array.size <= 1000 and array.flags.writeable:
                tensor.fill_(1)
                assert bool((tensor == 1).all())
        assert self.bytes[:MARGIN].tobytes() == CANARY and self.bytes[-MARGIN:].tobytes() == CANARY


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


def number(rng, usual):
    return rng.choice(ODD) if rng.random() < 0.08 else rng.choice(usual)


def geometry(rng):
    dims = rng.choice([0, 1, 1, 1, 2, 2, 3])
    others = dims if rng.random() < 0.95 else rng.randrange(4)
    size = tuple(number(rng, SIZES) for _ in range(dims))
    return size, tuple(number(rng, STEPS) for _ in range(others)), number(rng, [0, 0, 1, 2, 3, 5, 23, 24, 25])


def small(size, stride, offset):
    """Whether a storage that is made to hold this is no larger than a test should make."""
    numbers = [value for value in (*size, *stride, offset) if isinstance(value, (int, float))]
    return max(map(abs, numbers), default=0) < 1000 or max(map(abs, numbers)) >= 2**61


def set_from_tensor(x, y, rng):
    size, stride, offset = geometry(rng)
    return x.set_(y, offset, size, stride) if small(size, stride, offset) else x


def set_from_storage(x, y, rng):
    size, stride, offset = geometry(rng)
    source = y.untyped_storage() if rng.random() < 0.5 else y.storage()
    return x.set_(source, offset, size, stride) if small(size, stride, offset) else x


def set_whole(x, y, rng):
    return x.set_(rng.choice([y, y.storage(), y.untyped_storage()]))


def as_strided(x, y, rng):
    return x.as_strided(*geometry(rng))


def as_strided_from_here(x, y, rng):
    return x.as_strided(*geometry(rng)[:2])


def as_strided_in_place(x, y, rng):
    return x.as_strided_(*geometry(rng))


def as_strided_copied(x, y, rng):
    size, stride, offset = geometry(rng)
    return torch.as_strided_copy(x, size, stride, offset) if small(size, (), 0) else x


def resized(x, y, rng):
    size = geometry(rng)[0]
    return x.resize_(size) if small(size, (), 0) else x


def resized_as(x, y, rng):
    return x.resize_as_(y) if y.numel() < 1000 else x


def storage_resized(x, y, rng):
    storage = y.untyped_storage() if rng.random() < 0.5 else y.storage()
    length = number(rng, [0, 1, 7, 24, 96, 100])
    if isinstance(length, int) and 1000 < length < 2**61:
        return x
    storage.resize_(length)
    return y


def empty_strided(x, y, rng):
    size, stride, _ = geometry(rng)
    return torch.empty_strided(size, stride, dtype=x.dtype) if small(size, stride, 0) else x


def rebuilt(x, y, rng):
    size, stride, offset = geometry(rng)
    if rng.random() < 0.5:
        return rebuilding.rebuild_tensor(y.storage(), offset, size, stride)
    return rebuilding.rebuild_tensor_v3(y.untyped_storage(), offset, size, stride, False, None, rng.choice(DTYPES))


def constructed(x, y, rng):
    return x.new(rng.choice([y.storage(), y.untyped_storage()]))


def other_dtype(x, y, rng):
    return x.view(rng.choice(DTYPES))


def part(x, y, rng):
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


def data_set(x, y, rng):
    x.data = y
    return x


def copied(x, y, rng):
    file = io.BytesIO()
    torch.save([x, y], file)
    file.seek(0)
    return torch.load(file)[0]


WAYS = [
    *[set_from_tensor, set_from_storage, as_strided, as_strided_in_place, resized, rebuilt, part] * 3,
    *[set_whole, as_strided_from_here, as_strided_copied, resized_as, storage_resized, empty_strided, constructed],
    *[other_dtype, data_set],
]


def look(tensor):
    return (
        tensor._array.__array_interface__["data"][0],
        tensor.shape,
        tensor._array.strides,
        tensor.dtype,
        tensor._version,
    )


def run(seed, calls):
    """Make random calls; the number of those that were accepted."""
    rng = random.Random(seed)
    accepted = 0
    for turn in range(calls):
        if turn % 12 == 0:
            memory = Memory(rng)
            pool = [memory.tensor(rng) for _ in range(3)]
        x, y = rng.choice(pool), rng.choice(pool)
        before = look(x), look(y)
        way = rng.choice(WAYS)
        try:
            result = way(x, y, rng)
        except REFUSALS:
            assert (look(x), look(y)) == before, way
            continue
        accepted += 1
        for tensor in {id(tensor): tensor for tensor in (result, x, y)}.values():
            if not isinstance(tensor._array, Released):
                memory.check(tensor)
        pool[rng.randrange(3)] = result
    return accepted


def test_only_the_storage_looks_where_numpy_does_not_check():
    """`numpy.lib.stride_tricks.as_strided` makes arrays that reach anywhere, `numpy.ndarray` only within a buffer."""
    package = Path(
        torch.__file__
    ).parent  # in `codegen` it repeats operands of an operator, which sizes of users' do not reach
    unchecked = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if "stride_tricks" in (getattr(node, "attr", ""), *str(getattr(node, "module", "")).split("."))
    }
    assert unchecked == {"codegen/numpy_tiles.py", "kernels/memory/storage.py"}


def numbers():
    return numpy.arange(24, dtype=numpy.float32)


@pytest.mark.parametrize("source", [lambda x: x, lambda x: x.storage(), lambda x: x.untyped_storage()])
@pytest.mark.parametrize("place", [(0, (3,), (-1,)), (-1, (3,), (1,)), (0, (25,), (1,)), (2**62, (2,), (1,))])
@pytest.mark.parametrize("array", [numbers(), numbers().reshape(4, 6).T, numbers()[::-1].copy()[::2]])
def test_set_stays_within_arrays(array, source, place):
    x = torch.empty(0)
    with pytest.raises(RuntimeError):
        x.set_(source(torch.from_numpy(array)), *place)
    assert x.shape == (0,) and x._version == 0
    assert x.resize_as_(torch.ones(2, 2)).shape == (2, 2)


def test_a_storage_of_an_array_is_what_lies_between_its_first_and_last_element():
    assert torch.from_numpy(numbers()[::2]).untyped_storage().nbytes() == 23 * 4
    assert torch.from_numpy(numpy.lib.stride_tricks.as_strided(numbers(), (100,), (0,))).untyped_storage().nbytes() == 4
    transposed = torch.from_numpy(numbers().reshape(4, 6).T)
    assert transposed.as_strided((24,), (1,)).tolist() == list(range(24))
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 96"):
        transposed.as_strided((25,), (1,))


def test_memory_from_outside_is_not_resized():
    x = torch.from_numpy(numbers())
    for grow in (lambda: x.resize_(25), lambda: torch.empty(0).set_(x, 0, (25,)), lambda: x.storage().resize_(2)):
        with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
            grow()
    assert x.shape == (24,) and x.resize_(4, 5).shape == (4, 5)


def test_a_tensor_is_set_to_what_its_source_grows_to():
    x = torch.arange(4.0)
    y = torch.empty(0).set_(x, 1, (2, 3))
    y.fill_(7)
    assert x.tolist() == [0, 7, 7, 7] and x.untyped_storage().nbytes() == 28
    z = torch.empty(0).set_(x[2:], 1, (1,))
    assert z.storage_offset() == 3


def test_arrays_that_step_by_parts_of_elements_are_refused():
    array = numpy.zeros(4, dtype=[("a", "f4"), ("b", "i1")])["a"]
    with pytest.raises(ValueError, match="given numpy array strides not a multiple of the element byte size"):
        torch.from_numpy(array)


@pytest.mark.filterwarnings("ignore")
def test_no_tensor_reaches_outside_its_memory():
    assert run(seed=0, calls=30_000) > 12_000
