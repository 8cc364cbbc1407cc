"""Sizes, strides and offsets on a storage: the elements of the tensors, and the messages for refused arguments."""

import math
import random

import numpy
import pytest

torch = pytest.importorskip("torch")

from tests.parity.candidate import candidate

SIZES = [0, 1, 1, 2, 2, 3, 4, 6]
STEPS = [0, 1, 1, 2, 3, 4, 6]
ODD = [-1, -2, 2**40, 2**61, 2**62, 2**63 - 2]


def geometry(rng):
    """Draw a size, strides and an offset. Some draws fit no storage."""
    odd = 0.15 if rng.random() < 0.5 else 0.0
    pick = lambda usual: rng.choice(ODD) if rng.random() < odd else rng.choice(usual)
    dims = rng.randrange(4)
    size, stride = (tuple(pick(usual) for _ in range(dims)) for usual in (SIZES, STEPS))
    if rng.random() < 0.05:
        stride = stride[:-1] if stride else (1,)
    return size, stride, pick([0, 0, 1, 2, 5])


def beyond_numpy(size, stride):
    """Return whether only PyTorch permits such tensors: sizes are negative, or strides and counts have more than 64 bits."""
    huge = [length for length in size if length]
    odd_size = min(size, default=0) < 0 or math.prod(map(abs, huge)) * 16 >= 2**63
    return (odd_size and 0 in size) or any(step * 16 >= 2**63 for step in stride) or math.prod(huge) * 16 >= 2**63


def too_large(size, stride, offset):
    """Return whether a storage for these elements, or a copy, might be too large for a test."""
    if 0 in size or len(size) != len(stride) or 10**5 < math.prod(size) < 2**58:
        return math.prod(size) > 10**5
    return 10**5 < offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True)) < 2**58


WAYS = {
    "as_strided": lambda library, x, size, stride, offset: x.as_strided(size, stride, offset),
    "as_strided_copy": lambda library, x, size, stride, offset: library.as_strided_copy(x, size, stride, offset),
    "set_ tensor": lambda library, x, size, stride, offset: x[:0].set_(x, offset, size, stride),
    "set_ part": lambda library, x, size, stride, offset: x[:0].set_(x[1:], offset, size, stride),
    "set_ storage": lambda library, x, size, stride, offset: x[:0].set_(x.untyped_storage(), offset, size, stride),
    "resize_": lambda library, x, size, stride, offset: x.resize_(size),
    "resize_ part": lambda library, x, size, stride, offset: x[1:].resize_(size),
    "empty_strided": lambda library, x, size, stride, offset: library.empty_strided(size, stride).fill_(1),
}

SOURCES = {
    "own memory": lambda library, count: library.arange(float(count)),
    "memory of an array": lambda library, count: library.from_numpy(numpy.arange(float(count))),
    "a transposed array": lambda library, count: library.from_numpy(numpy.arange(float(count)).reshape(2, -1).T),
    "every other element": lambda library, count: library.from_numpy(numpy.arange(2.0 * count)[::2]),
    "an expanded array": lambda library, count: library.from_numpy(numpy.broadcast_to(numpy.ones(1), (count,))),
    "complex numbers": lambda library, count: library.arange(float(count)).to(library.complex64),
    "bytes": lambda library, count: library.arange(count).to(library.int8),
}

CROOKED = ("a transposed array", "every other element", "an expanded array")
"""Those that are not contiguous, which `set_` takes no parts of."""


def outcome(library, way, source, arguments):
    """Return the outcome of a call: the elements of the tensor and the size of the storage, or the error."""
    x = SOURCES[source](library, 6)
    try:
        result = WAYS[way](library, x, *arguments)
    except (RuntimeError, TypeError, ValueError, MemoryError) as error:
        message = str(error).split("\n")[0]
        no_memory = isinstance(error, MemoryError) or "can't allocate memory" in message
        return "no memory" if no_memory else (type(error).__name__, message)
    seen = tuple(result.shape), result.untyped_storage().nbytes()
    if not result.numel():
        return seen
    known = way.startswith(("as_", "empty")) or result.storage_offset() < 6  # new bytes of a storage are undefined
    return (
        *seen,
        result.stride(),
        result.storage_offset(),
        complex(result[(0,) * result.ndim].item()) if known else None,
    )


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.filterwarnings("ignore")
def test_the_same_windows_are_allowed(way, source):
    rng = random.Random(f"{way} {source}")
    accepted = 0
    for _ in range(200):
        size, stride, offset = geometry(rng)
        if beyond_numpy(size, stride) or (way != "as_strided" and too_large(size, stride, offset)):
            continue
        expected = outcome(torch, way, source, (size, stride, offset))
        if "Stride calculation" in str(expected):  # the message is about strides that no argument contains
            continue
        actual = outcome(candidate, way, source, (size, stride, offset))
        assert actual == expected, (size, stride, offset)
        accepted += type(expected[0]) is tuple
    assert accepted > 20 or ("set_" in way and source in CROOKED)
