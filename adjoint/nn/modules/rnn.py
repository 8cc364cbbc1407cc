"""Recurrent networks, composed of operators: cells, and layers of cells over sequences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import adjoint as torch
from adjoint import Tensor

from ..._runtime.tracebacks import warn
from .. import init
from ..functional import recurrent
from ..functional.recurrent import Weights
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .lookup import unusual
from .module import Module

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


_DERIVED = ("_flat_weights_names", "_flat_weights")
"""Attributes of PyTorch's modules and pickles, in addition to the parameters and `_all_weights`.

They are derived from `_all_weights`.
"""


class RNNBase(Module):
    """The base of `RNN`, `LSTM` and `GRU`: the parameters of all layers and directions, and the loop over them.

    Args:
        mode: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU".
        input_size: the number of features of the input.
        hidden_size: the number of features of the hidden state.
        num_layers: the number of layers. Each layer takes the outputs of the previous layer.
        bias: whether the layers have biases.
        batch_first: whether input and output are `(N, L, features)` instead of `(L, N, features)`.
        dropout: the probability of dropping outputs, for all layers except the last.
        bidirectional: whether to run over the reversed sequence too, and to join the outputs.
        proj_size: the number of features to which the hidden state of an LSTM is projected (Sak et al., 2014).

    The input may be a `PackedSequence` of sequences of different lengths. The output is then also a `PackedSequence`,
    and the final states are the states after each sequence's last step.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_sizes(mode, input_size, hidden_size, num_layers, dropout, proj_size)
        for name, flag in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(flag, bool):
                raise TypeError(f"{name} should be of type bool, got: {type(flag).__name__}")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        output_size = proj_size if proj_size > 0 else hidden_size
        gates = _GATES[mode] * hidden_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            features = input_size if layer == 0 else output_size * self._directions
            shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, features), "weight_hh": (gates, output_size)}
            if bias:
                shapes.update(bias_ih=(gates,), bias_hh=(gates,))
            if proj_size > 0:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for suffix in self._suffixes(layer):
                for name, shape in shapes.items():
                    setattr(self, name + suffix, Parameter(torch.empty(shape, device=device, dtype=dtype)))
                self._all_weights.append([name + suffix for name in shapes])
        self.reset_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: self._directions]

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Do nothing, because this method concerns only GPUs."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Parameter]:
        return [weight for weights in self.all_weights for weight in weights]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), **{name: getattr(self, name) for name in _DERIVED}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: value for name, value in state.items() if name not in _DERIVED})

    def extra_repr(self) -> str:
        rest = unusual(self, proj_size=0, num_layers=1, bias=True, batch_first=False, dropout=0, bidirectional=False)
        return f"{self.input_size}, {self.hidden_size}{rest}"

    def _walk(
        self, input: Tensor, hx: Sequence[Tensor], batch_sizes: list[int] | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Run all layers over `input`, `(L, N, features)` or packed, from states `(layers, N, features)`."""
        weights = [self._weights(suffix) for layer in range(self.num_layers) for suffix in self._suffixes(layer)]
        dropout = self.dropout if self.training else 0.0
        return recurrent.run_layers(self.mode, input, hx, weights, dropout, self.bidirectional, batch_sizes)

    def _weights(self, suffix: str) -> Weights:
        biases = (getattr(self, "bias_ih" + suffix), getattr(self, "bias_hh" + suffix)) if self.bias else (None, None)
        projection = getattr(self, "weight_hr" + suffix) if self.proj_size > 0 else None
        return getattr(self, "weight_ih" + suffix), getattr(self, "weight_hh" + suffix), *biases, projection

    def _prepare(self, input: Tensor) -> tuple[Tensor, bool]:
        """Return the input as `(L, N, features)`, and whether it has a batch dimension."""
        if input.dim() not in (2, 3):
            tensor = "" if self.mode in ("LSTM", "GRU") else " tensor"
            raise ValueError(
                f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D{tensor} instead"
            )
        weight = self.weight_ih_l0
        if input.dtype != weight.dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )
        if input.dim() == 2:
            return input.unsqueeze(1), False
        return (input.transpose(0, 1) if self.batch_first else input), True

    def _states(self, given: list[Tensor] | None, like: Tensor, batch: int) -> list[Tensor]:
        """Return the initial states, (hidden, cell) or (hidden), with the shape `(layers, batch, features)`, or zeros."""
        widths = [self.proj_size or self.hidden_size, self.hidden_size][: 2 if self.mode == "LSTM" else 1]
        shapes = [(self.num_layers * self._directions, batch, width) for width in widths]
        if given is None:
            return [like.new_zeros(shape) for shape in shapes]
        for number, (state, shape) in enumerate(zip(given, shapes, strict=True)):
            name = f"hidden[{number}]" if self.mode == "LSTM" else "hidden"
            self.check_hidden_size(state, shape, f"Expected {name} size {{}}, got {{}}")
        return given

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Raise RuntimeError if the state `hx` does not have this size."""
        if tuple(hx.shape) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """Return the size of the initial hidden state for an input, or for packed sequences with these batch sizes."""
        batch = input.size(0 if self.batch_first else 1) if batch_sizes is None else int(batch_sizes[0])
        return self.num_layers * self._directions, batch, self.proj_size or self.hidden_size

    def _unpack(self, packed: PackedSequence) -> tuple[Tensor, list[int]]:
        """Return the data of packed sequences, and the number of sequences at each step."""
        data = packed.data
        if data.dim() != 2:
            raise RuntimeError(f"input must have 2 dimensions, got {data.dim()}")
        self._prepare(data)
        return data, packed.batch_sizes.tolist()

    def _with_packed(self, packed: PackedSequence, states: list[Tensor] | None) -> tuple[PackedSequence, list[Any]]:
        """Run the forward pass over packed sequences."""
        data, batch_sizes = self._unpack(packed)
        if states is not None and packed.sorted_indices is not None:
            states = [state.index_select(1, packed.sorted_indices) for state in states]
        output, final = self._walk(data, self._states(states, data, batch_sizes[0]), batch_sizes)
        if packed.unsorted_indices is not None:
            final = [part.index_select(1, packed.unsorted_indices) for part in final]
        return PackedSequence(output, *packed[1:]), final

    def _run(self, input: Any, states: list[Tensor] | None) -> tuple[Any, list[Tensor]]:
        """Run the forward pass from the initial states."""
        if isinstance(input, PackedSequence):
            return self._with_packed(input, states)
        input, batched = self._prepare(input)
        if states is not None:
            self._check_dims([state.dim() for state in states], batched)
            states = states if batched else [state.unsqueeze(1) for state in states]
        output, final = self._walk(input, self._states(states, input, input.size(1)))
        if not batched:
            return output.squeeze(1), [state.squeeze(1) for state in final]
        return output.transpose(0, 1) if self.batch_first else output, final

    def _check_dims(self, dims: list[int], batched: bool) -> None:
        expected = 3 if batched else 2
        if dims != [expected] * len(dims):
            is_lstm = self.mode == "LSTM"
            got = f"({dims[0]}-D, {dims[1]}-D) tensors" if is_lstm else f"{dims[0]}-D tensor"
            raise RuntimeError(
                f"For {'batched 3-D' if batched else 'unbatched 2-D'} input, hx {'and cx ' * is_lstm}should also be "
                f"{expected}-D but got {got}"
            )


def _check_sizes(mode: str, input_size: Any, hidden_size: Any, num_layers: int, dropout: Any, proj_size: int) -> None:
    if not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            f"greater than 1, but got dropout={dropout} and num_layers={num_layers}"
        )
    for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
        if not isinstance(size, int):
            raise TypeError(f"{name} should be of type int, got: {type(size).__name__}")
    for name, size in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if size <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")
    if mode not in _GATES:
        raise ValueError("Unrecognized RNN mode: " + mode)


def _refuse_projection(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


P = ParamSpec("P")


def _with_parameters_of(declared: Callable[P, None]) -> Callable[[Callable[..., None]], Callable[P, None]]:
    """Give type checkers the parameters of `declared` for a constructor that passes on all of its arguments."""
    return lambda constructor: constructor


def _layers(
    self: Any,
    input_size: int,
    hidden_size: int,
    num_layers: int = 1,
    bias: bool = True,
    batch_first: bool = False,
    dropout: float = 0.0,
    bidirectional: bool = False,
    proj_size: int = 0,
    device: Any = None,
    dtype: Any = None,
    *,
    nonlinearity: str = "tanh",
) -> None:
    """Declare the constructors of recurrent layers. Only `RNN` has `nonlinearity`, by name or in fourth place."""


class RNN(RNNBase):
    """An Elman network: `h' = tanh(W_ih x + b_ih + W_hh h + b_hh)` in each layer.

    For the arguments, see `RNNBase`. `nonlinearity` is "tanh" or "relu".

    The call `rnn(input, h_0)` returns the outputs of the last layer and the final hidden states.
    """

    @_with_parameters_of(_layers)
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        if len(args) > 3:
            nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + nonlinearity.upper(), *args, **kwargs)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        output, (hidden,) = self._run(input, None if hx is None else [hx])
        return output, hidden


class GRU(RNNBase):
    """A network of gated recurrent units (Cho et al., 2014). For the arguments, see `RNNBase`.

    The call `gru(input, h_0)` returns the outputs of the last layer and the final hidden states.
    """

    @_with_parameters_of(_layers)
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        output, (hidden,) = self._run(input, None if hx is None else [hx])
        return output, hidden


class LSTM(RNNBase):
    """A network of long short-term memory (Hochreiter and Schmidhuber, 1997). For the arguments, see `RNNBase`.

    The call `lstm(input, (h_0, c_0))` returns the outputs of the last layer and the final `(h_n, c_n)`.

    >>> import adjoint as torch
    >>> output, (h_n, c_n) = torch.nn.LSTM(2, 3, num_layers=2)(torch.zeros(5, 4, 2))
    >>> output.shape, h_n.shape
    (torch.Size([5, 4, 3]), torch.Size([2, 4, 3]))
    """

    @_with_parameters_of(_layers)
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def forward(self, input: Any, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Any, tuple[Tensor, Tensor]]:
        output, (h_n, c_n) = self._run(input, None if hx is None else list(hx))
        return output, (h_n, c_n)


class RNNCellBase(Module):
    """The base of cells: the parameters of one step."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(torch.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(torch.empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            value = Parameter(torch.empty(rows, device=device, dtype=dtype)) if bias else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _check(self, tensor: Tensor, what: str) -> None:
        if tensor.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected {what} to be 1D or 2D, got {tensor.dim()}D instead")

    def _check_sizes(self, input: Tensor, hiddens: tuple[Tensor, ...]) -> None:
        if input.size(1) != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)} expected {self.input_size}")
        for i, hidden in enumerate(hiddens):
            if hidden.size(0) != input.size(0):
                raise RuntimeError(
                    f"Input batch size {input.size(0)} doesn't match hidden{i} batch size {hidden.size(0)}"
                )
            if hidden.size(1) != self.hidden_size:
                raise RuntimeError(
                    f"hidden{i} has inconsistent hidden_size: got {hidden.size(1)}, expected {self.hidden_size}"
                )

    def _step(self, step: Callable[..., Any], input: Tensor, hx: Tensor | None) -> Tensor:
        """Run one step of a cell with one tensor as its state."""
        self._check(input, "input")
        if hx is not None:
            self._check(hx, "hidden")
        batched = input.dim() == 2
        rows = input if batched else input.unsqueeze(0)
        if hx is None:
            hidden = input.new_zeros(rows.size(0), self.hidden_size)
        else:
            hidden = hx if batched else hx.unsqueeze(0)
        self._check_sizes(rows, (hidden,))
        result = step(rows, hidden, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return result if batched else result.squeeze(0)


class RNNCell(RNNCellBase):
    """`h' = tanh(W_ih x + b_ih + W_hh h + b_hh)`, or the same with relu."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        step = {"tanh": recurrent.rnn_tanh_cell, "relu": recurrent.rnn_relu_cell}.get(self.nonlinearity)
        if step is None:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(step, input, hx)


class GRUCell(RNNCellBase):
    """A gated recurrent unit: r = σ(i_r + h_r), z = σ(i_z + h_z), n = tanh(i_n + r h_n), h' = (1 - z) n + z h."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(recurrent.gru_cell, input, hx)


class LSTMCell(RNNCellBase):
    """A cell of long short-term memory, whose state is `(h, c)`."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        self._check(input, "input")
        if hx is not None:
            for i, state in enumerate(hx):
                self._check(state, f"hx[{i}]")
        batched = input.dim() == 2
        rows = input if batched else input.unsqueeze(0)
        if hx is None:
            zeros = input.new_zeros(rows.size(0), self.hidden_size)
            hidden, cell = zeros, zeros
        else:
            hidden, cell = hx if batched else (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        self._check_sizes(rows, (hidden, cell))
        weights = self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        hidden, cell = recurrent.lstm_cell(rows, (hidden, cell), *weights)
        return (hidden, cell) if batched else (hidden.squeeze(0), cell.squeeze(0))
