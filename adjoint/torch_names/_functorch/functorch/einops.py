"""`functorch.einops`: `rearrange`, which is also in `torch.func`."""

from adjoint.func import rearrange

__all__ = ["rearrange"]
