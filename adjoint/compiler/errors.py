"""The errors of `torch.compile`."""

from __future__ import annotations


class TorchDynamoException(RuntimeError):
    """What is raised by `torch.compile` itself."""


class InvalidBackend(TorchDynamoException):
    """A backend that is not known."""


class Unsupported(TorchDynamoException):
    """A function that cannot be captured whole, with `fullgraph=True`."""
