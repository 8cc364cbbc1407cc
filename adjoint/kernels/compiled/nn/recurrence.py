"""Recurrent layers over whole sequences; see `recurrence_steps`."""

from __future__ import annotations

from collections.abc import Iterator

from ....codegen.acceleration import LOOPS
from ....codegen.costs import FLOPS_PER_BYTE
from ....codegen.llvm.amx import TILES
from ....codegen.llvm.kernels import *
from ....codegen.llvm.vectors import VECTORS, tile_rows
from ...runtime.parallel import get_num_threads
from ..linalg.pieces import SIDE, SQUARE, STEP, TILE, pack
from . import recurrence_steps as steps_of

Array = numpy.ndarray[Any, Any]

_MODES = {"LSTM": steps_of.LSTM, "GRU": steps_of.GRU, "RNN_TANH": steps_of.TANH, "RNN_RELU": steps_of.RELU}
_FILLED = 0.75
"""Kernels use tile registers if the batch fills at least this number of their rows on all threads."""


def recurrent_layer(
    projected: Array, hidden: Array, cell: Array | None, weight: Array, bias: Array | None, mode: str, backwards: bool,
    keeps: bool = True,
) -> Any:  # fmt: skip
    """Compute `kernels.nn.recurrence.recurrent_layer`."""
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
    for tile in _tiles(kind, batch, weight.T):
        tile.run(
            steps_of.forward, mode, steps * columns * features,
            output, gates, more, projected, projected.strides[0] // kind.itemsize, projected.strides[1] // kind.itemsize,
            hidden, cell, tile.packed, offset, *tile.pieces, steps, batch, features, backwards, keeps,
        )  # fmt: skip
        if not tile.refused:
            break
    last = 0 if backwards else -1
    last_cell = more[last if keeps else 0].copy() if mode == "LSTM" else numpy.empty(0, kind)
    if not keeps:
        gates = more = numpy.empty(0, kind)
    return output, output[last].copy(), last_cell, gates, more


def through_time(
    gates: Array, grad: Array | None, grad_hidden: Array | None, grad_cell: Array | None, more: Array, output: Array,
    hidden: Array, cell: Array | None, weight: Array, mode: str, backwards: bool,
) -> Any:  # fmt: skip
    """Compute `kernels.nn.recurrence.through_time`."""
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
    for tile in _tiles(kind, batch, weight):
        to_hidden, carried = numpy.zeros(given_hidden.shape, kind), numpy.zeros(given_hidden.shape, kind)
        if grad_hidden is not None:
            to_hidden[...] = grad_hidden
        if grad_cell is not None and mode == "LSTM":
            carried[...] = grad_cell
        tile.run(
            steps_of.backward, mode, steps * columns * features,
            to_projected, to_products, to_hidden, carried, grad, grad.strides[0] // kind.itemsize,
            grad.strides[1] // kind.itemsize, has_grad, gates, more, output, hidden, before, tile.packed, *tile.pieces,
            steps, batch, features, backwards,
        )  # fmt: skip
        if not tile.refused:
            break
    return to_projected, to_products, to_hidden, None if cell is None else carried


def _taken(projected: Array, hidden: Array, cell: Array | None, weight: Array, bias: Array | None, mode: str) -> bool:
    """Return whether the loops support these arrays. The loops themselves check nothing."""
    parts = [each for each in (hidden, cell, weight, bias) if each is not None]
    if (
        projected.dtype.char not in "fd"
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


def _tiles(kind: numpy.dtype[Any], batch: int, weight: Array) -> Iterator[_Tile]:
    """Return the tiles for the product of a batch and these weights, the fastest first. The last tile supports all numbers."""
    unit = TILE * get_num_threads()
    large = min(weight.shape) >= 4 * TILE and batch >= _FILLED * unit * -(-batch // unit)
    if kind.char == "f" and TILES.usable and (large or LOOPS.every_size):
        yield _Tile(weight, batch, True)
    yield _Tile(weight, batch, False)


class _Tile:
    """The tiles for a batch: their numbers of rows and vectors.

    A tile is as large as the registers allow, and has no more rows than a thread.

    `by_pieces`: whether tile registers hold the tiles.
    """

    def __init__(self, weight: Array, batch: int, by_pieces: bool) -> None:
        self.kind, self.batch, self.by_pieces = weight.dtype, batch, by_pieces
        self.lanes = HOST.vector_bytes // weight.itemsize
        self.pieces: tuple[Array, ...]
        if by_pieces:
            self.rows, self.vectors = TILE, 4
            depth, width = weight.shape
            steps, strips = -(-depth // STEP), -(-width // (2 * SIDE)) * 2
            self.packed = numpy.zeros(strips * steps * 6 * SQUARE, numpy.float32)
            of_state = numpy.empty(-(-batch // TILE) * steps * 6 * SQUARE, numpy.int32)
            self.pieces = of_state, numpy.empty(2 * TILE, numpy.uint32), numpy.zeros(1, numpy.int64)
            along = weight.strides[0] == weight.itemsize
            row = weight.strides[1 if along else 0] // weight.itemsize
            pack.compiled(T=f32, P=3).call(
                address(self.packed), address(self.pieces[1]), address(weight), row, width, depth, along, along
            )
        else:
            most = tile_rows(HOST.vector_bytes)
            of_thread = -(-batch // get_num_threads())
            self.rows = min(most, max(2, 1 << (of_thread - 1).bit_length()))
            self.vectors = most * VECTORS // self.rows
            self.packed = _packed(weight, self)
            self.pieces = (numpy.zeros(1, numpy.int64),) * 3
        self.whole = all(size % (self.vectors * self.lanes) == 0 for size in weight.shape)

    @property
    def refused(self) -> bool:
        """Return whether the loops found numbers whose pieces are not accurate enough."""
        return bool(self.pieces[2][0])

    def run(self, kernel: Any, mode: str, work: int, *arguments: Any) -> None:
        """Run the loops for all rows, with as few ranges as threads, because each range reads all weights."""
        given = {"T": type_of(self.kind), "W": self.lanes, "R": self.rows, "V": self.vectors, "MODE": _MODES[mode]}
        function = kernel.compiled(**given, PIECES=self.by_pieces, WHOLE=self.whole)
        launch(function, -(-self.batch // self.rows), 2 * work * self.rows // FLOPS_PER_BYTE, *arguments)


def _packed(matrix: Array, tile: _Tile) -> Array:
    """Return a matrix in panels as wide as a tile.

    Each panel contains consecutive parts of the rows, with zeros after the last column.

    NumPy copies whole parts of rows in less time than the compilation of loops would take, and loops would not be
    faster.
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
