"""Layers of recurrent networks over whole sequences, and their gradients.

Hochreiter and Schmidhuber, "Long short-term memory", 1997; Cho et al., "Learning phrase representations using RNN
encoder-decoder", 2014.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

from ...codegen.plans import compiled
from ...codegen.recording import recordable
from ..runtime.costs import MOVED
from ..runtime.floating import Array, unwarned

GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "GRU": 3, "LSTM": 4}


@recordable
@compiled("nn.recurrence.recurrent_layer", least=MOVED)
def recurrent_layer(
    projected: Array, hidden: Array, cell: Array | None, weight: Array, bias: Array | None, mode: str, backwards: bool,
    keeps: bool = True,
) -> tuple[Array, ...]:  # fmt: skip
    """Return the outputs, the last hidden state and cell, and the values that the gradients of gated layers need.

    `projected` (steps, batch, gates * features) contains the inputs times their weights. `weight` (gates * features,
    features) multiplies the hidden state, and `bias` is added to this product. If `backwards`, the sequence is read
    from its end. If `keeps`, the last results are the gates and, for each step, the cell of an LSTM or the operand of
    the reset gate of a GRU.
    """
    steps, batch = projected.shape[:2]
    features = hidden.shape[1]
    output = numpy.empty((steps, batch, features), projected.dtype)
    gated = mode in ("LSTM", "GRU")
    gates = numpy.empty(projected.shape if gated else (0,), projected.dtype)
    more = numpy.empty(output.shape if gated else (0,), projected.dtype)
    turned = weight.T
    for t, _ in walk(steps, backwards):
        product = hidden @ turned
        product = product if bias is None else product + bias
        if mode == "GRU":
            reset, update, new = parts(gates[t], 3)
            _sigmoid(projected[t, :, : 2 * features] + product[:, : 2 * features], gates[t, :, : 2 * features])
            more[t] = product[:, 2 * features :]
            numpy.tanh(projected[t, :, 2 * features :] + reset * more[t], new)
            hidden = (hidden - new) * update + new
        elif cell is not None:
            product += projected[t]
            enter, keep, new, leave = parts(gates[t], 4)
            _sigmoid(product, gates[t])
            numpy.tanh(product[:, 2 * features : 3 * features], new)
            more[t] = cell = keep * cell + enter * new
            hidden = leave * numpy.tanh(cell)
        else:
            product += projected[t]
            hidden = numpy.tanh(product) if mode == "RNN_TANH" else numpy.maximum(product, 0)
        output[t] = hidden
    if not keeps:
        gates = more = numpy.empty(0, output.dtype)
    return output, hidden.copy(), numpy.empty(0, output.dtype) if cell is None else cell.copy(), gates, more


def walk(steps: int, backwards: bool) -> Iterator[tuple[int, int]]:
    """Yield the steps in the order of a layer, each with the previous step (-1 for the first)."""
    order = range(steps - 1, -1, -1) if backwards else range(steps)
    before = -1
    for t in order:
        yield t, before
        before = t


def parts(array: Array, count: int) -> list[Array]:
    """Return the gates of an array, which are consecutive parts of its last dimension."""
    features = array.shape[-1] // count
    return [array[..., number * features : (number + 1) * features] for number in range(count)]


def _sigmoid(x: Array, out: Array) -> None:
    with unwarned():
        numpy.reciprocal(numpy.exp(-x) + 1, out)


@recordable
def recurrent_layer_gradients(
    grads: Any, projected: Array, hidden: Array, cell: Array | None, weight: Array, bias: Array | None, mode: str,
    backwards: bool, output: Array, gates: Array, more: Array,
) -> tuple[Array | None, ...]:  # fmt: skip
    """Return the results of `through_time`, for the gradients of the outputs and last states."""
    kept = gates if gates.size else output
    return through_time(kept, *grads[:3], more, output, hidden, cell, weight, mode, backwards)


@compiled("nn.recurrence.through_time", least=MOVED)
def through_time(
    gates: Array, grad: Array | None, grad_hidden: Array | None, grad_cell: Array | None, more: Array, output: Array,
    hidden: Array, cell: Array | None, weight: Array, mode: str, backwards: bool,
) -> tuple[Array | None, ...]:  # fmt: skip
    """Return the gradients of `projected`, of the products of hidden states and weights, of `hidden`, and of `cell`.

    The second result is None if it equals the first, and the last for a layer without cells. For a layer without gates,
    `gates` are the outputs.
    """
    to_projected = numpy.empty(gates.shape, gates.dtype)
    to_products = numpy.empty(gates.shape, gates.dtype) if mode == "GRU" else to_projected
    change = numpy.zeros(hidden.shape, gates.dtype) if grad_hidden is None else grad_hidden.copy()
    carried = numpy.zeros(hidden.shape, gates.dtype) if grad_cell is None else grad_cell.copy()
    for t, before in reversed(list(walk(len(gates), backwards))):
        if grad is not None:
            change = change + grad[t]
        if mode == "GRU":
            reset, update, new = parts(gates[t], 3)
            state = hidden if before < 0 else output[before]
            to_new = change * (1 - update) * (1 - new * new)
            to_reset = to_new * more[t] * reset * (1 - reset)
            to_update = change * (state - new) * update * (1 - update)
            to_projected[t] = numpy.concatenate([to_reset, to_update, to_new], -1)
            to_products[t] = numpy.concatenate([to_reset, to_update, to_new * reset], -1)
            change = change * update + to_products[t] @ weight
            continue
        if cell is not None:
            enter, keep, new, leave = parts(gates[t], 4)
            squashed = numpy.tanh(more[t])
            carried = carried + change * leave * (1 - squashed * squashed)
            to_enter, to_keep, to_new, to_leave = parts(to_projected[t], 4)
            to_enter[:] = carried * new * enter * (1 - enter)
            to_keep[:] = carried * (cell if before < 0 else more[before]) * keep * (1 - keep)
            to_new[:] = carried * enter * (1 - new * new)
            to_leave[:] = change * squashed * leave * (1 - leave)
            carried = carried * keep
        elif mode == "RNN_TANH":
            to_projected[t] = change * (1 - gates[t] * gates[t])
        else:
            to_projected[t] = change * (gates[t] > 0)
        change = to_products[t] @ weight
    return to_projected, to_products if mode == "GRU" else None, change, None if cell is None else carried
