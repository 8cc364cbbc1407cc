"""`torch._dynamo._trace_wrapped_higher_order_op`: a context that libraries enter around `vmap`."""

from contextlib import nullcontext


class TransformGetItemToIndex(nullcontext[None]):
    """A context that changes nothing: indexing by tensors works inside `vmap` as it is."""

    def __init__(self) -> None:
        super().__init__()
