"""Linear algebra of arrays."""


class _LinAlgError(RuntimeError):
    """The error for a factorization or solution that does not exist."""


LinAlgError = _LinAlgError  # PyTorch's tracebacks show the name with the underscore
