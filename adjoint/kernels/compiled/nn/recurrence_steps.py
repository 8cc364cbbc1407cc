"""Layers of recurrent networks: the loops over steps, for some rows of the batch.

Rows do not depend on each other, so each thread walks through the whole sequence with its own. The products with the hidden
state are made of tiles: some rows by the vectors of all gates of the same features, so that a step's gates meet in cache.
"""

from __future__ import annotations

from ....codegen.llvm.elementary_exponential import exp, tanh
from ....codegen.llvm.language import (
    Int,
    Pointer,
    Static,
    T,
    broadcast,
    fma,
    gather,
    i64,
    lanes,
    load,
    local,
    loops,
    minimum,
    store,
    unrolled,
    vector,
    where,
)
from ..linalg.tiles import first_lanes

LSTM, GRU, TANH, RELU = range(4)
GATES = {LSTM: 4, GRU: 3, TANH: 1, RELU: 1}


def tile_vectors(mode: int) -> int:
    """How many vectors a row of a forward tile has: one for each gate, several where there is one gate."""
    return 4 if GATES[mode] == 1 else GATES[mode]


@loops(explicit=True, plain=True)
def pack_forward(
    packed: Pointer[T], weight: Pointer[T], features: Int, start: Int, stop: Int, W: Static, MODE: Static
) -> None:
    """Panels `start` to `stop` of the transposed weights: for each feature of the state, the vectors of a tile."""
    VECTORS = tile_vectors(MODE)
    UNITS = VECTORS // GATES[MODE] * W
    for panel in range(start, stop):
        target = packed + panel * features * (VECTORS * W)
        for column in range(VECTORS):
            gate, unit = column % GATES[MODE], panel * UNITS + column // GATES[MODE] * W
            own = weight + (gate * features + unit) * features
            units = lanes(i64, W) * features
            for k in range(features):
                found = gather(own + k, units, first_lanes(features - unit, W))
                store(target + (k * (VECTORS * W) + column * W), found)


@loops(explicit=True, plain=True)
def pack_backward(
    packed: Pointer[T], weight: Pointer[T], features: Int, inner: Int, start: Int, stop: Int, W: Static
) -> None:
    """Panels `start` to `stop` of the weights: for each gate of each feature, four vectors of features of the state."""
    for panel in range(start, stop):
        for k in range(inner):
            for column in range(0, 4 * W, W):
                there = first_lanes(features - (panel * (4 * W) + column), W)
                value = load(weight + (k * features + panel * (4 * W) + column), W, there)
                store(packed + ((panel * inner + k) * (4 * W) + column), value)


@loops
def sigmoid(x: T) -> T:
    """1 / (1 + exp(-x))."""
    return T(1) / (exp(-x) + 1.0)


@loops
def multiply_rows(
    sums: Pointer[T], a: Pointer[T], a_row: Int, first: Int, last: Int, panel: Pointer[T], depth: Int, W: Static, R: Static,
    VECTORS: Static,
) -> None:  # fmt: skip
    """Add to a tile the product of `R` rows (those after the last one are the last one again) and a panel of weights."""
    starts = [a + minimum(first + ROW, last) * a_row for ROW in unrolled(R)]
    tile = local(vector(T, W), R * VECTORS)
    for EACH in unrolled(R * VECTORS):
        tile[EACH] = load(sums + EACH * W, W)
    for k in range(depth):
        weights = [load(panel + (k * (VECTORS * W) + COLUMN * W), W) for COLUMN in unrolled(VECTORS)]
        for ROW in unrolled(R):
            factor = broadcast(starts[ROW][k], W)
            for COLUMN in unrolled(VECTORS):
                tile[ROW * VECTORS + COLUMN] = fma(factor, weights[COLUMN], tile[ROW * VECTORS + COLUMN])
    for EACH in unrolled(R * VECTORS):
        store(sums + EACH * W, tile[EACH])


@loops(noalias=False, explicit=True, plain=True)
def forward(
    output: Pointer[T], gates: Pointer[T], more: Pointer[T], projected: Pointer[T], step_size: Int, row_size: Int,
    hidden: Pointer[T], cell: Pointer[T], packed: Pointer[T], bias: Pointer[T], steps: Int, batch: Int, features: Int,
    backwards: Int, keeps: Int, start: Int, stop: Int, W: Static, R: Static, MODE: Static,
) -> None:  # fmt: skip
    """All steps for the tiles of rows `start` to `stop`. `keeps`: 1 if there is memory for the gates of all steps, 0 for one."""
    VECTORS, COUNT = tile_vectors(MODE), GATES[MODE]
    UNITS = VECTORS // COUNT * W
    sums = local(T, R * VECTORS * W)
    panels = (features + (UNITS - 1)) // UNITS
    last = minimum(stop * R, batch) - 1
    for step in range(steps):
        t = where(backwards != 0, steps - 1 - step, step)
        before = where(backwards != 0, t + 1, t - 1)
        state = where(step == 0, hidden, output + before * batch * features)
        for panel in range(panels):
            for first in range(start * R, last + 1, R):
                count = minimum(last + 1 - first, R)
                for row in range(R):
                    source = projected + (t * step_size + minimum(first + row, last) * row_size)
                    for column in range(VECTORS):
                        gate, unit = column % COUNT, panel * UNITS + column // COUNT * W
                        there = first_lanes(features - unit, W)
                        value = load(source + (gate * features + unit), W, there)
                        if MODE == GRU:
                            value = where(gate == 2, vector(T, W)(0), value)
                        value += load(bias + (gate * features + unit), W, there)
                        store(sums + (row * VECTORS + column) * W, value)
                multiply_rows(
                    sums,
                    state,
                    features,
                    first,
                    last,
                    packed + panel * features * (VECTORS * W),
                    features,
                    W,
                    R,
                    VECTORS,
                )
                for row in range(count):
                    place = (t * batch + first + row) * features
                    of_step = (t * keeps * batch + first + row) * features
                    own = gates + of_step * COUNT
                    if COUNT == 1:
                        for column in range(VECTORS):
                            unit = panel * UNITS + column * W
                            there = first_lanes(features - unit, W)
                            value = load(sums + (row * VECTORS + column) * W, W)
                            value = (
                                tanh(value)
                                if MODE == TANH
                                else where(value > 0, value, where(value == value, 0.0, value))
                            )
                            store(output + (place + unit), value, there)
                    else:
                        unit = panel * W
                        there = first_lanes(features - unit, W)
                        # Of both, the sums of the first two gates go through sigmoid alone.
                        for column in range(2):
                            place_of = sums + (row * VECTORS + column) * W
                            store(place_of, sigmoid(load(place_of, W)))
                            store(own + (column * features + unit), load(place_of, W), there)
                        first_gate = load(sums + row * VECTORS * W, W)
                        second_gate = load(sums + (row * VECTORS + 1) * W, W)
                        third = load(sums + (row * VECTORS + 2) * W, W)
                        if MODE == GRU:
                            store(more + (of_step + unit), third, there)
                            source = projected + (t * step_size + (first + row) * row_size)
                            new = tanh(fma(first_gate, third, load(source + (2 * features + unit), W, there)))
                            store(own + (2 * features + unit), new, there)
                            old = load(state + ((first + row) * features + unit), W, there)
                            store(output + (place + unit), fma(old - new, second_gate, new), there)
                        else:
                            new = tanh(third)
                            leave = sigmoid(load(sums + (row * VECTORS + 3) * W, W))
                            store(own + (2 * features + unit), new, there)
                            store(own + (3 * features + unit), leave, there)
                            cells = where(step == 0, cell, more + before * keeps * batch * features)
                            old = load(cells + ((first + row) * features + unit), W, there)
                            found = fma(second_gate, old, first_gate * new)
                            store(more + (of_step + unit), found, there)
                            store(output + (place + unit), leave * tanh(found), there)


@loops(noalias=False, explicit=True, plain=True)
def backward(
    to_projected: Pointer[T], to_products: Pointer[T], to_hidden: Pointer[T], carried: Pointer[T], grad: Pointer[T],
    step_size: Int, row_size: Int, has_grad: Int, gates: Pointer[T], more: Pointer[T], output: Pointer[T], hidden: Pointer[T],
    cell: Pointer[T], packed: Pointer[T], steps: Int, batch: Int, features: Int, backwards: Int, start: Int, stop: Int,
    W: Static, R: Static, MODE: Static,
) -> None:  # fmt: skip
    """All steps, the last one first, for the tiles of rows `start` to `stop`.

    `to_hidden` is at first the gradient of the last hidden state, and in the end that of the first one; `carried` is the same for
    the cell of an LSTM, and for a GRU scratch memory.
    """
    COUNT = GATES[MODE]
    sums = local(T, R * 4 * W)
    panels = (features + (4 * W - 1)) // (4 * W)
    last = minimum(stop * R, batch) - 1
    for turn in range(steps + 1):
        step = steps - 1 - turn
        t = where(backwards != 0, steps - 1 - step, step)
        before, after = where(backwards != 0, t + 1, t - 1), where(backwards != 0, t - 1, t + 1)
        for panel in range(panels):
            for first in range(start * R, last + 1, R):
                count = minimum(last + 1 - first, R)
                for row in range(R):
                    for column in range(4):
                        unit = panel * (4 * W) + column * W
                        there = first_lanes(features - unit, W)
                        place = minimum(first + row, last) * features + unit
                        # What reaches the state without a product: of the last step at first, of a GRU always.
                        value = vector(T, W)(0)
                        if turn == 0:
                            value = load(to_hidden + place, W, there)
                        elif MODE == GRU:
                            value = load(carried + place, W, there)
                        if has_grad != 0 and step >= 0:
                            source = grad + (t * step_size + minimum(first + row, last) * row_size)
                            value += load(source + unit, W, there)
                        store(sums + (row * 4 + column) * W, value)
                if turn > 0:
                    multiply_rows(
                        sums, to_products + after * batch * features * COUNT, features * COUNT, first, last,
                        packed + panel * features * (COUNT * 4 * W), features * COUNT, W, R, 4,
                    )  # fmt: skip
                for row in range(count):
                    for column in range(4):
                        unit = panel * (4 * W) + column * W
                        there = first_lanes(features - unit, W)
                        change = load(sums + (row * 4 + column) * W, W)
                        here = (first + row) * features + unit
                        if step < 0:
                            store(to_hidden + here, change, there)
                        elif unit < features:
                            place = t * batch * features + here
                            own = (t * batch + first + row) * features * COUNT + unit
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
