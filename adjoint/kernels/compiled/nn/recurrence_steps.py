"""Layers of recurrent networks: the loops over time steps, for some rows of the batch.

Rows do not depend on each other, so each thread processes the whole sequence for its rows. The products with the hidden
state are computed by tiles of `R` rows and `V` vectors, whose sums stay in registers. A second pass computes each
step's gates while its sums are in the cache. At the same time, the data of the next step is prefetched. If the
processor has tile registers, they compute the products from pieces of bfloat16 (`PIECES`).
"""

from __future__ import annotations

from ....codegen.llvm.amx import configure_tiles, release_tiles
from ....codegen.llvm.atomics import atomic_store
from ....codegen.llvm.elementary_exponential import exp, tanh
from ....codegen.llvm.kernels import *
from ..linalg.pieces import (
    SIZES,
    SQUARE,
    STEP,
    TILE,
    are_far_from_ends,
    begin_range,
    multiply_rows_of_pieces,
    pack_tile,
)

LSTM, GRU, TANH, RELU = range(4)
GATES = {LSTM: 4, GRU: 3, TANH: 1, RELU: 1}


@loops
def sigmoid(x: T) -> T:
    """Return 1 / (1 + exp(-x))."""
    return T(1) / (exp(-x) + 1.0)


@loops
def lanes_in(WHOLE: Static, count: Int, W: Static) -> Any:
    """Return the mask of the first `count` elements of a vector, or none if all vectors are `WHOLE`."""
    if WHOLE:
        return None
    return first_lanes(count, W)


@loops
def multiply_rows(
    sums: Pointer[T], a: Pointer[T], a_row: Int, first: Int, last: Int, panel: Pointer[T], depth: Int, W: Static, R: Static,
    V: Static,
) -> None:  # fmt: skip
    """Add the product of `R` rows and a panel of weights to a tile. Missing rows repeat the last row."""
    starts = [a + minimum(first + ROW, last) * a_row for ROW in unrolled(R)]
    tile = local(vector(T, W), R * V)
    for EACH in unrolled(R * V):
        tile[EACH] = load(sums + EACH * W, W)
    for k in range(depth):
        weights = [load(panel + (k * (V * W) + COLUMN * W), W) for COLUMN in unrolled(V)]
        for ROW in unrolled(R):
            factor = broadcast(starts[ROW][k], W)
            for COLUMN in unrolled(V):
                tile[ROW * V + COLUMN] = fma(factor, weights[COLUMN], tile[ROW * V + COLUMN])
    for EACH in unrolled(R * V):
        store(sums + EACH * W, tile[EACH])


@loops
def pack_rows(
    pieces: Pointer[i32], a: Pointer[f32], a_row: Int, start: Int, last: Int, depth: Int, range_b: Pointer[u32],
    refused: Pointer[i64],
) -> None:  # fmt: skip
    """Store the pieces of rows `16 * start` to `last` in tiles. `refused` becomes 1 if they would not be accurate."""
    range_a = local(u32, 2 * TILE)
    begin_range(range_a)
    steps = (depth + (STEP - 1)) // STEP
    for first in range(start * TILE, last + 1, TILE):
        for k in range(0, depth, STEP):
            place = (first // TILE * steps + k // STEP) * (6 * SQUARE)
            pack_tile(
                pieces + place, range_a, a + (first * a_row + k), a_row, last + 1 - first, depth - k, True, False, 3
            )
    if not are_far_from_ends(range_a, range_b):
        atomic_store(refused, 1)


@loops
def multiply_packed(sums: Pointer[f32], a: Pointer[i32], b: Pointer[f32], first: Int, panel: Int, depth: Int) -> None:
    """Add to a tile of sums the product of a panel of weights and the rows that `pack_rows` has packed."""
    steps = (depth + (STEP - 1)) // STEP
    panel_weights = cast_pointer(b, i32) + panel * steps * (12 * SQUARE)
    multiply_rows_of_pieces(sums, a + first // TILE * steps * (6 * SQUARE), panel_weights, steps)


@loops(noalias=False, explicit=True, plain=True, strength_reduced=True)
def forward(
    output: Pointer[T], gates: Pointer[T], more: Pointer[T], projected: Pointer[T], step_size: Int, row_size: Int,
    hidden: Pointer[T], cell: Pointer[T], packed: Pointer[T], bias: Pointer[T], pieces: Pointer[i32], range_: Pointer[u32],
    refused: Pointer[i64], steps: Int, batch: Int, features: Int, backwards: Int, keeps: Int, start: Int, stop: Int,
    W: Static, R: Static, V: Static, MODE: Static, PIECES: Static, WHOLE: Static,
) -> None:  # fmt: skip
    """Compute all steps for the tiles of rows `start` to `stop`. `keeps`: whether there is memory for all steps' gates.

    If `PIECES`, `packed` contains the pieces of the weights, `range_` their bounds, and `pieces` those of the state.
    """
    if PIECES:
        configure_tiles(table(u8, SIZES))
    COUNT = GATES[MODE]
    sums = local(T, R * V * W)
    columns = COUNT * features
    # The input of a GRU's new gate is added later, to the product times the reset gate.
    summed = 2 * features if MODE == GRU else columns
    panels = (columns + (V * W - 1)) // (V * W)
    last = minimum(stop * R, batch) - 1
    for step in range(steps):
        t = where(backwards != 0, steps - 1 - step, step)
        before, onward = where(backwards != 0, t + 1, t - 1), where(backwards != 0, i64(-1), i64(1))
        state = where(step == 0, hidden, output + before * batch * features)
        cells = where(step == 0, cell, more + before * keeps * batch * features)
        gates_of_step = output + t * batch * features if COUNT == 1 else gates + t * keeps * batch * columns
        if PIECES:
            pack_rows(pieces, state, features, start, last, features, range_, refused)
        for panel in range(panels):
            for first in range(start * R, last + 1, R):
                for row in range(R):
                    source = projected + (t * step_size + minimum(first + row, last) * row_size)
                    for column in range(0, V * W, W):
                        place = panel * (V * W) + column
                        prefetch(source + (onward * step_size + place))
                        value = load(source + place, W, lanes_in(WHOLE and MODE != GRU, summed - place, W))
                        value += load(bias + place, W, lanes_in(WHOLE, columns - place, W))
                        store(sums + (row * (V * W) + column), value)
                if PIECES:
                    multiply_packed(sums, pieces, packed, first, panel, features)
                else:
                    panel_weights = packed + panel * features * (V * W)
                    multiply_rows(sums, state, features, first, last, panel_weights, features, W, R, V)
                for row in range(minimum(last + 1 - first, R)):
                    for column in range(0, V * W, W):
                        place = panel * (V * W) + column
                        target = gates_of_step + ((first + row) * columns + place)
                        prefetch(target + onward * keeps * batch * columns, written=True)
                        store(target, load(sums + (row * (V * W) + column), W), lanes_in(WHOLE, columns - place, W))
        for row in range(start * R, last + 1):
            for unit in range(0, features, W):
                there = lanes_in(WHOLE, features - unit, W)
                own = gates_of_step + (row * columns + unit)
                here = row * features + unit
                target = output + (t * batch * features + here)
                if MODE == TANH:
                    store(target, tanh(load(own, W, there)), there)
                elif MODE == RELU:
                    value = load(own, W, there)
                    store(target, where(value > 0, value, where(value == value, 0.0, value)), there)
                elif MODE == GRU:
                    reset, update = sigmoid(load(own, W, there)), sigmoid(load(own + features, W, there))
                    product = load(own + 2 * features, W, there)
                    source = projected + (t * step_size + row * row_size + 2 * features + unit)
                    new = tanh(fma(reset, product, load(source, W, there)))
                    old = load(state + here, W, there)
                    store(more + (t * keeps * batch * features + here), product, there)
                    store(own, reset, there)
                    store(own + features, update, there)
                    store(own + 2 * features, new, there)
                    store(target, fma(old - new, update, new), there)
                else:
                    enter, keep = sigmoid(load(own, W, there)), sigmoid(load(own + features, W, there))
                    new = tanh(load(own + 2 * features, W, there))
                    leave = sigmoid(load(own + 3 * features, W, there))
                    found = fma(keep, load(cells + here, W, there), enter * new)
                    store(more + (t * keeps * batch * features + here), found, there)
                    store(own, enter, there)
                    store(own + features, keep, there)
                    store(own + 2 * features, new, there)
                    store(own + 3 * features, leave, there)
                    store(target, leave * tanh(found), there)
    if PIECES:
        release_tiles()


@loops(noalias=False, explicit=True, plain=True, strength_reduced=True)
def backward(
    to_projected: Pointer[T], to_products: Pointer[T], to_hidden: Pointer[T], carried: Pointer[T], grad: Pointer[T],
    step_size: Int, row_size: Int, has_grad: Int, gates: Pointer[T], more: Pointer[T], output: Pointer[T], hidden: Pointer[T],
    cell: Pointer[T], packed: Pointer[T], pieces: Pointer[i32], range_: Pointer[u32], refused: Pointer[i64], steps: Int,
    batch: Int, features: Int, backwards: Int, start: Int, stop: Int, W: Static, R: Static, V: Static, MODE: Static,
    PIECES: Static, WHOLE: Static,
) -> None:  # fmt: skip
    """Compute all steps for the tiles of rows `start` to `stop`, starting with the last step.

    `to_hidden` is the gradient of the last state, and finally of the first. `carried` is the same for an LSTM's cell.
    """
    if PIECES:
        configure_tiles(table(u8, SIZES))
    COUNT = GATES[MODE]
    columns = COUNT * features
    sums = local(T, R * V * W)
    panels = (features + (V * W - 1)) // (V * W)
    last = minimum(stop * R, batch) - 1
    for turn in range(steps + 1):
        step = steps - 1 - turn
        t = where(backwards != 0, steps - 1 - step, step)
        before, after = where(backwards != 0, t + 1, t - 1), where(backwards != 0, t - 1, t + 1)
        changes = to_products + after * batch * columns
        if PIECES and turn > 0:
            pack_rows(pieces, changes, columns, start, last, columns, range_, refused)
        for panel in range(panels):
            for first in range(start * R, last + 1, R):
                for row in range(R):
                    for column in range(0, V * W, W):
                        unit = panel * (V * W) + column
                        there = lanes_in(WHOLE, features - unit, W)
                        place = minimum(first + row, last) * features + unit
                        # The part of the state's gradient without a product: at the last step, and always for a GRU.
                        value = vector(T, W)(0)
                        if turn == 0:
                            value = load(to_hidden + place, W, there)
                        elif MODE == GRU:
                            value = load(carried + place, W, there)
                        if has_grad != 0 and step >= 0:
                            source = grad + (t * step_size + minimum(first + row, last) * row_size)
                            value += load(source + unit, W, there)
                        store(sums + (row * (V * W) + column), value)
                if turn > 0:
                    if PIECES:
                        multiply_packed(sums, pieces, packed, first, panel, columns)
                    else:
                        panel_weights = packed + panel * columns * (V * W)
                        multiply_rows(sums, changes, columns, first, last, panel_weights, columns, W, R, V)
                for row in range(minimum(last + 1 - first, R)):
                    for column in range(0, V * W, W):
                        unit = panel * (V * W) + column
                        value = load(sums + (row * (V * W) + column), W)
                        store(to_hidden + ((first + row) * features + unit), value, lanes_in(WHOLE, features - unit, W))
        if step >= 0:
            for row in range(start * R, last + 1):
                for unit in range(0, features, W):
                    there = lanes_in(WHOLE, features - unit, W)
                    here = row * features + unit
                    place = t * batch * features + here
                    own = (t * batch + row) * columns + unit
                    for GATE in unrolled(COUNT):
                        distant = (before * batch + row) * columns + unit + GATE * features
                        prefetch(gates + distant)
                        prefetch(to_projected + distant, written=True)
                    prefetch(more + (before * batch * features + here))
                    change = load(to_hidden + here, W, there)
                    if MODE == LSTM:
                        enter, keep = load(gates + own, W, there), load(gates + (own + features), W, there)
                        new, leave = (
                            load(gates + (own + 2 * features), W, there),
                            load(gates + (own + 3 * features), W, there),
                        )
                        squashed = tanh(load(more + place, W, there))
                        through = change * leave * (1.0 - squashed * squashed)
                        kept = load(carried + here, W, there) + through
                        cells = where(step == 0, cell, more + before * batch * features)
                        old = load(cells + here, W, there)
                        target = to_projected + own
                        store(target, kept * new * enter * (1.0 - enter), there)
                        store(target + features, kept * old * keep * (1.0 - keep), there)
                        store(target + 2 * features, kept * enter * (1.0 - new * new), there)
                        store(target + 3 * features, change * squashed * leave * (1.0 - leave), there)
                        store(carried + here, kept * keep, there)
                    elif MODE == GRU:
                        reset, update = load(gates + own, W, there), load(gates + (own + features), W, there)
                        new = load(gates + (own + 2 * features), W, there)
                        states = where(step == 0, hidden, output + before * batch * features)
                        old = load(states + here, W, there)
                        to_new = change * (1.0 - update) * (1.0 - new * new)
                        to_reset = to_new * load(more + place, W, there) * reset * (1.0 - reset)
                        to_update = change * (old - new) * update * (1.0 - update)
                        for target in [to_projected + own, to_products + own]:
                            store(target, to_reset, there)
                            store(target + features, to_update, there)
                        store(to_projected + (own + 2 * features), to_new, there)
                        store(to_products + (own + 2 * features), to_new * reset, there)
                        store(carried + here, change * update, there)
                    else:
                        result = load(output + place, W, there)
                        if MODE == TANH:
                            store(to_projected + own, change * (1.0 - result * result), there)
                        else:
                            store(to_projected + own, where(result > 0, change, 0.0), there)
    if PIECES:
        release_tiles()
