"""The errors of `torch.distributed`."""


class DistError(RuntimeError):
    """The base class of errors in the communication between processes."""


class DistBackendError(DistError):
    """The error for a failed collective: it timed out, or ranks disagree."""


class DistNetworkError(DistError):
    """The error for processes that could not connect to one another."""


class DistStoreError(DistError):
    """The error for a failed store."""


class QueueEmptyError(DistError):
    """The error for an empty queue of a store."""
