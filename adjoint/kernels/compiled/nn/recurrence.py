"""Recurrent layers over whole sequences; see `recurrence_steps`."""

from __future__ import annotations

from collections.abc import Iterator

from ....codegen.acceleration import LOOPS, SHAPES
from ....codegen.llvm.amx import TILES
from ....codegen.llvm.kernels import *
from ....codegen.llvm.vectors import VECTORS, tile_rows
from ....codegen.recording import Unrecorded
from ...memory.copying import copy_elements
from ...runtime.costs import FLOPS_PER_BYTE, NARROW
from ...runtime.layout import row_major, row_major_copy
from ...runtime.parallel import get_num_threads
from ..linalg.pieces import SIDE, SQUARE, STEP, TILE, pack
from . import recurrence_steps as steps_of

Array = numpy.ndarray[Any, Any]

_MODES = {"LSTM": steps_of.LSTM, "GRU": steps_of.GRU, "RNN_TANH": steps_of.TANH, "RNN_RELU": steps_of.RELU}


@recordable
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
        projected = row_major(projected)
    hidden, weight, nothing = row_major(hidden), row_major(weight), constant(0, kind)
    cell = nothing if cell is None else row_major(cell)
    offset = constant(columns, kind) if bias is None else row_major(bias)
    output = empty((steps, batch, features), kind)
    gates = more = nothing
    if single := mode in ("RNN_TANH", "RNN_RELU"):
        keeps = True
    else:
        gates = empty((steps if keeps else 1, batch, columns), kind)
        more = empty((len(gates), batch, features), kind)
    for tile in _tiles(kind, batch, weight.T):
        tile.run(
            steps_of.forward, mode, steps * columns * features,
            output, gates, more, projected, projected.strides[0] // kind.itemsize, projected.strides[1] // kind.itemsize,
            hidden, cell, tile.packed, offset, *tile.pieces, steps, batch, features, backwards, keeps,
        )  # fmt: skip
        if not tile.refused:
            break
    last = 0 if backwards else -1
    last_cell = row_major_copy(more[last if keeps else 0]) if mode == "LSTM" else numpy.empty(0, kind)
    if not keeps or single:
        gates = more = numpy.empty(0, kind)
    return output, row_major_copy(output[last]), last_cell, gates, more


@recordable
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
    nothing = constant(0, kind)
    output, more = row_major(output), row_major(more) if gated else nothing
    has_grad = grad is not None
    step_bytes, row_bytes = 0, 0
    if grad is None:
        grad = nothing
    else:
        grad = grad if grad.strides[2] == kind.itemsize else row_major(grad)
        step_bytes, row_bytes = grad.strides[:2]
    state, hidden, weight = hidden.shape, row_major(hidden), row_major(weight)
    before = nothing if cell is None else row_major(cell)
    to_projected = empty(gates.shape, kind)
    to_products = empty(gates.shape, kind) if mode == "GRU" else to_projected
    for tile in _tiles(kind, batch, weight):
        to_hidden = zeros(state, kind) if grad_hidden is None else row_major_copy(grad_hidden)
        carried = zeros(state, kind) if grad_cell is None or mode != "LSTM" else row_major_copy(grad_cell)
        tile.run(
            steps_of.backward, mode, steps * columns * features,
            to_projected, to_products, to_hidden, carried, grad, step_bytes // kind.itemsize, row_bytes // kind.itemsize,
            has_grad, gates, more, output, hidden, before, tile.packed, *tile.pieces,
            steps, batch, features, backwards,
        )  # fmt: skip
        if not tile.refused:
            break
    return to_projected, to_products if mode == "GRU" else None, to_hidden, None if cell is None else carried


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
    # The batch fills most rows of the tiles of all threads.
    large = min(weight.shape) >= NARROW and batch >= 0.75 * unit * -(-batch // unit)
    if kind.char == "f" and TILES.usable and (large or LOOPS.every_size):
        if SHAPES.recorder is not None:
            raise Unrecorded
        yield _Tile(weight, batch, True)
    yield _Tile(weight, batch, False)


class _Tile:
    """The largest tiles for the registers, or for tile registers (`by_pieces`), with no more rows than a thread has."""

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
            self.pieces = (constant(1, numpy.dtype(numpy.int64)),) * 3
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
    """Return a matrix in panels as wide as a tile, each with parts of the rows and zeros after the last column."""
    depth, width = matrix.shape
    wide = tile.vectors * tile.lanes
    whole, rest = divmod(width, wide)
    if not rest:
        return row_major_copy(matrix.reshape(depth, whole, wide).transpose(1, 0, 2))
    packed = zeros((whole + 1, depth, wide), tile.kind)
    copy_elements(packed[:whole], matrix[:, : whole * wide].reshape(depth, whole, wide).transpose(1, 0, 2))
    copy_elements(packed[whole, :, :rest], matrix[:, whole * wide :])
    return packed


@functools.cache
def constant(size: int, kind: numpy.dtype[Any]) -> Array:
    """Return zeros that nothing changes."""
    return unchanged(numpy.zeros(size, kind))
