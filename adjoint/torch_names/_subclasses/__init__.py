"""`torch._subclasses`: fake tensors. This file contains names only."""

from .fake_tensor import FakeTensor, FakeTensorMode, is_fake

__all__ = ["FakeTensor", "FakeTensorMode", "is_fake"]
