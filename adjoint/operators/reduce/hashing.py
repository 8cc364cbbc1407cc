"""Hashes of the elements of tensors."""

from __future__ import annotations

from ...dispatch.annotations import Array, Bool, Int
from ...dispatch.decorators import operator
from ...kernels.reduce import reduction as kernels


def _only_xor(self, dim=(), keepdim=False, mode=0):
    if mode != 0:
        raise RuntimeError(f"hash_tensor: Unknown mode {mode}; only mode=0 (reduction via xor) is supported")


@operator(
    kernel=kernels.hash_tensor, check=_only_xor, same_out="Expected result to be of dtype uint64, but got {given}"
)
class hash_tensor:
    """The bitwise exclusive or of all elements, or of the elements along `dim`, as float64 or int64.

    The result is uint64.

    >>> import adjoint as torch
    >>> torch.hash_tensor(torch.tensor([1, 2, 4]))
    tensor(7, dtype=torch.uint64)
    """

    def forward(self: Array, dim=(), *, keepdim: Bool = False, mode: Int = 0): ...
