"""`torch.backends.openmp`: a library that is not used; threads are counted by `torch.get_num_threads`."""

from .switches import never as is_available

__all__ = ["is_available"]
