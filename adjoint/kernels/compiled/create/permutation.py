"""Random integers, permutations and choices in compiled code."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy
from numpy import ndarray

from ....codegen.llvm.language import Int, Pointer, T, address, i64, loops, u32, u64
from ...create.mt19937 import Stream
from .twister import by_dtype, next_word


@loops(explicit=True, plain=True)
def exchange(order: Pointer[i64], partners: Pointer[i64], n: Int) -> None:
    """Let each place in turn, from the front, exchange contents with its partner."""
    for place in range(n):
        order[place] = place
    for place in range(n):
        partner = partners[place]
        kept = order[place]
        order[place] = order[partner]
        order[partner] = kept


def shuffled(partners: ndarray) -> Any:
    """The integers below n after all exchanges."""
    order = numpy.empty_like(partners)
    exchange.compiled()(address(order), address(partners), partners.size)
    return order


@loops(explicit=True, plain=True)
def draw_permutation(order: Pointer[i64], state: Pointer[u32], n: Int) -> None:
    """The integers below n after each place in turn has exchanged contents with a random one, itself or behind it."""
    for place in range(n):
        order[place] = place
    for place in range(n - 1):
        partner = place + i64(next_word(state) % u32(n - place))
        kept = order[place]
        order[place] = order[partner]
        order[partner] = kept


@loops(explicit=True, plain=True)
def draw_integers(out: Pointer[i64], state: Pointer[u32], first: Int, size: Int, n: Int) -> None:
    """`n` integers of `size` possible ones from `first` on."""
    for i in range(n):
        out[i] = first + i64(next_word(state) % u32(size))


@loops(explicit=True, plain=True)
def draw_choices(out: Pointer[T], state: Pointer[u32], threshold: Int, success: T, n: Int) -> None:
    """`success` where 53 random bits are below `threshold`, otherwise 0."""
    for i in range(n):
        high = u64(next_word(state))
        out[i] = success if i64(((high << 32) | u64(next_word(state))) & 0x1FFFFFFFFFFFFF) < threshold else T(0)


_permutation, _integers = cache(draw_permutation.compiled), cache(draw_integers.compiled)
_CHOICES = by_dtype(draw_choices)


def permutation(out: ndarray, stream: Stream) -> Any:
    """Fill an array of int64 with a random permutation of its places."""
    _permutation().call(address(out), stream.state_address, out.size)
    return out


def integers(out: ndarray, stream: Stream, first: int, size: int) -> Any:
    """Fill a contiguous array of int64 with integers of `size` (less than 2**32) possible ones from `first` on."""
    _integers().call(address(out), stream.state_address, first, size, out.size)
    return out


def choices(out: ndarray, stream: Stream, threshold: int, success: float) -> Any:
    """Fill a contiguous array of float32 or float64 with `success` where 53 random bits are below `threshold`, and 0."""
    _CHOICES[out.dtype].call(address(out), stream.state_address, threshold, success, out.size)
    return out
