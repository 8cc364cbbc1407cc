"""Names of `torch._subclasses` that libraries look at: there are no fake tensors, but tensors on the device `meta`."""

from .fake_tensor import FakeTensor, is_fake

__all__ = ["FakeTensor", "is_fake"]
