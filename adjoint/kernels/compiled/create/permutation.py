"""Random permutations in compiled code."""

from __future__ import annotations

from typing import Any

import numpy
from numpy import ndarray

from ....codegen.llvm.language import Int, Pointer, address, i64, loops


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
