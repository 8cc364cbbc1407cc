"""Linear algebra of arrays."""


class _LinAlgError(RuntimeError):
    """The error for a factorization or solution that does not exist."""


LinAlgError = _LinAlgError  # the underlined name is the one that PyTorch's tracebacks show
