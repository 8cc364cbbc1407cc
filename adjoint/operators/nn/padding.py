"""Padding with a constant, a mirror image, the outermost elements, or the opposite end."""

from __future__ import annotations

from typing import Any

from ...codegen.kernel import Kernel
from ...dispatch.annotations import Array
from ...dispatch.decorators import operator, public, tensors
from ...kernels.nn import padding as kernels
from ...kernels.runtime.layout import following_images
from ...tape.edges import has_no_history
from ...tape.versions import bump
from ...tensor import wrap


@operator(
    kernel=Kernel(following_images(kernels.constant_pad_nd), quiet=True),
    method=False,
    out=False,
    batch="leading",
    narrow="reads",
)
class constant_pad_nd:
    """`input` with elements of `value` around the last dimensions.

    `pad` lists the numbers of elements before and after each. Negative numbers crop.
    """

    def forward(self: Array, pad, value=0): ...

    def grad_self(grad, pad, xp):
        return xp.constant_pad_nd(grad, tuple(-width for width in pad), 0)


def _declare_edges(name, mode, dims, doc):
    """Declare an operator that pads `dims` dimensions with elements of the input, and the operator of its gradient."""
    forward_name, backward_name = f"{name}_pad{dims}d", f"{name}_pad{dims}d_backward"
    node = f"{name.capitalize()}Pad{dims}DBackward"
    kernel, backward = kernels.padding(mode, forward_name)

    class padding_operator:
        def forward(self: Array, padding): ...

        def grad_self(grad, self, padding, xp):
            return getattr(xp, backward_name)(grad, self, padding)

    class backward_operator:
        def forward(grad_output: Array, self: Array, padding): ...

        def grad_grad_output(grad, padding, xp):
            return getattr(xp, forward_name)(grad, padding)

        def grad_self(grad, xp):
            return xp.zeros_like(grad)

    padding_operator.__doc__ = doc
    backward_operator.__doc__ = f"The gradient of `{forward_name}`."
    options: dict[str, Any] = {"namespace": None, "method": False, "out": False, "batch": f"samples of {dims + 1}"}
    operator(kernel=Kernel(following_images(kernel), quiet=True), name=forward_name, node=f"{node}0", **options)(
        padding_operator
    )
    operator(kernel=backward, name=backward_name, node=f"{node}Backward0", **options)(backward_operator)


for _dims in (1, 2, 3):
    _declare_edges(
        "reflection",
        "reflect",
        _dims,
        "`input` continued by its mirror image, which does not repeat the outermost elements.",
    )
    _declare_edges("replication", "replicate", _dims, "`input` continued by its outermost elements.")


@public(namespace=None)
def pad(input, pad, mode="constant", value=None):
    """Pad the last `len(pad) / 2` dimensions, starting with the last one. Negative numbers crop."""
    pad = tuple(pad)
    if mode == "constant":
        return constant_pad_nd(input, pad, 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    dims = len(pad) // 2
    if dims > input._array.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {input.dim()}"
        )
    if not 1 <= dims <= 3 or input._array.ndim not in (dims + 1, dims + 2):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {input.dim()}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    if mode == "circular":
        kernels.require_fit(input._array.shape, pad, mode)
        return _circular(input, pad)
    name = {"reflect": "reflection", "replicate": "replication"}.get(mode)
    if name is None:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    return getattr(tensors, f"{name}_pad{dims}d")(input, pad)


def _circular(input, pad):
    """Pad by the opposite edges: copy by copy where a graph shows it, as in PyTorch, else by one kernel."""
    if has_no_history(input):
        result = wrap(kernels.padded(input._array, tuple(pad), "circular"))
        for _ in range(1 + sum(width > 0 for width in pad)):
            bump(result, "copy_")
        return result
    shape, dims = list(input._array.shape), len(pad) // 2
    middle = input
    for i in range(dims):
        dim = len(shape) - 1 - i
        before, after = pad[2 * i], pad[2 * i + 1]
        start, stop = max(-before, 0), shape[dim] - max(-after, 0)
        middle = middle.narrow(dim, start, stop - start)
        shape[dim] += before + after
    result = input.new_empty(shape)
    inside = result
    for i in range(dims):
        dim = len(shape) - 1 - i
        start, stop = max(pad[2 * i], 0), shape[dim] - max(pad[2 * i + 1], 0)
        inside = inside.narrow(dim, start, stop - start)
    inside.copy_(middle)
    for i in range(dims):
        dim = len(shape) - 1 - i
        before, after = max(pad[2 * i], 0), max(pad[2 * i + 1], 0)
        size = shape[dim]
        if before:
            result.narrow(dim, 0, before).copy_(result.narrow(dim, size - before - after, before))
        if after:
            result.narrow(dim, size - after, after).copy_(result.narrow(dim, before, after))
    return result
