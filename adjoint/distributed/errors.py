"""The errors of `torch.distributed`."""


class DistError(RuntimeError):
    """Any error of processes that work together."""


class DistBackendError(DistError):
    """A collective failed: it timed out, or ranks disagree."""


class DistNetworkError(DistError):
    """Processes could not connect to one another."""


class DistStoreError(DistError):
    """A store failed."""


class QueueEmptyError(DistError):
    """A queue of a store is empty."""
