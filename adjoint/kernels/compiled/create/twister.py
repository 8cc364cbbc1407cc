"""The Mersenne Twister in compiled code, on the memory of NumPy's generator: 624 words of state, and the place of the next.

Matsumoto and Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed uniform pseudorandom number generator", 1998.
"""

from __future__ import annotations

from ....codegen.llvm.element_types import PointerType
from ....codegen.llvm.external import apart, external
from ....codegen.llvm.language import Int, Pointer, f64, i64, load, loops, store, u32, u64

WORDS = 624
PERIOD = 397
WIDTH = 8
"""How many words are made at a time; fewer than the state's shortest distance between a word and one that it is made of."""


@loops
def mixed(word: u32, following: u32, far: u32) -> u32:
    """A new word of the state, of three old ones."""
    joined = (word & 0x80000000) | (following & 0x7FFFFFFF)
    return far ^ (joined >> 1) ^ ((u32(0) - (following & 1)) & 0x9908B0DF)


@loops
def mixed_in(state: Pointer[u32], start: Int, stop: Int, distance: Int) -> None:
    """Replace the words of a range by new ones, made of those `distance` away."""
    whole = stop - (stop - start) % WIDTH
    for i in range(start, whole, WIDTH):
        words, following, far = (
            load(state + i, WIDTH),
            load(state + (i + 1), WIDTH),
            load(state + (i + distance), WIDTH),
        )
        joined = (words & 0x80000000) | (following & 0x7FFFFFFF)
        store(state + i, far ^ (joined >> 1) ^ ((0 - (following & 1)) & 0x9908B0DF))
    for i in range(whole, stop):
        state[i] = mixed(state[i], state[i + 1], state[i + distance])


@loops(explicit=True, plain=True)
def twist(state: Pointer[u32]) -> None:
    """All words of the state anew; the next one is the first."""
    mixed_in(state, 0, WORDS - PERIOD, PERIOD)
    mixed_in(state, WORDS - PERIOD, WORDS - 1, PERIOD - WORDS)
    state[WORDS - 1] = mixed(state[WORDS - 1], state[0], state[PERIOD - 1])
    state[WORDS] = 0


_twist_apart = apart(twist)


@loops(explicit=True, plain=True)
def next_word(state: Pointer[u32]) -> u32:
    """The next word of the stream."""
    if state[WORDS] == WORDS:
        _twist_apart(state)
    word = state[i64(state[WORDS])]
    state[WORDS] += 1
    word ^= word >> 11
    word ^= (word << 7) & 0x9D2C5680
    word ^= (word << 15) & 0xEFC60000
    return word ^ (word >> 18)


@loops(explicit=True, plain=True)
def next_fraction(state: Pointer[u32]) -> f64:
    """The next number in [0, 1) of 53 random bits, the low bits of two words of which the first is the high half."""
    high = u64(next_word(state))
    low = u64(next_word(state))
    return f64(i64(((high << 32) | low) & 0x1FFFFFFFFFFFFF)) * 2.0**-53


fraction = external("adjoint_next_fraction", lambda: next_fraction.compiled().code.address, f64, PointerType(u32))
"""`next_fraction`, compiled apart: samplers call it in several places."""

word = external("adjoint_next_word", lambda: next_word.compiled().code.address, u32, PointerType(u32))
"""`next_word`, compiled apart."""
