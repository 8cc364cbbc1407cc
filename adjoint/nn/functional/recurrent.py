"""Recurrent networks as functions: cells, and layers of cells over sequences.

`torch.lstm` and similar functions accept a tensor `(L, N, features)`, or packed sequences as data and batch sizes. In
packed sequences, consecutive steps with the same sequences form one run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import adjoint as torch
from adjoint import Tensor

from .activation import relu
from .declared import operators
from .dropout import dropout as drop

__all__ = ["gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell"]

State = Any
"""A hidden state; for an LSTM, the hidden state and the cell."""

Weights = tuple[Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None]
"""The weights of one layer in one direction: input weight, hidden weight, their biases, and the projection of an LSTM."""


# One step. `projected` is the projected input with its bias; it is computed for a whole sequence at once.


def _tanh_step(projected: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return torch.tanh(projected + operators.linear(hidden, weight, bias))


def _relu_step(projected: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return relu(projected + operators.linear(hidden, weight, bias))


def _gru_step(projected: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """R = σ(i_r + h_r), z = σ(i_z + h_z), n = tanh(i_n + r h_n), h' = n + z (h - n) (Cho et al., 2014)."""
    input_reset, input_update, input_new = projected.chunk(3, -1)
    hidden_reset, hidden_update, hidden_new = operators.linear(hidden, weight, bias).chunk(3, -1)
    reset = torch.sigmoid(input_reset + hidden_reset)
    update = torch.sigmoid(input_update + hidden_update)
    new = torch.tanh(input_new + hidden_new * reset)
    return (hidden - new) * update + new


def _lstm_step(
    projected: Tensor,
    state: tuple[Tensor, Tensor] | Sequence[Tensor],
    weight: Tensor,
    bias: Tensor | None,
    projection: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """C' = σ(f) c + σ(i) tanh(g), h' = σ(o) tanh(c') (Hochreiter and Schmidhuber, 1997; Gers et al., 2000)."""
    hidden, cell = state
    input_gate, forget_gate, new, output_gate = (projected + operators.linear(hidden, weight, bias)).chunk(4, -1)
    cell = torch.sigmoid(forget_gate) * cell + torch.sigmoid(input_gate) * torch.tanh(new)
    hidden = torch.sigmoid(output_gate) * torch.tanh(cell)
    return (hidden if projection is None else operators.linear(hidden, projection)), cell


_STEPS: dict[str, Callable[..., Any]] = {
    "RNN_TANH": _tanh_step,
    "RNN_RELU": _relu_step,
    "LSTM": _lstm_step,
    "GRU": _gru_step,
}


def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """A step of a recurrent network with tanh, for an input `(N, features)` and a state `(N, hidden)`."""
    return _tanh_step(operators.linear(input, w_ih, b_ih), hx, w_hh, b_hh)


def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """A step of a recurrent network with ReLU, for an input `(N, features)` and a state `(N, hidden)`."""
    return _relu_step(operators.linear(input, w_ih, b_ih), hx, w_hh, b_hh)


def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """A step of a gated recurrent unit (Cho et al., 2014), for an input `(N, features)` and a state `(N, hidden)`."""
    return _gru_step(operators.linear(input, w_ih, b_ih), hx, w_hh, b_hh)


def lstm_cell(
    input: Tensor,
    hx: tuple[Tensor, Tensor] | list[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """A step of long short-term memory (Hochreiter and Schmidhuber, 1997), for an input `(N, features)` and two states."""
    return _lstm_step(operators.linear(input, w_ih, b_ih), hx, w_hh, b_hh)


# Layers


def run_layers(
    mode: str,
    input: Tensor,
    hx: Sequence[Tensor],
    weights: Sequence[Weights],
    dropout: float,
    bidirectional: bool,
    batch_sizes: list[int] | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """Run all layers over a sequence. Return the outputs of the last layer, and the final states in the form of `hx`.

    Args:
        mode: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU".
        input: `(L, N, features)`, or the data of packed sequences.
        hx: the initial hidden states, `(layers and directions, N, hidden)`, and for an LSTM also the initial cells.
        weights: the weights of each layer and direction.
        dropout: the probability of dropping outputs, for all layers except the last.
        bidirectional: whether each layer has a second direction, over the reversed sequence.
        batch_sizes: for packed sequences, the number of sequences at each step.
    """
    if input.size(0) == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    directions = 2 if bidirectional else 1
    parts = [part.unbind(0) for part in hx]
    states: list[State] = list(zip(*parts, strict=True)) if len(parts) > 1 else list(parts[0])
    final = []
    for first in range(0, len(weights), directions):
        outputs = []
        for i in range(first, first + directions):
            run = partial(_run_layer, mode, weights=weights[i], backwards=i > first)
            if batch_sizes is None:
                output, state = run(input, states[i])
            else:
                output, state = run_packed(run, input, batch_sizes, states[i], i > first)
            outputs.append(output)
            final.append(state)
        input = torch.cat(outputs, -1) if bidirectional else outputs[0]
        if dropout and first + directions < len(weights):
            input = drop(input, dropout)
    if input.requires_grad and not bidirectional:
        input = input.clone()  # the last layer saves its output, and users change theirs in place
    return input, [torch.stack(part) for part in (zip(*final, strict=True) if len(parts) > 1 else [final])]


def _run_layer(mode: str, input: Tensor, state: State, weights: Weights, backwards: bool) -> tuple[Tensor, State]:
    """Run one layer in one direction over the sequence."""
    weight, weight_hidden, bias, bias_hidden, projection = weights
    if projection is None:
        hidden, cell = state if mode == "LSTM" else (state, None)
        if operators.runs_as_one_layer(input, weight, bias, hidden, cell, weight_hidden, bias_hidden):
            return _run_as_one(mode, input, hidden, cell, weights, backwards)
    projected = operators.linear(input, weight, bias).unbind(0)
    step, projections = _STEPS[mode], () if projection is None else (projection,)
    outputs = []
    for moment in reversed(projected) if backwards else projected:
        state = step(moment, state, weight_hidden, bias_hidden, *projections)
        outputs.append(state[0] if mode == "LSTM" else state)
    return torch.stack(outputs[::-1] if backwards else outputs), state


def _run_as_one(
    mode: str, input: Tensor, hidden: Tensor, cell: Tensor | None, weights: Weights, backwards: bool
) -> tuple[Tensor, State]:
    """Run one layer in one direction over the sequence, as one operator."""
    weight, weight_hidden, bias, bias_hidden, _ = weights
    if bias is not None and bias_hidden is not None and mode != "GRU":  # in a GRU the reset gate multiplies one of them
        bias_hidden = bias + bias_hidden
        bias = None
    if input.is_contiguous():
        projected = operators.linear(input, weight, bias)
    else:
        projected = operators.linear(input.transpose(0, 1), weight, bias).transpose(0, 1)
    output, hidden, last_cell, *_ = operators.recurrent_layer(
        projected, hidden, cell, weight_hidden, bias_hidden, mode, backwards, torch.is_grad_enabled()
    )
    return output, hidden if cell is None else (hidden, last_cell)


def _grouped(params: Sequence[Tensor], has_biases: bool, layers: int, projected: bool) -> list[Weights]:
    """Split the list of all weights by layer and direction. Either each layer has a projection, or no layer has one."""
    plain = 4 if has_biases else 2
    each = len(params) // layers if layers > 0 else 0
    if each * layers != len(params) or each not in ((plain, plain + 1) if projected else (plain,)):
        raise RuntimeError(
            f"expected {layers * plain} weights{', or one more for each with projections' if projected else ''}: {plain} "
            f"for each of {layers} layers and directions, but got {len(params)}"
        )
    grouped = []
    for first in range(0, len(params), each):
        weight, weight_hidden, *rest = params[first : first + each]
        biases = rest[:2] if has_biases else (None, None)
        grouped.append((weight, weight_hidden, *biases, rest[-1] if each > plain else None))
    return grouped


def _run(
    mode: str,
    input: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool = False,
    batch_sizes: Tensor | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """Return the outputs of all layers and their final states, stacked."""
    if input.dim() != (3 if batch_sizes is None else 2):
        expected = "3 dimensions (L, N, features)" if batch_sizes is None else "2 dimensions, as packed data has"
        raise RuntimeError(f"input must have {expected}, got {input.dim()}")
    layers = num_layers * (2 if bidirectional else 1)
    weights = _grouped(params, has_biases, layers, mode == "LSTM")
    if batch_first and batch_sizes is None:
        input = input.transpose(0, 1)
    sizes = None if batch_sizes is None else batch_sizes.tolist()
    batch = sizes[0] if sizes else input.size(1)
    for part in hx:
        if part.dim() != 3 or part.size(0) != layers or part.size(1) != batch:
            raise RuntimeError(f"Expected hidden states of size ({layers}, {batch}, ...), got {list(part.shape)}")
    output, final = run_layers(mode, input, hx, weights, dropout if train else 0.0, bidirectional, sizes)
    return output.transpose(0, 1) if batch_first and sizes is None else output, final


_OPTIONS = "params has_biases num_layers dropout train bidirectional"
_FORMS = [f"data batch_sizes hx {_OPTIONS}".split(), f"input hx {_OPTIONS} batch_first".split()]
_TYPES = {
    "params": "tuple of Tensors", "has_biases": "bool", "num_layers": "int", "dropout": "float", "train": "bool",
    "bidirectional": "bool", "batch_first": "bool",
}  # fmt: skip


def _arguments(function: str, args: tuple[Any, ...], kwargs: dict[str, Any], state: str = "Tensor") -> dict[str, Any]:
    """Return the arguments by name. Data, batch sizes and states of packed sequences come before the weights."""
    packed, dense = _FORMS
    weights_fourth = len(args) > 3 and isinstance(args[3], list | tuple)
    names = packed if weights_fourth or "batch_sizes" in kwargs else dense
    call = dict(zip(names, args, strict=False)) | kwargs
    if len(args) + len(kwargs) != len(names) or call.keys() != set(names):
        got = [type(value).__name__ for value in args] + [
            f"{key}={type(value).__name__}" for key, value in kwargs.items()
        ]
        types = _TYPES | {"hx": state}
        forms = (
            "\n * (" + ", ".join(f"{types.get(name, 'Tensor')} {name}" for name in names) + ")" for names in _FORMS
        )
        raise TypeError(
            f"{function}() received an invalid combination of arguments - got ({', '.join(got)}), but expected one of:"
            f"{''.join(forms)}\n"
        )
    if "data" in call:
        call["input"] = call.pop("data")
    return call


def _with_one_state(function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tensor, Tensor]:
    call = _arguments(function, args, kwargs)
    output, (hidden,) = _run(function.upper(), **(call | {"hx": [call["hx"]]}))
    return output, hidden


def rnn_tanh(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Run layers of a recurrent network with tanh over a sequence.

    Return the outputs of the last layer, and the final states.

    The arguments are `(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)`. For
    packed sequences, the arguments are `(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train,
    bidirectional)`.

    Args:
        input: `(L, N, features)`, or `(N, L, features)` with `batch_first`.
        hx: the initial states, `(layers and directions, N, hidden)`.
        params: the weights of input and state, and with `has_biases` the biases, for each layer and direction.
        dropout: the probability of dropping outputs in training (`train`), for all layers except the last.

    >>> import adjoint as torch
    >>> weights = [torch.eye(2), torch.zeros(2, 2)]
    >>> torch.rnn_tanh(torch.ones(1, 1, 2), torch.zeros(1, 1, 2), weights, False, 1, 0.0, False, False, False)[0]
    tensor([[[0.7616, 0.7616]]])
    """
    return _with_one_state("rnn_tanh", args, kwargs)


def rnn_relu(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Run layers of a recurrent network with ReLU over a sequence. For the arguments, see `rnn_tanh`."""
    return _with_one_state("rnn_relu", args, kwargs)


def gru(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Run layers of gated recurrent units (Cho et al., 2014) over a sequence. For the arguments, see `rnn_tanh`."""
    return _with_one_state("gru", args, kwargs)


def lstm(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Run layers of long short-term memory (Hochreiter and Schmidhuber, 1997).

    Return outputs, final hidden states, final cells.

    `hx` is a pair of hidden states and cells. For the other arguments, see `rnn_tanh`. Each layer and direction may
    have one more weight, which projects the hidden state (Sak et al., 2014).
    """
    call = _arguments("lstm", args, kwargs, "tuple of Tensors")
    if len(call["hx"]) != 2:
        raise RuntimeError("lstm expects two hidden states")
    output, (hidden, cell) = _run("LSTM", **call)
    return output, hidden, cell


Run = Callable[[Tensor, Any], tuple[Tensor, Any]]
"""A function that runs a layer over `(L, N, features)` from a state: a tensor `(N, features)` or a pair of such tensors."""


def run_packed(run: Run, data: Tensor, batch_sizes: list[int], state: Any, backwards: bool) -> tuple[Tensor, Any]:
    """Run over packed `data` of shape `(steps of all sequences, features)`. Return packed outputs and final states.

    The sequences are sorted by length, so the first `batch_sizes[t]` sequences have a step t. In forward direction, the
    state of each sequence is stored when the sequence ends. In backward direction, each sequence starts at its last
    step with its own initial state.
    """
    stretches = [(size, len(list(steps))) for size, steps in groupby(batch_sizes)]
    parts = data.split([size * length for size, length in stretches])
    outputs: list[Tensor] = []
    ended: list[Any] = []
    running = _rows(state, 0, stretches[-1][0] if backwards else stretches[0][0])
    order = range(len(stretches))
    for number in reversed(order) if backwards else order:
        size, length = stretches[number]
        before = _size(running)
        if size < before:
            ended.append(_rows(running, size, before))
            running = _rows(running, 0, size)
        elif size > before:
            running = _joined([running, _rows(state, before, size)])
        output, running = run(parts[number].unflatten(0, (length, size)), running)
        outputs.append(output.flatten(0, 1))
    final = _joined([running, *reversed(ended)]) if ended else running
    return torch.cat(outputs[::-1] if backwards else outputs), final


def _size(state: Any) -> int:
    return int((state[0] if isinstance(state, tuple) else state).size(0))


def _rows(state: Any, start: int, stop: int) -> Any:
    if isinstance(state, tuple):
        return tuple(part[start:stop] for part in state)
    return state[start:stop]


def _joined(states: list[Any]) -> Any:
    if isinstance(states[0], tuple):
        return tuple(torch.cat(parts) for parts in zip(*states, strict=True))
    return torch.cat(states)
