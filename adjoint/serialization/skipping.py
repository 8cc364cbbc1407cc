"""Checkpoints without the elements of tensors: `skip_data`."""

import threading


class _Skipped(threading.local):
    data = False


SKIPPED = _Skipped()
"""Whether this thread leaves out elements when it saves and loads."""


class skip_data:
    """Within the context, `save` leaves the place of elements empty, and `load` makes tensors without reading their elements.

    Args:
        materialize_fake_tensors: accepted for compatibility.

    >>> import adjoint as torch, io
    >>> file = io.BytesIO()
    >>> with torch.serialization.skip_data():
    ...     torch.save(torch.ones(2), file)
    >>> torch.load(io.BytesIO(file.getvalue()))
    tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self.before = SKIPPED.data
        SKIPPED.data = True

    def __exit__(self, *exception: object) -> None:
        SKIPPED.data = self.before
