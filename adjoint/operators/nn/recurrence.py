"""A layer of a recurrent network over a whole sequence, as one operator."""

from __future__ import annotations

from typing import Any

import numpy

from ...dispatch.annotations import Array
from ...dispatch.decorators import internal, public, tensors
from ...kernels.nn import recurrence as kernels
from ...tape import modes


def _steps_of(projected, hidden, cell, weight, bias, mode, backwards):
    """Compute the values of each step by differentiable operations: gates, the previous state, and both cells."""
    moments = projected.unbind(0)
    steps: dict[int, tuple[Any, ...]] = {}
    for t, _ in kernels.walk(len(moments), backwards):
        product = hidden @ weight.mT
        product = product if bias is None else product + bias
        before = hidden, cell
        if mode == "GRU":
            (own_reset, own_update, own_new), (reset, update, rest) = moments[t].chunk(3, -1), product.chunk(3, -1)
            reset, update = tensors.sigmoid(own_reset + reset), tensors.sigmoid(own_update + update)
            new = tensors.tanh(own_new + reset * rest)
            hidden = (hidden - new) * update + new
            steps[t] = (reset, update, new, rest), *before, None
        elif mode == "LSTM":
            enter, keep, new, leave = (moments[t] + product).chunk(4, -1)
            gates = tensors.sigmoid(enter), tensors.sigmoid(keep), tensors.tanh(new), tensors.sigmoid(leave)
            squashed = cell = gates[1] * cell + gates[0] * gates[2]
            squashed = tensors.tanh(cell)
            hidden = gates[3] * squashed
            steps[t] = gates, *before, squashed
        else:
            hidden = (tensors.tanh if mode == "RNN_TANH" else tensors.relu)(moments[t] + product)
            steps[t] = (hidden,), *before, None
    return steps


def _flat(steps, xp):
    """Return all rows of all steps as one matrix."""
    return xp.reshape(steps, (steps.shape[0] * steps.shape[1], steps.shape[2]))


@public(namespace=None, on_arrays=kernels.recurrent_layer_gradients)
def recurrent_layer_gradients(grads, projected, hidden, cell, weight, bias, mode, backwards, output, gates, more):
    """The gradients of `projected`, of the products of hidden states and weights (None if equal), of `hidden` and of `cell`.

    They are computed in differentiable operations, step by step.
    """
    steps = _steps_of(projected, hidden, cell, weight, bias, mode, backwards)
    grad, change, carried = grads[:3]
    change = hidden.new_zeros(hidden.shape) if change is None else change
    carried = hidden.new_zeros(hidden.shape) if carried is None else carried
    to_projected, to_products = {}, {}
    for t, _ in reversed(list(kernels.walk(projected.size(0), backwards))):
        gates, state, before, squashed = steps[t]
        change = change if grad is None else change + grad[t]
        direct = None
        if mode == "GRU":
            reset, update, new, rest = gates
            to_new = change * (1 - update) * (1 - new * new)
            to_reset = to_new * rest * reset * (1 - reset)
            to_update = change * (state - new) * update * (1 - update)
            own, product = [to_reset, to_update, to_new], [to_reset, to_update, to_new * reset]
            direct = change * update
        elif mode == "LSTM":
            enter, keep, new, leave = gates
            carried = carried + change * leave * (1 - squashed * squashed)
            own = product = [
                carried * new * enter * (1 - enter), carried * before * keep * (1 - keep), carried * enter * (1 - new * new),
                change * squashed * leave * (1 - leave),
            ]  # fmt: skip
            carried = carried * keep
        else:
            (result,) = gates
            own = product = [change * (1 - result * result if mode == "RNN_TANH" else (result > 0).to(result.dtype))]
        to_projected[t] = tensors.cat(own, -1)
        joined = to_products[t] = to_projected[t] if own is product else tensors.cat(product, -1)
        change = joined @ weight if direct is None else direct + joined @ weight
    of_steps = [tensors.stack([found[t] for t in range(len(found))]) for found in (to_projected, to_products)]
    return *of_steps, change, None if cell is None else carried


@internal(kernels.recurrent_layer, out=False, outputs=("output", "last_hidden", "last_cell", "gates", "more"))
class recurrent_layer:
    """The outputs of all steps, the last state, and the values that gradients need."""

    differentiable = ("projected", "hidden", "cell", "weight", "bias")
    nondifferentiable = ("gates", "more")

    def forward(
        projected: Array,
        hidden: Array,
        cell: Array | None,
        weight: Array,
        bias: Array | None,
        mode,
        backwards,
        keeps=True,
    ): ...

    def grad_inputs(grads, projected, hidden, cell, weight, bias, mode, backwards, output, gates, more, needs, xp):
        if all(grad is None for grad in grads[:3]):
            return None, None, None, None, None
        to_projected, to_products, to_hidden, to_cell = xp.recurrent_layer_gradients(
            grads, projected, hidden, cell, weight, bias, mode, backwards, output, gates, more
        )
        products = to_projected if to_products is None else to_products
        to_weight = to_bias = None
        if needs[3]:
            first = -1 if backwards else 0
            later, earlier = (slice(None, -1), slice(1, None)) if backwards else (slice(1, None), slice(None, -1))
            to_weight = xp.mm(_flat(products[later], xp).mT, _flat(output[earlier], xp))
            to_weight = to_weight + xp.mm(products[first].mT, hidden)
        if bias is not None and needs[4]:
            to_bias = xp.sum(_flat(products, xp), (0,), False)
        return to_projected, to_hidden, to_cell, to_weight, to_bias


@public(namespace=None)
def runs_as_one_layer(*given):
    """Return whether one operator can compute a recurrent layer of these tensors, which may be None."""
    arrays = [each._array for each in given if each is not None]
    first = arrays[0]
    return (
        not modes.STATE.interpreters
        and modes.STATE.autocast is None
        and first.dtype.char in "fd"
        and all(type(each) is numpy.ndarray and each.dtype is first.dtype and each.size for each in arrays)
    )
