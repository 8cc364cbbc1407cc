"""Sequences of different lengths, padded to one length or packed without padding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import adjoint as torch
from adjoint import Tensor

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip


class PackedSequence_(NamedTuple):
    """The parts of a `PackedSequence`."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def _converted(dtype: str) -> Callable[[PackedSequence], PackedSequence]:
    """Return a method of packed sequences that converts them to a dtype."""

    def convert(self: PackedSequence) -> PackedSequence:
        return self.to(getattr(torch, dtype))

    convert.__doc__ = f"Convert to {dtype}."
    return convert


class PackedSequence(PackedSequence_):
    """Sequences in packed form, the longest first.

    The data contains all first elements, then all second elements, and so on.

    `batch_sizes[t]` is the number of sequences with a step t. `sorted_indices` are the original positions of the
    sequences, and `unsorted_indices` are the inverse permutation. `pack_sequence` and `pack_padded_sequence` create
    packed sequences.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        """Create from the parts; `unsorted_indices` are computed from `sorted_indices`."""
        if batch_sizes is None:  # (data, batch_sizes) as one argument
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Convert the data by `data.to(...)`."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else type(self)(data, *self[1:])

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return the sequences, which are already on the CPU."""
        return self.to(*args, device="cpu", **kwargs)

    double, float, half = _converted("float64"), _converted("float32"), _converted("float16")
    long, int, short = _converted("int64"), _converted("int32"), _converted("int16")
    char, byte = _converted("int8"), _converted("uint8")

    def pin_memory(self) -> PackedSequence:
        """Return the same sequences with the data in pinned memory."""
        return PackedSequence(self.data.pin_memory(), *self[1:])

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return bool(self.data.is_pinned())

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a GPU."""
        return bool(self.data.is_cuda)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the inverse permutation."""
    if permutation is None:
        return None
    result = torch.empty_like(permutation)
    result[permutation] = torch.arange(permutation.numel())
    return result


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Pad sequences `(length, *)` to one tensor `(longest, batch, *)` or `(batch, longest, *)` with the first one's dtype.

    >>> from adjoint.nn.utils.rnn import pad_sequence
    >>> pad_sequence([torch.tensor([1, 2]), torch.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    parts = list(sequences)
    if not parts:
        raise RuntimeError("received an empty list of sequences")
    for number, part in enumerate(parts):
        if not isinstance(part, Tensor):
            raise TypeError(f"expected Tensor as element {number} in argument 0, but got {type(part).__name__}")
    lengths = [part.size(0) for part in parts]
    longest, dtype = max(lengths), parts[0].dtype
    padding = parts[0].new_full((longest, *parts[0].shape[1:]), padding_value)
    padded = []
    for part, length in zip(parts, lengths, strict=True):
        missing = [padding[length:]] if length < longest else []
        part = part if part.dtype is dtype else part.to(dtype)
        padded += [part, *missing] if padding_side == "right" else [*missing, part]
    result = torch.cat(padded).reshape((len(parts), longest, *parts[0].shape[1:]))
    return result if batch_first else result.transpose(0, 1).contiguous()


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Return the original sequences of `pad_sequence`, given their lengths."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [part[: int(length)] for part, length in zip(padded_sequences, lengths, strict=True)]


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack a batch `(longest, batch, *)` (or `(batch, longest, *)`) of padded sequences.

    Raises:
        RuntimeError: if lengths are not positive, or if `enforce_sorted` is True and lengths are not in descending
            order.
    """
    counts = torch.as_tensor(lengths, dtype=torch.int64)
    order = None
    if not enforce_sorted:
        counts, order = torch.sort(counts, descending=True)
        input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    if counts.dim() != 1:
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{counts.dim()}D {counts.device.type} Long tensor"
        )
    values = counts.tolist()
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if len(values) != input.size(1):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(values)} (batch_size={input.size(1)})"
        )
    if min(values) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if values != sorted(values, reverse=True):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not "
            "need ONNX exportability."
        )
    sizes = [sum(value > step for value in values) for step in range(values[0])]
    data = torch.cat([input[step, :size] for step, size in enumerate(sizes)])
    return PackedSequence(data, torch.tensor(sizes), order, None)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Pad packed sequences. Return the sequences in the original order, and the lengths."""
    sizes = sequence.batch_sizes.tolist()
    steps = len(sizes)
    if total_length is not None and total_length < steps:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {steps}"
        )
    data = sequence.data
    rows = []
    for part in data.split(sizes):
        missing = data.new_full((sizes[0] - part.size(0), *data.shape[1:]), padding_value)
        rows.append(torch.cat((part, missing)))
    empty = data.new_full((sizes[0], *data.shape[1:]), padding_value)
    rows += [empty] * ((total_length or steps) - steps)
    padded = torch.stack(rows, 1 if batch_first else 0)
    lengths = torch.tensor([sum(size > place for size in sizes) for place in range(sizes[0])])
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices]
    return padded, lengths


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of different lengths."""
    lengths = torch.as_tensor([part.size(0) for part in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the original sequences of `pack_sequence`."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
