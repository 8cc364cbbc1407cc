"""Random permutations and integers in compiled code."""

from __future__ import annotations

from functools import cache
from typing import Any

from numpy import ndarray

from ....codegen.llvm.language import Int, Pointer, address, i64, loops, u32
from ...create.mt19937 import Stream
from .twister import next_word


@loops(explicit=True, plain=True)
def exchange(order: Pointer[i64], state: Pointer[u32], n: Int) -> None:
    """Let each place in turn, from the front, exchange contents with a random one, itself or behind it."""
    for place in range(n):
        order[place] = place
    for place in range(n - 1):
        partner = place + i64(next_word(state) % u32(n - place))
        kept = order[place]
        order[place] = order[partner]
        order[partner] = kept


@loops(explicit=True, plain=True)
def draw(out: Pointer[i64], state: Pointer[u32], n: Int, first: Int, size: Int) -> None:
    """Integers of `size` possible ones from `first` on."""
    for i in range(n):
        out[i] = first + i64(next_word(state) % u32(size))


_exchange, _draw = cache(exchange.compiled), cache(draw.compiled)


def permutation(out: ndarray, stream: Stream) -> Any:
    """Fill an array of int64 with the numbers of its places in random order."""
    _exchange().call(address(out), stream.state_address, out.size)
    return out


def integers(out: ndarray, stream: Stream, first: int, size: int) -> Any:
    """Fill a contiguous array of int64 with integers of `size`, less than 2**32, possible ones from `first` on."""
    _draw().call(address(out), stream.state_address, out.size, first, size)
    return out
