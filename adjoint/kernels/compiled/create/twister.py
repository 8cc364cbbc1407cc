"""The Mersenne Twister, and permutations and integers, from 624 words of state and a position in NumPy's generator.

Matsumoto and Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed uniform pseudorandom number generator", 1998.
"""

from __future__ import annotations

from functools import cache

from ....codegen.llvm.element_types import PointerType
from ....codegen.llvm.external import apart, external
from ....codegen.llvm.kernels import *
from ...create.mt19937 import Stream

WORDS = 624
PERIOD = 397
WIDTH = 16
"""The number of words that are computed together, less than the distance to their inputs in the state."""


@loops
def mixed(word: S, following: S, far: S) -> S:
    """Return a new word of the state from three old words, or a vector of them."""
    joined = (word & 0x80000000) | (following & 0x7FFFFFFF)
    return far ^ (joined >> 1) ^ ((0 - (following & 1)) & 0x9908B0DF)


@loops
def mixed_in(state: Pointer[u32], start: Int, stop: Int, distance: Int) -> None:
    """Replace the words of a range with new words, which are computed from words `distance` away."""
    whole = stop - (stop - start) % WIDTH
    for i in range(start, whole, WIDTH):
        following, far = load(state + (i + 1), WIDTH), load(state + (i + distance), WIDTH)
        store(state + i, mixed(load(state + i, WIDTH), following, far))
    for i in range(whole, stop):
        state[i] = mixed(state[i], state[i + 1], state[i + distance])


@loops(explicit=True, plain=True)
def twist(state: Pointer[u32]) -> None:
    """Replace all words of the state with new words. The next word is then the first word."""
    mixed_in(state, 0, WORDS - PERIOD, PERIOD)
    mixed_in(state, WORDS - PERIOD, WORDS - 1, PERIOD - WORDS)
    state[WORDS - 1] = mixed(state[WORDS - 1], state[0], state[PERIOD - 1])
    state[WORDS] = 0


_twist_apart = apart(twist)


@loops
def tempered(word: S) -> S:
    """Return the random number that corresponds to a word of the state."""
    word = word ^ (word >> 11)
    word = word ^ ((word << 7) & 0x9D2C5680)
    word = word ^ ((word << 15) & 0xEFC60000)
    return word ^ (word >> 18)


@loops(explicit=True, plain=True)
def next_word(state: Pointer[u32]) -> u32:
    """Return the next word of the stream."""
    if state[WORDS] == WORDS:
        _twist_apart(state)
    word = state[i64(state[WORDS])]
    state[WORDS] += 1
    return tempered(word)


@loops
def exchanged(pair: S) -> S:
    """Return 64-bit words with exchanged halves."""
    return (pair << 32) | (pair >> 32)


@loops(explicit=True, plain=True)
def next_words(out: Pointer[u32], state: Pointer[u32], n: Int, WIDE: Static) -> None:
    """Return the next `n` words of the stream. If `WIDE`, the words have 64 bits, with the high half first."""
    left = n * 2 if WIDE else n
    to = out
    while left > 0:
        if state[WORDS] == WORDS:
            _twist_apart(state)
        place = i64(state[WORDS])
        count = minimum(WORDS - place, left)
        whole = count - count % WIDTH
        for i in range(0, whole, WIDTH):
            store(to + i, tempered(load(state + (place + i), WIDTH)))
        for i in range(whole, count):
            to[i] = tempered(state[place + i])
        state[WORDS] += u32(count)
        to = to + count
        left -= count
    if WIDE:
        pairs = cast_pointer(out, u64)
        whole = n - n % WIDTH
        for i in range(0, whole, WIDTH):
            store(pairs + i, exchanged(load(pairs + i, WIDTH)))
        for i in range(whole, n):
            pairs[i] = exchanged(pairs[i])


@loops(explicit=True, plain=True)
def next_fractions(out: Pointer[T], state: Pointer[u32], start: Int, stop: Int) -> None:
    """Return the next numbers in [0, 1): 24 bits of a word or, in float64, the low 53 bits of two words."""
    n = stop - start
    next_words(cast_pointer(out, u32), state, n, T is f64)
    integers = cast_pointer(out, i64 if T is f64 else i32)
    MASK = 0x1FFFFFFFFFFFFF if T is f64 else 0xFFFFFF
    UNIT = 2.0**-53 if T is f64 else 2.0**-24
    whole = n - n % WIDTH
    for i in range(0, whole, WIDTH):
        store(out + i, vector(T, WIDTH)(load(integers + i, WIDTH) & MASK) * UNIT)
    for i in range(whole, n):
        out[i] = T(integers[i] & MASK) * UNIT


@loops(explicit=True, plain=True)
def next_between(out: Pointer[T], state: Pointer[u32], low: T, high: T, span: T, start: Int, stop: Int) -> None:
    """Return the next numbers in [low, high). A number that rounding would change to `high` becomes `low`."""
    next_fractions(out, state, start, stop)
    for i in vectorized(stop - start):
        found = fma(out[i], span, low)
        out[i] = where(found == high, low, found)


@loops(explicit=True, plain=True)
def next_fraction(state: Pointer[u32]) -> f64:
    """Return the next number in [0, 1) with 53 random bits, which are the low bits of two words, the high half first."""
    high = u64(next_word(state))
    low = u64(next_word(state))
    return f64(i64(((high << 32) | low) & 0x1FFFFFFFFFFFFF)) * 2.0**-53


fraction = external("adjoint_next_fraction", lambda: next_fraction.compiled().code.address, f64, PointerType(u32))
"""`next_fraction`, compiled separately because samplers call it in several places."""

word = external("adjoint_next_word", lambda: next_word.compiled().code.address, u32, PointerType(u32))
"""`next_word`, compiled separately."""


def words(stream: Stream, n: int, dtype: numpy.dtype[Any]) -> ndarray:
    """Return the next `n` words of the stream, with 32 or 64 bits according to `dtype`."""
    out = numpy.empty(n, dtype)
    next_words.compiled(WIDE=dtype.itemsize == 8)(address(out), stream.state_address, n)
    return out


between, fractions = next_between.of_dtype, next_fractions.of_dtype


@loops(explicit=True, plain=True)
def exchange(order: Pointer[i64], state: Pointer[u32], n: Int) -> None:
    """Exchange the content of each position, starting at the front, with the content of a random position at or after it."""
    for place in range(n):
        order[place] = place
    for place in range(n - 1):
        partner = place + i64(next_word(state) % u32(n - place))
        kept = order[place]
        order[place] = order[partner]
        order[partner] = kept


@loops(explicit=True, plain=True)
def draw(out: Pointer[T], state: Pointer[u32], first: Int, size: Int, start: Int, stop: Int) -> None:
    """Draw integers that start at `first` and have `size` possible values (fewer than 2**32)."""
    for i in range(start, stop):
        out[i] = T(first + i64(next_word(state) % u32(size)))


_exchange = cache(exchange.compiled)


def permutation(out: ndarray, stream: Stream) -> Any:
    """Fill an int64 array with the numbers of its positions in random order."""
    _exchange().call(address(out), stream.state_address, out.size)
    return out


integers = draw.of_dtype
