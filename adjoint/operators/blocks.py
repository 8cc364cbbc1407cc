"""Sliding blocks: `unfold` puts what each covers into a column, `fold` adds the columns up to an image."""

from __future__ import annotations

from ..kernels import images as kernels
from .build import operator, public, tensors


@operator(kernel=kernels.im2col, namespace=None, method=False, out=False, node="Im2ColBackward0", tangent="linear")
class im2col:
    """What the sliding blocks of images cover, as columns."""

    def forward(self: Array, kernel_size, dilation, padding, stride): ...

    def grad_self(grad, self_shape, kernel_size, dilation, padding, stride, xp):
        return xp.col2im(grad, tuple(self_shape[-2:]), kernel_size, dilation, padding, stride)


@operator(kernel=kernels.col2im, namespace=None, method=False, out=False, node="Col2ImBackward0", tangent="linear")
class col2im:
    """Columns added up to the images whose blocks they are."""

    def forward(self: Array, output_size, kernel_size, dilation, padding, stride): ...

    def grad_self(grad, kernel_size, dilation, padding, stride, xp):
        return xp.im2col(grad, kernel_size, dilation, padding, stride)


def _pair(name, value):
    """A number, or one for each of the two dimensions."""
    values = (value, value) if isinstance(value, int) else tuple(value)
    if len(values) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(values)}")
    return values


@public(namespace="functional")
def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """What each sliding block of `(N, C, H, W)` covers, as columns `(N, C * kh * kw, blocks)`.

    >>> import adjoint as torch
    >>> torch.nn.functional.unfold(torch.arange(6.0).reshape(1, 1, 2, 3), 2)
    tensor([[[0., 1.],
             [1., 2.],
             [3., 4.],
             [4., 5.]]])
    """
    return tensors.im2col(
        input, _pair("kernel_size", kernel_size), _pair("dilation", dilation), _pair("padding", padding),
        _pair("stride", stride),
    )  # fmt: skip


@public(namespace="functional")
def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The image `(N, C, *output_size)` whose elements are the sums of what columns `(N, C * kh * kw, blocks)` have for them.

    >>> import adjoint as torch
    >>> torch.nn.functional.fold(torch.ones(1, 4, 2), (2, 3), 2)
    tensor([[[[1., 2., 1.],
              [1., 2., 1.]]]])
    """
    return tensors.col2im(
        input, _pair("output_size", output_size), _pair("kernel_size", kernel_size), _pair("dilation", dilation),
        _pair("padding", padding), _pair("stride", stride),
    )  # fmt: skip
