"""`GradBucket`: the gradients that a communication hook of `DistributedDataParallel` is given."""

from __future__ import annotations

from enum import Enum
from typing import Any


class GradBucket:
    """Gradients that are reduced together, one by one in a buffer of one dimension."""

    def __init__(self, index: int, buffer: Any, parameters: list[Any], is_last: bool) -> None:
        self._index, self._buffer, self._is_last = index, buffer, is_last
        self._parameters = parameters

    def index(self) -> int:
        """The number of the bucket, in the order in which buckets become full, starting at 0."""
        return self._index

    def buffer(self) -> Any:
        """All gradients of the bucket, as one one-dimensional tensor."""
        return self._buffer

    def set_buffer(self, buffer: Any) -> None:
        """Replace the buffer."""
        self._buffer = buffer

    def gradients(self) -> list[Any]:
        """The gradients, as views of the buffer in the shapes of their parameters."""
        if self._buffer.is_sparse:
            return [self._buffer]
        parts = self._buffer.split([parameter.numel() for parameter in self._parameters])
        return [part.view(parameter.shape) for part, parameter in zip(parts, self._parameters, strict=True)]

    def parameters(self) -> list[Any]:
        """The parameters that the gradients belong to."""
        return self._parameters

    def is_last(self) -> bool:
        """Whether it is the last bucket that becomes full: of the layers that the forward computes first."""
        return self._is_last


class BuiltinCommHookType(Enum):
    """The communication hooks that are known by a name."""

    ALLREDUCE = 0
    FP16_COMPRESS = 1
