"""Padding with a constant."""

from __future__ import annotations

from ..kernels import padding as kernels
from .build import operator, public


@operator(method=False, out=False, node="ConstantPadNdBackward0")
class constant_pad_nd:
    """`input` with `pad` (before, after) elements of `value` around the last dimensions; negative ones crop."""

    def forward(self: Array, pad, value=0):
        return kernels.constant_pad_nd(self, pad, value)

    def grad_self(grad, pad, xp):
        return xp.constant_pad_nd(grad, tuple(-width for width in pad), 0)


@public(namespace=None)
def pad(input, pad, mode="constant", value=None):
    """`constant_pad_nd`; other modes are composed in `nn.functional`."""
    return constant_pad_nd(input, tuple(pad), 0 if value is None else value)
