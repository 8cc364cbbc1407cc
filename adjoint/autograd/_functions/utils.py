"""Functions that undo a change of shape in a derivative."""

from __future__ import annotations

from ...tensor import Tensor

__all__ = ["maybe_unexpand", "maybe_view"]


def maybe_view(tensor: Tensor, size: tuple[int, ...], check_same_size: bool = True) -> Tensor:
    """Reshape `tensor` to `size`; with `check_same_size`, a tensor of this size is returned itself.

    >>> import adjoint as torch
    >>> from adjoint.autograd._functions.utils import maybe_view
    >>> maybe_view(torch.ones(4), (2, 2)).shape
    torch.Size([2, 2])
    """
    if check_same_size and tensor.size() == size:
        return tensor
    return tensor.contiguous().view(size)


def maybe_unexpand(tensor: Tensor, old_size: tuple[int, ...], check_same_size: bool = True) -> Tensor:
    """Sum `tensor` over the dimensions that `old_size` was expanded in.

    >>> import adjoint as torch
    >>> from adjoint.autograd._functions.utils import maybe_unexpand
    >>> maybe_unexpand(torch.ones(2, 3), (1,))
    tensor([6.])
    """
    if check_same_size and tensor.size() == old_size:
        return tensor
    new = tensor.dim() - len(old_size)
    expanded = [
        dim for dim, (now, before) in enumerate(zip(tensor.size()[new:], old_size, strict=True)) if now != before
    ]
    for _ in range(new):
        tensor = tensor.sum(0, keepdim=False)
    for dim in expanded:
        tensor = tensor.sum(dim, keepdim=True)
    return tensor
