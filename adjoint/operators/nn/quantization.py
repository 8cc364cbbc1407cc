"""Fake quantization: elements are rounded as in a quantized tensor. The gradient is that of the identity within the range."""

from __future__ import annotations

from ...codegen.kernel import Kernel
from ...dispatch.annotations import Array, Int
from ...dispatch.arguments import invalid_arguments, is_of_type
from ...dispatch.decorators import internal, public
from ...kernels.nn import quantization as kernels
from ...tensor import Tensor

_OPTIONS = {"outputs": ("output", "mask"), "out": False, "method": (), "tangent": "elementwise"}


@internal(Kernel(kernels.per_tensor, quiet=True), batch="leading", **_OPTIONS)
class fake_quantize_per_tensor_affine_cachemask:
    """The rounded elements, and the mask of the elements within the range."""

    nondifferentiable = ("mask",)

    def forward(self: Array, scale, zero_point, quant_min, quant_max): ...

    def grad_self(grads, mask):
        return grads[0] * mask


@internal(
    Kernel(kernels.per_tensor, quiet=True),
    node="FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0",
    **_OPTIONS,
)
class fake_quantize_per_tensor_affine_of_tensors:
    """The rounded elements, and the mask of the elements within the range."""

    nondifferentiable = ("mask",)
    constants = dict.fromkeys(("scale", "zero_point"), "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")

    def forward(self: Array, scale: Array, zero_point: Array, quant_min, quant_max): ...

    def grad_self(grads, mask):
        return grads[0] * mask


@internal(Kernel(kernels.per_channel, quiet=True), **_OPTIONS)
class fake_quantize_per_channel_affine_cachemask:
    """The rounded elements, and the mask of the elements within the range."""

    nondifferentiable = ("mask",)
    constants = dict.fromkeys(("scale", "zero_point"), "fake_quantize_per_channel_affine_cachemask")

    def forward(self: Array, scale: Array, zero_point: Array, axis: Int, quant_min: Int, quant_max: Int): ...

    def grad_self(grads, mask):
        return grads[0] * mask


@public(
    forms=(
        "Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max",
        "Tensor input, float scale, int zero_point, int quant_min, int quant_max",
    )
)
def fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max):
    """Round `input / scale + zero_point` to the integers from `quant_min` to `quant_max`, and convert back.

    The gradient of elements outside the range is 0. `scale` and `zero_point` are numbers, or tensors of one element.

    >>> import adjoint as torch
    >>> torch.fake_quantize_per_tensor_affine(torch.tensor([0.24, 0.26, 9.0]), 0.5, 0, -4, 4)
    tensor([0.0000, 0.5000, 2.0000])
    """
    by_tensors = isinstance(scale, Tensor) and isinstance(zero_point, Tensor)
    numbers = by_tensors or (is_of_type(scale, "Float") and is_of_type(zero_point, "Int"))
    if not (isinstance(input, Tensor) and numbers and is_of_type(quant_min, "Int") and is_of_type(quant_max, "Int")):
        raise invalid_arguments("fake_quantize_per_tensor_affine", input, scale, zero_point, quant_min, quant_max)
    quant_min, quant_max = int(quant_min), int(quant_max)
    if by_tensors:
        return fake_quantize_per_tensor_affine_of_tensors(input, scale, zero_point, quant_min, quant_max)[0]
    return fake_quantize_per_tensor_affine_cachemask(input, float(scale), int(zero_point), quant_min, quant_max)[0]


@public()
def fake_quantize_per_channel_affine(input, scale, zero_point, axis, quant_min, quant_max):
    """Round like `fake_quantize_per_tensor_affine`, with a scale and a zero point for each index of dimension `axis`.

    >>> import adjoint as torch
    >>> scale, zero_point = torch.tensor([0.5, 2.0]), torch.zeros(2, dtype=torch.int32)
    >>> torch.fake_quantize_per_channel_affine(torch.tensor([[0.3, 2.7], [0.3, 2.7]]), scale, zero_point, 1, -4, 4)
    tensor([[0.5000, 2.0000],
            [0.5000, 2.0000]])
    """
    return fake_quantize_per_channel_affine_cachemask(input, scale, zero_point, axis, quant_min, quant_max)[0]
