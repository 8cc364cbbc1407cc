"""The errors of `torch.compile`."""

from __future__ import annotations


class TorchDynamoException(RuntimeError):
    """The base class of errors that `torch.compile` itself raises."""


class InvalidBackend(TorchDynamoException):
    """The error for an unknown backend."""


class Unsupported(TorchDynamoException):
    """The error for a function that cannot be captured completely, with `fullgraph=True`."""


class BackendCompilerFailed(TorchDynamoException):
    """The error for a backend that raises an error. `inner_exception`: that error."""

    def __init__(self, backend: str, inner_exception: Exception) -> None:
        super().__init__(f"backend={backend!r} raised:\n{type(inner_exception).__name__}: {inner_exception}")
        self.backend_name, self.inner_exception = backend, inner_exception


class RecompileError(TorchDynamoException):
    """The error for a second capture, if `torch._dynamo.config.error_on_recompile` is set."""


class UserError(Unsupported):
    """The error for a module that `torch.export` cannot export as it is."""
