"""`torch._subclasses`: fake tensors; names, no logic."""

from .fake_tensor import FakeTensor, FakeTensorMode, is_fake

__all__ = ["FakeTensor", "FakeTensorMode", "is_fake"]
