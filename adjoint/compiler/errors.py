"""The errors of `torch.compile`."""

from __future__ import annotations


class TorchDynamoException(RuntimeError):
    """The base class of errors that `torch.compile` itself raises."""


class InvalidBackend(TorchDynamoException):
    """The error for an unknown backend."""


class Unsupported(TorchDynamoException):
    """The error for a function that cannot be captured completely, with `fullgraph=True`."""
