"""The errors of `torch.distributed`."""


class DistError(RuntimeError):
    """Any error of processes that work together."""

    __module__ = "torch.distributed"


class DistBackendError(DistError):
    """A collective failed: it timed out, or ranks disagree."""

    __module__ = "torch.distributed"


class DistNetworkError(DistError):
    """Processes could not reach one another."""

    __module__ = "torch.distributed"


class DistStoreError(DistError):
    """A store failed."""

    __module__ = "torch.distributed"


class QueueEmptyError(DistError):
    """A queue of a store is empty."""

    __module__ = "torch.distributed"
