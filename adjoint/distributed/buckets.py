"""`GradBucket`: the gradients that a communication hook of `DistributedDataParallel` receives."""

from __future__ import annotations

from enum import Enum
from typing import Any


class GradBucket:
    """Gradients that are reduced together. They are stored one after another in a one-dimensional buffer."""

    def __init__(self, index: int, buffer: Any, parameters: list[Any], is_last: bool) -> None:
        self._index, self._buffer, self._is_last = index, buffer, is_last
        self._parameters = parameters

    def index(self) -> int:
        """Return the number of the bucket, in the order in which buckets become full, starting at 0."""
        return self._index

    def buffer(self) -> Any:
        """Return all gradients of the bucket as a single one-dimensional tensor."""
        return self._buffer

    def set_buffer(self, buffer: Any) -> None:
        """Replace the buffer."""
        self._buffer = buffer

    def gradients(self) -> list[Any]:
        """Return the gradients as views of the buffer, in the shapes of their parameters."""
        if self._buffer.is_sparse:
            return [self._buffer]
        parts = self._buffer.split([parameter.numel() for parameter in self._parameters])
        return [part.view(parameter.shape) for part, parameter in zip(parts, self._parameters, strict=True)]

    def parameters(self) -> list[Any]:
        """Return the parameters to which the gradients belong."""
        return self._parameters

    def is_last(self) -> bool:
        """Return whether this is the last bucket to become full. It contains the layers that forward computes first."""
        return self._is_last


class BuiltinCommHookType(Enum):
    """The communication hooks that are selected by name."""

    ALLREDUCE = 0
    FP16_COMPRESS = 1
