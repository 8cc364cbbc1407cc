"""Indices out of bounds, for every function that accepts indices.

The function raises an error before it writes elements. The target of a write lies between canaries. Half of the tries
use the compiled loops for arrays of any size. Some tries change saved indices through `numpy()`, which does not
increment the version.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS

from . import Outcome, experiment
from ._children import in_child

F: Any = torch.nn.functional

MARGIN = 256
CANARY = 0xA5
DTYPES = [
    torch.float32,
    torch.float32,
    torch.float64,
    torch.int64,
    torch.int8,
    torch.bfloat16,
    torch.bool,
    torch.complex64,
]
FAR = [2**31, 2**32, 2**32 + 1, 2**40, 2**62, 2**63 - 1, -(2**31), -(2**40), -(2**63)]


class Target:
    """A tensor between canaries."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, rng: random.Random) -> None:
        count = int(numpy.prod(shape))
        size = count * dtype.itemsize
        self.bytes = numpy.full(size + 2 * MARGIN, CANARY, numpy.uint8)
        self.bytes[MARGIN : MARGIN + size] = numpy.arange(size) % 2
        array = self.bytes[MARGIN : MARGIN + size].view(dtype.numpy).reshape(shape)
        if len(shape) == 2 and rng.random() < 0.3:  # columns that are contiguous in memory
            array = array.reshape(shape[::-1]).T
        self.tensor = torch.from_numpy(array)

    def look(self) -> tuple[Any, ...]:
        return self.bytes.tobytes(), self.tensor._version, tuple(self.tensor.shape)

    def canaries(self) -> bool:
        return bool((self.bytes[:MARGIN] == CANARY).all() and (self.bytes[-MARGIN:] == CANARY).all())


class Way(NamedTuple):
    """One case.

    `run(x, index, other)` calls the function. `negative`: whether -1 is the last element. `along`: whether indices
    count along dimension 0 of `x`, not through all elements. `dtypes`: the dtypes of indices. `floating`: whether `x`
    must have a floating dtype.
    """

    run: Callable[[Any, Any, Any], Any]
    negative: bool = False
    along: bool = True
    shape: str = "whole"  # the shape of the index: the shape of `x`, or one dimension ("row")
    floating: bool = False


def _set_item(x: Any, index: Any, other: Any) -> None:
    x[index] = other[0]


def _set_item_of_two(x: Any, index: Any, other: Any) -> None:
    x[index, index * 0] = 1


WAYS: dict[str, Way] = {
    "gather": Way(lambda x, i, o: x.gather(0, i)),
    "gather out": Way(lambda x, i, o: torch.gather(o, 0, i, out=x)),
    "take_along_dim": Way(lambda x, i, o: x.take_along_dim(i, 0), negative=True),
    "scatter_": Way(lambda x, i, o: x.scatter_(0, i, o)),
    "scatter": Way(lambda x, i, o: x.scatter(0, i, o)),
    "scatter_ of a number": Way(lambda x, i, o: x.scatter_(0, i, 1)),
    "scatter_ add": Way(lambda x, i, o: x.scatter_(0, i, o, reduce="add")),
    "scatter_ multiply": Way(lambda x, i, o: x.scatter_(0, i, o, reduce="multiply"), floating=True),
    "scatter_add_": Way(lambda x, i, o: x.scatter_add_(0, i, o)),
    "scatter_add": Way(lambda x, i, o: x.scatter_add(0, i, o)),
    **{
        f"scatter_reduce_ {name}": Way(
            lambda x, i, o, name=name: x.scatter_reduce_(0, i, o, name, include_self=bool(i.numel() % 2)), floating=True
        )
        for name in ("sum", "prod", "mean", "amax", "amin")
    },
    **{
        f"index_reduce_ {name}": Way(
            lambda x, i, o, name=name: x.index_reduce_(0, i, _rows(o, i), name), shape="row", floating=True
        )
        for name in ("prod", "mean", "amax", "amin")
    },
    "index_select": Way(lambda x, i, o: x.index_select(0, i), shape="row"),
    "index_select out": Way(lambda x, i, o: torch.index_select(o, 0, i, out=x), shape="row"),
    "index_add_": Way(lambda x, i, o: x.index_add_(0, i, _rows(o, i)), shape="row"),
    "index_add": Way(lambda x, i, o: x.index_add(0, i, _rows(o, i)), shape="row"),
    "index_copy_": Way(lambda x, i, o: x.index_copy_(0, i, _rows(o, i)), shape="row"),
    "index_fill_": Way(lambda x, i, o: x.index_fill_(0, i, 1), shape="row", negative=True),
    "index": Way(lambda x, i, o: x[i], shape="row", negative=True),
    "index of the last": Way(lambda x, i, o: x.mT[..., i], shape="row", negative=True),
    "index of two": Way(lambda x, i, o: x[i, i * 0], shape="row", negative=True),
    "index_put_": Way(lambda x, i, o: x.index_put_((i,), _rows(o, i)), shape="row", negative=True),
    "index_put_ accumulate": Way(
        lambda x, i, o: x.index_put_((i,), _rows(o, i), accumulate=True), shape="row", negative=True
    ),
    "index_put_ of two": Way(
        lambda x, i, o: x.index_put_((i, i * 0), o[0, :1], accumulate=True), shape="row", negative=True
    ),
    "set item": Way(_set_item, shape="row", negative=True),
    "set item of two": Way(_set_item_of_two, shape="row", negative=True),
    "take": Way(lambda x, i, o: x.take(i), along=False, negative=True),
    "take out": Way(lambda x, i, o: torch.take(o, i, out=x), along=False, negative=True),
    "put_": Way(lambda x, i, o: x.put_(i, o), along=False, negative=True),
    "put_ accumulate": Way(lambda x, i, o: x.put_(i, o, accumulate=True), along=False, negative=True),
    "embedding": Way(lambda x, i, o: F.embedding(i, x), floating=True),
    "embedding of at most a norm": Way(lambda x, i, o: F.embedding(i, x, max_norm=0.5), floating=True),
    "embedding_bag": Way(lambda x, i, o: F.embedding_bag(i, x, mode="sum"), floating=True),
    "embedding_bag mean": Way(lambda x, i, o: F.embedding_bag(i, x), floating=True),
    "embedding_bag max": Way(lambda x, i, o: F.embedding_bag(i, x, mode="max"), floating=True),
    "nll_loss": Way(lambda x, i, o: F.nll_loss(_columns(x, i), i, ignore_index=-999), shape="row", floating=True),
    "cross_entropy": Way(
        lambda x, i, o: F.cross_entropy(_columns(x, i), i, ignore_index=-999), shape="row", floating=True
    ),
    "multi_margin_loss": Way(lambda x, i, o: F.multi_margin_loss(_columns(x, i), i), shape="row", floating=True),
    "one_hot": Way(lambda x, i, o: F.one_hot(i, len(x)), shape="row"),
    "index_put": Way(lambda x, i, o: x.index_put((i,), o[:1]), shape="row", negative=True),
}
"""The functions by name. They change only `x`."""


def _rows(other: Any, index: Any) -> Any:
    return other[:1].expand(len(index), *other.shape[1:])


def _columns(x: Any, index: Any) -> Any:
    return x[:, :1].mT.expand(len(index), len(x)).contiguous()


def _selected(name: str, *arguments: Any) -> Callable[[Any], tuple[Any, Any]]:
    return lambda x: tuple(getattr(torch, name)(x, *arguments))


BACKWARDS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    **{name: _selected(name, 0) for name in ("max", "min", "sort", "median", "nanmedian", "mode", "cummax", "cummin")},
    "topk": _selected("topk", 2, 0),
    "kthvalue": _selected("kthvalue", 2, 0),
    **{
        f"max_pool{n}d": lambda x, n=n: getattr(F, f"max_pool{n}d")(
            x.reshape(1, 1, *(1,) * (n - 1), -1), (*(1,) * (n - 1), 2), return_indices=True
        )
        for n in (1, 2, 3)
    },
    "adaptive_max_pool1d": lambda x: F.adaptive_max_pool1d(x.reshape(1, 1, -1), 3, return_indices=True),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x[None, None], (3, 2), return_indices=True),
}
"""Functions that return values and their indices, which a backward uses."""


def _index(way: Way, x: Any, rng: random.Random) -> tuple[Any, bool]:
    """Return indices for `x`, and whether all indices are within bounds."""
    length = x.shape[0] if way.along else x.numel()
    count = rng.choice([1, 3, 8, x.shape[0]])
    shape = (count,) if way.shape == "row" else (min(count, x.shape[0]), *x.shape[1:])
    index = numpy.array([rng.randrange(length) for _ in range(int(numpy.prod(shape)))], numpy.int64)
    return torch.from_numpy(index.reshape(shape)), _spoil(index, length, way.negative, rng)


def _spoil(index: numpy.ndarray[Any, Any], length: int, negative: bool, rng: random.Random) -> bool:
    """In three of four cases, put some indices at or beyond the bounds. Return whether all indices are within bounds."""
    least = -length if negative else 0
    if rng.random() < 0.75:
        for _ in range(rng.choice([1, 1, 2, index.size])):
            place = rng.choice([0, -1, rng.randrange(index.size)])
            index[place] = rng.choice([length, length + 1, least - 1, least - 2, least, length - 1, *FAR])
    return bool((index >= least).all() and (index < length).all())


def _forward(rng: random.Random) -> tuple[str, str | None]:
    name, way = rng.choice(list(WAYS.items()))
    dtype = rng.choice(DTYPES[:3]) if way.floating else rng.choice(DTYPES)
    shape = rng.choice([(5, 3), (9, 1), (40, 17), (300, 20)])
    target = Target(shape, dtype, rng)
    index, within = _index(way, target.tensor, rng)
    other = (
        torch.ones(shape, dtype=dtype)[tuple(map(slice, index.shape))]
        if way.shape == "whole"
        else torch.ones(shape, dtype=dtype)
    )
    if name.endswith(" out"):
        other = torch.ones(shape, dtype=dtype)
        index = index if index.shape == shape else index.new_zeros(index.shape).copy_(index)
    before = target.look()
    try:
        way.run(target.tensor, index, other)
    except (IndexError, RuntimeError, ValueError) as error:
        if not target.canaries():
            return name, "memory outside has changed"
        if within and "resize" not in str(error):
            return name, f"refused: {str(error)[:150]}"
        return name, None if target.look() == before else "failed and has changed something"
    if not target.canaries():
        return name, "memory outside has changed"
    return name, None if within else "accepted indices out of bounds"


def _backward(rng: random.Random) -> tuple[str, str | None]:
    name, forward = rng.choice(list(BACKWARDS.items()))
    rows, columns = rng.choice([(5, 3), (40, 17), (300, 20)])
    x = torch.rand(rows, columns, dtype=rng.choice(DTYPES[:3]), requires_grad=True)
    values, indices = forward(x)
    length = x.numel() if "pool" in name else rows
    array = indices.numpy().reshape(-1)
    within = _spoil(array, length, False, rng)
    try:
        values.sum().backward()
    except (IndexError, RuntimeError, ValueError) as error:
        if x.grad is not None:
            return name, "failed and has given a gradient"
        return name, f"refused: {str(error)[:150]}" if within else None
    return name, None if within else "accepted indices out of bounds"


def _given(rng: random.Random) -> tuple[str, str | None]:
    """Return functions whose saved indices the experiment changes before backward."""
    name = rng.choice(["gather", "index_select", "index", "take", "embedding", "nll_loss", "index of two"])
    rows, columns = rng.choice([(5, 3), (40, 17), (300, 20)])
    x = torch.rand(rows, columns, dtype=rng.choice(DTYPES[:3]), requires_grad=True)
    way = WAYS[name]
    length = x.numel() if not way.along else rows
    array = numpy.zeros((rows, columns) if way.shape == "whole" else (rows,), numpy.int64)
    result = way.run(x, torch.from_numpy(array), None)
    within = _spoil(array.reshape(-1), length, way.negative, rng)
    try:
        result.sum().backward()
    except (IndexError, RuntimeError, ValueError) as error:
        return f"backward of {name}", f"refused: {str(error)[:150]}" if within else None
    return f"backward of {name}", None if within else "accepted indices out of bounds"


def _tries(count: int, start: int) -> Iterator[tuple[str, str | None]]:
    warnings.simplefilter("ignore")
    for number in range(start, count):
        rng = random.Random(number)
        LOOPS.every_size = rng.random() < 0.5
        yield rng.choice([_forward, _forward, _forward, _backward, _given])(rng)


@experiment("indices", tries=20_000, short=200)
def indices(count: int) -> Outcome:
    """Indices out of bounds, in NumPy's form and in compiled kernels: an error before any element is written."""
    outcome = Outcome()
    while outcome.tried < count:
        found, end = in_child(lambda: _tries(count, outcome.tried), patience=120)
        for name, failure in found:
            outcome.note(failure and f"{name}: {failure}")
        if end is not None:
            outcome.note(end)
    return outcome
