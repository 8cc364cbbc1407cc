"""Layers of recurrent networks over whole sequences; see `recurrence_steps`."""

from __future__ import annotations

from typing import Any

import numpy

from ....codegen.llvm.host import HOST
from ....codegen.llvm.language import address, f32, f64
from ....codegen.llvm.launch import launch
from ...runtime.parallel import get_num_threads
from ..linalg.tiles import VECTORS, tile_rows
from . import recurrence_steps as steps_of

Array = numpy.ndarray[Any, Any]

_TYPES = {"f": f32, "d": f64}
_MODES = {"LSTM": steps_of.LSTM, "GRU": steps_of.GRU, "RNN_TANH": steps_of.TANH, "RNN_RELU": steps_of.RELU}
_FLOPS_PER_BYTE = 16
"""How many operations take as long as one byte of the memory by which work is measured."""


def recurrent_layer(
    projected: Array, hidden: Array, cell: Array | None, weight: Array, bias: Array | None, mode: str, backwards: bool,
    keeps: bool = True,
) -> Any:  # fmt: skip
    """`kernels.nn.recurrence.recurrent_layer`."""
    if not _taken(projected, hidden, cell, weight, bias, mode):
        return NotImplemented
    kind = projected.dtype
    steps, batch, columns = projected.shape
    features = hidden.shape[1]
    if projected.strides[2] != kind.itemsize:
        projected = numpy.ascontiguousarray(projected)
    hidden, weight = numpy.ascontiguousarray(hidden), numpy.ascontiguousarray(weight)
    cell = numpy.empty(0, kind) if cell is None else numpy.ascontiguousarray(cell)
    offset = numpy.zeros(columns, kind) if bias is None else numpy.ascontiguousarray(bias)
    output = numpy.empty((steps, batch, features), kind)
    single = mode in ("RNN_TANH", "RNN_RELU")
    gates = numpy.empty((0,) if single else (steps if keeps else 1, batch, columns), kind)
    more = numpy.empty((0,) if single else (*gates.shape[:2], features), kind)
    tile = _Tile(kind, batch)
    packed = _packed(weight.T, tile)
    _by_rows(
        steps_of.forward.compiled(**tile.statics(R=tile.rows, MODE=_MODES[mode])), tile, batch, steps * columns * features,
        *map(address, (output, gates, more, projected)), projected.strides[0] // kind.itemsize,
        projected.strides[1] // kind.itemsize, *map(address, (hidden, cell, packed, offset)), steps, batch, features, backwards,
        keeps,
    )  # fmt: skip
    last = 0 if backwards else -1
    last_cell = more[last if keeps else 0].copy() if mode == "LSTM" else numpy.empty(0, kind)
    if not keeps:
        gates = more = numpy.empty(0, kind)
    return output, output[last].copy(), last_cell, gates, more


def through_time(
    gates: Array, grad: Array | None, grad_hidden: Array | None, grad_cell: Array | None, more: Array, output: Array,
    hidden: Array, cell: Array | None, weight: Array, mode: str, backwards: bool,
) -> Any:  # fmt: skip
    """`kernels.nn.recurrence.through_time`."""
    if not _taken(gates, hidden, cell, weight, None, mode) or not gates.flags.c_contiguous:
        return NotImplemented
    kind = gates.dtype
    steps, batch, columns = gates.shape
    features = hidden.shape[1]
    of_steps, of_state = (steps, batch, features), (batch, features)
    gated = mode in ("LSTM", "GRU")
    fitting = [(output, of_steps), (grad, of_steps), (grad_hidden, of_state), (grad_cell, of_state)]
    fitting += [(more, of_steps)] if gated else []
    if any(each is not None and (each.shape != shape or each.dtype != kind) for each, shape in fitting):
        return NotImplemented
    output, more = numpy.ascontiguousarray(output), numpy.ascontiguousarray(more)
    has_grad = grad is not None
    if grad is None:
        grad = numpy.empty((0, 0, 0), kind)
    elif grad.strides[2] != kind.itemsize:
        grad = numpy.ascontiguousarray(grad)
    given_hidden, hidden, weight = hidden, numpy.ascontiguousarray(hidden), numpy.ascontiguousarray(weight)
    before = numpy.empty(0, kind) if cell is None else numpy.ascontiguousarray(cell)
    to_projected = numpy.empty(gates.shape, kind)
    to_products = numpy.empty(gates.shape, kind) if mode == "GRU" else to_projected
    to_hidden, carried = numpy.zeros(given_hidden.shape, kind), numpy.zeros(given_hidden.shape, kind)
    if grad_hidden is not None:
        to_hidden[...] = grad_hidden
    if grad_cell is not None and mode == "LSTM":
        carried[...] = grad_cell
    tile = _Tile(kind, batch)
    packed = _packed(weight, tile)
    _by_rows(
        steps_of.backward.compiled(**tile.statics(R=tile.rows, MODE=_MODES[mode])), tile, batch,
        steps * columns * features, *map(address, (to_projected, to_products, to_hidden, carried, grad)),
        grad.strides[0] // kind.itemsize, grad.strides[1] // kind.itemsize, has_grad,
        *map(address, (gates, more, output, hidden, before, packed)), steps, batch, features, backwards,
    )  # fmt: skip
    return to_projected, to_products, to_hidden, None if cell is None else carried


def _taken(projected: Array, hidden: Array, cell: Array | None, weight: Array, bias: Array | None, mode: str) -> bool:
    """Whether the loops, which check nothing, are for these arrays."""
    parts = [each for each in (hidden, cell, weight, bias) if each is not None]
    if (
        projected.dtype.char not in _TYPES
        or not projected.size
        or any(each.dtype is not projected.dtype for each in parts)
    ):
        return False
    columns, features = projected.shape[-1], hidden.shape[-1] if hidden.ndim else 0
    return (
        projected.ndim == 3
        and hidden.shape == (projected.shape[1], features)
        and weight.shape == (columns, features)
        and columns == steps_of.GATES[_MODES[mode]] * features
        and (bias is None or bias.shape == (columns,))
        and (hidden.shape == cell.shape if cell is not None else mode != "LSTM")
    )


class _Tile:
    """The tiles for a batch: its rows and vectors, which are as many as registers hold, and no more rows than a thread has."""

    def __init__(self, kind: numpy.dtype[Any], batch: int) -> None:
        most = tile_rows(HOST.vector_bytes)
        of_thread = -(-batch // get_num_threads())
        self.rows = min(most, max(2, 1 << (of_thread - 1).bit_length()))
        self.vectors = most * VECTORS // self.rows
        self.lanes = HOST.vector_bytes // kind.itemsize
        self.kind = kind

    def statics(self, **more: int) -> dict[str, Any]:
        """What kernels are compiled for."""
        return {"T": _TYPES[self.kind.char], "W": self.lanes, "V": self.vectors, **more}


def _packed(matrix: Array, tile: _Tile) -> Array:
    """A matrix in panels as wide as a tile: its rows' parts one below another, with zeros beside the last columns.

    NumPy copies whole parts of rows, in less time than it takes to compile loops that are no faster.
    """
    depth, width = matrix.shape
    wide = tile.vectors * tile.lanes
    whole, rest = divmod(width, wide)
    packed = numpy.empty((whole + (rest > 0), depth, wide), tile.kind)
    packed[:whole] = matrix[:, : whole * wide].reshape(depth, whole, wide).transpose(1, 0, 2)
    if rest:
        packed[whole, :, :rest] = matrix[:, whole * wide :]
        packed[whole, :, rest:] = 0
    return packed


def _by_rows(function: Any, tile: _Tile, batch: int, work: int, *arguments: Any) -> None:
    """Run the loops for all rows, with as few ranges as there are threads: each range reads all weights."""
    tiles = -(-batch // tile.rows)
    launch(function, tiles, 2 * work * tile.rows // _FLOPS_PER_BYTE, *arguments)
