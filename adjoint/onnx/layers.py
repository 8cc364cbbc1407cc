"""Layers as ONNX nodes: products, convolutions, pooling, normalizations, activations, lookups."""

from __future__ import annotations

import math
from typing import Any

import numpy

import adjoint as torch

from .builder import Builder, Extent
from .capture import Call
from .rules import RULES, axes, number, operand, reduced, rule

# --- products -----------------------------------------------------------------------------------------------------


def _constant_before_transpose(builder: Builder, value: Any) -> Any:
    """Return the name of a constant if a value was created as its transpose. Otherwise return None."""
    name = builder.value(value)
    for node in reversed(builder.nodes):
        if name in node.output:
            is_transpose = node.op_type == "Transpose" and node.input[0] in builder.constants
            return node.input[0] if is_transpose else None
    return None


@rule("addmm")
def _addmm(builder: Builder, call: Call, self: Any, mat1: Any, mat2: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    weight = _constant_before_transpose(builder, mat2)
    if weight is None:
        return builder.op("Gemm", mat1, mat2, self, alpha=float(alpha), beta=float(beta))
    if not any(weight in node.input for node in builder.nodes if node.output[0] != builder.value(mat2)):
        builder.nodes[:] = [node for node in builder.nodes if node.output[0] != builder.value(mat2)]
        del builder.names[id(mat2)]
    return builder.op("Gemm", mat1, weight, self, alpha=float(alpha), beta=float(beta), transB=1)


@rule("mm bmm mv matmul dot")
def _matmul(builder: Builder, call: Call, self: Any, other: Any) -> Any:
    return builder.op("MatMul", self, other)


@rule("baddbmm")
def _baddbmm(builder: Builder, call: Call, self: Any, batch1: Any, batch2: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    product = builder.op("MatMul", batch1, batch2)
    scaled = product if alpha == 1 else builder.op("Mul", product, number(alpha, self.dtype))
    return builder.op("Add", self if beta == 1 else builder.op("Mul", self, number(beta, self.dtype)), scaled)


@rule("convolution")
def _convolution(
    builder: Builder, call: Call, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Any:  # fmt: skip
    shared: dict[str, Any] = {
        "strides": list(stride),
        "pads": [*padding, *padding],
        "dilations": list(dilation),
        "group": groups,
    }
    shared["kernel_shape"] = list(weight.shape[2:])
    if transposed:
        return builder.op("ConvTranspose", input, weight, bias, output_padding=list(output_padding), **shared)
    return builder.op("Conv", input, weight, bias, **shared)


# --- pooling ------------------------------------------------------------------------------------------------------


def _each(value: Any, count: int) -> list[int]:
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return values * count if len(values) == 1 else values


def _batched(builder: Builder, self: Any, count: int) -> tuple[Any, bool]:
    """Return the input with a batch dimension, and whether the dimension was added."""
    if self.ndim == count + 2:
        return self, False
    return builder.op("Unsqueeze", self, axes(builder, [0])), True


@rule("max_pool1d max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices")
def _max_pool(
    builder: Builder, call: Call, self: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    count = int(call.name[8])
    sizes, pads = _each(kernel_size, count), _each(padding, count)
    given, alone = _batched(builder, self, count)
    result = builder.op(
        "MaxPool", given, kernel_shape=sizes, strides=_each(stride, count) if stride else sizes, pads=[*pads, *pads],
        dilations=_each(dilation, count), ceil_mode=int(ceil_mode),
    )  # fmt: skip
    return builder.op("Squeeze", result, axes(builder, [0])) if alone else result


@rule("avg_pool1d avg_pool2d avg_pool3d")
def _avg_pool(
    builder: Builder, call: Call, self: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Any:  # fmt: skip
    if divisor_override is not None:
        raise RuntimeError("divisor_override of pooling has no form in ONNX")
    count = int(call.name[8])
    sizes, pads = _each(kernel_size, count), _each(padding, count)
    given, alone = _batched(builder, self, count)
    result = builder.op(
        "AveragePool", given, kernel_shape=sizes, strides=_each(stride, count) if stride else sizes, pads=[*pads, *pads],
        ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad),
    )  # fmt: skip
    return builder.op("Squeeze", result, axes(builder, [0])) if alone else result


def _adaptive(names: str, kind: str) -> None:
    @rule(names)
    def add(builder: Builder, call: Call, self: Any, output_size: Any) -> Any:
        count = len(output_size)
        if all(size == 1 for size in output_size):
            dims = list(range(self.ndim - count, self.ndim))
            return reduced(builder, "ReduceMean" if kind == "AveragePool" else "ReduceMax", self, dims, True)
        sizes = builder.shape(self)[-count:]
        if any(isinstance(size, Extent) for size in sizes):
            raise RuntimeError(f"{call.func} of a dynamic dimension has a form in ONNX for the output size 1 only")
        if any(size % wanted for size, wanted in zip(sizes, output_size, strict=True)):
            raise RuntimeError(
                f"{call.func} of sizes {sizes} to {list(output_size)}, which do not divide them, has no form in ONNX"
            )
        kernel = [size // wanted for size, wanted in zip(sizes, output_size, strict=True)]
        return builder.op(kind, self, kernel_shape=kernel, strides=kernel)


_adaptive(
    "adaptive_avg_pool1d _adaptive_avg_pool2d adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool3d",
    "AveragePool",
)
_adaptive("adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d", "MaxPool")


@rule("constant_pad_nd")
def _pad(builder: Builder, call: Call, self: Any, pad: Any, value: Any = 0) -> Any:
    return _padded(builder, self, pad, "constant", number(value, self.dtype))


def _padded(builder: Builder, self: Any, pad: Any, mode: str, value: Any = None) -> Any:
    starts, ends = [0] * self.ndim, [0] * self.ndim
    for place in range(len(pad) // 2):
        starts[-1 - place], ends[-1 - place] = pad[2 * place], pad[2 * place + 1]
    return builder.op("Pad", self, axes(builder, [*starts, *ends]), value, mode=mode)


@rule("reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d")
def _pad_by_edges(builder: Builder, call: Call, self: Any, padding: Any) -> Any:
    return _padded(builder, self, padding, "reflect" if call.name.startswith("reflection") else "edge")


# --- normalization ------------------------------------------------------------------------------------------------


@rule("native_batch_norm _native_batch_norm_legit cudnn_batch_norm")
def _batch_norm(
    builder: Builder,
    call: Call,
    input: Any,
    weight: Any,
    bias: Any,
    mean: Any,
    var: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    channels = int(builder.shape(input)[1]) if weight is None or bias is None else 1
    weight = numpy.ones(channels, input.dtype.numpy) if weight is None else weight
    bias = numpy.zeros(channels, input.dtype.numpy) if bias is None else bias
    if not training:
        return [builder.op("BatchNormalization", input, weight, bias, mean, var, epsilon=eps), None, None]
    dims = [dim for dim in range(input.ndim) if dim != 1]
    shape = [1, -1, *[1] * (input.ndim - 2)]
    normal = _normalized(builder, input, dims, eps, input.dtype)
    scaled = builder.op("Mul", normal, builder.op("Reshape", weight, axes(builder, shape)))
    return [builder.op("Add", scaled, builder.op("Reshape", bias, axes(builder, shape))), None, None]


def _normalized(builder: Builder, value: Any, dims: list[int], eps: float, dtype: Any) -> Any:
    centred = builder.op("Sub", value, reduced(builder, "ReduceMean", value, dims, True))
    variance = reduced(builder, "ReduceMean", builder.op("Mul", centred, centred), dims, True)
    return builder.op("Div", centred, builder.op("Sqrt", builder.op("Add", variance, number(eps, dtype))))


@rule("native_layer_norm")
def _layer_norm(
    builder: Builder, call: Call, input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float
) -> Any:
    scale = numpy.ones([int(size) for size in normalized_shape], input.dtype.numpy) if weight is None else weight
    if builder.opset >= 17:
        return [
            builder.op("LayerNormalization", input, scale, bias, axis=-len(normalized_shape), epsilon=eps),
            None,
            None,
        ]
    dims = list(range(input.ndim - len(normalized_shape), input.ndim))
    result = builder.op("Mul", _normalized(builder, input, dims, eps, input.dtype), scale)
    return [result if bias is None else builder.op("Add", result, bias), None, None]


@rule("native_group_norm")
def _group_norm(
    builder: Builder, call: Call, input: Any, weight: Any, bias: Any, N: Any, C: int, HxW: Any, group: int, eps: float
) -> Any:
    rows = builder.op("Reshape", input, axes(builder, [0, group, -1]))
    ones, zeros = numpy.ones(group, input.dtype.numpy), numpy.zeros(group, input.dtype.numpy)
    normal = builder.op("InstanceNormalization", rows, ones, zeros, epsilon=eps)
    result = builder.op("Reshape", normal, builder.op("Shape", input))
    shape = axes(builder, [int(C), *[1] * (input.ndim - 2)])
    for kind, parameter in (("Mul", weight), ("Add", bias)):
        if parameter is not None:
            result = builder.op(kind, result, builder.op("Reshape", parameter, shape))
    return [result, None, None]


@rule("_fused_rms_norm rms_norm")
def _rms_norm(
    builder: Builder, call: Call, input: Any, normalized_shape: Any, weight: Any = None, eps: Any = None
) -> Any:
    dims = list(range(input.ndim - len(normalized_shape), input.ndim))
    eps = torch.finfo(input.dtype).eps if eps is None else eps
    mean = reduced(builder, "ReduceMean", builder.op("Mul", input, input), dims, True)
    result = builder.op("Div", input, builder.op("Sqrt", builder.op("Add", mean, number(eps, input.dtype))))
    return [result if weight is None else builder.op("Mul", result, weight), None]


# --- activations --------------------------------------------------------------------------------------------------


@rule("_softmax _log_softmax _safe_softmax softmax log_softmax")
def _softmax(builder: Builder, call: Call, self: Any, dim: int, *others: Any, **more: Any) -> Any:
    return builder.op("LogSoftmax" if "log" in call.name else "Softmax", self, axis=dim)


@rule("gelu")
def _gelu(builder: Builder, call: Call, self: Any, approximate: str = "none") -> Any:
    half = builder.op("Mul", self, number(0.5, self.dtype))
    if approximate == "none":
        inner: Any = builder.op("Erf", builder.op("Mul", self, number(math.sqrt(0.5), self.dtype)))
    else:
        cube = builder.op("Mul", builder.op("Mul", self, self), builder.op("Mul", self, number(0.044715, self.dtype)))
        sum_ = builder.op("Add", self, cube)
        inner = builder.op("Tanh", builder.op("Mul", sum_, number(math.sqrt(2 / math.pi), self.dtype)))
    return builder.op("Mul", half, builder.op("Add", inner, number(1, self.dtype)))


@rule("silu")
def _silu(builder: Builder, call: Call, self: Any) -> Any:
    return builder.op("Mul", self, builder.op("Sigmoid", self))


@rule("softplus")
def _softplus(builder: Builder, call: Call, self: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    scaled = self if beta == 1 else builder.op("Mul", self, number(beta, self.dtype))
    result = builder.op("Softplus", scaled)
    return result if beta == 1 else builder.op("Div", result, number(beta, self.dtype))


@rule("log_sigmoid_forward log_sigmoid")
def _log_sigmoid(builder: Builder, call: Call, self: Any) -> Any:
    return [builder.op("Neg", builder.op("Softplus", builder.op("Neg", self))), None]


@rule("leaky_relu")
def _leaky_relu(builder: Builder, call: Call, self: Any, negative_slope: float = 0.01) -> Any:
    return builder.op("LeakyRelu", self, alpha=float(negative_slope))


@rule("elu")
def _elu(builder: Builder, call: Call, self: Any, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    if scale == input_scale == 1:
        return builder.op("Elu", self, alpha=float(alpha))
    inner = builder.op("Mul", self, number(input_scale, self.dtype))
    below = builder.op(
        "Mul", builder.op("Sub", builder.op("Exp", inner), number(1, self.dtype)), number(alpha, self.dtype)
    )
    chosen = builder.op("Where", builder.op("Greater", self, number(0, self.dtype)), self, below)
    return builder.op("Mul", chosen, number(scale, self.dtype))


@rule("celu")
def _celu(builder: Builder, call: Call, self: Any, alpha: Any = 1.0) -> Any:
    return builder.op("Celu", self, alpha=float(alpha))


@rule("_prelu_kernel prelu")
def _prelu(builder: Builder, call: Call, self: Any, weight: Any) -> Any:
    return builder.op("PRelu", self, weight)


@rule("hardtanh")
def _hardtanh(builder: Builder, call: Call, self: Any, min_val: Any = -1, max_val: Any = 1) -> Any:
    return RULES["clamp"](builder, call, self, min_val, max_val)


@rule("relu6")
def _relu6(builder: Builder, call: Call, self: Any) -> Any:
    return RULES["clamp"](builder, call, self, 0, 6)


@rule("hardsigmoid")
def _hardsigmoid(builder: Builder, call: Call, self: Any) -> Any:
    return builder.op("HardSigmoid", self, alpha=1 / 6, beta=0.5)


@rule("mish")
def _mish(builder: Builder, call: Call, self: Any) -> Any:
    return builder.op("Mul", self, builder.op("Tanh", builder.op("Softplus", self)))


@rule("hardshrink")
def _hardshrink(builder: Builder, call: Call, self: Any, lambd: Any = 0.5) -> Any:
    far = builder.op("Greater", builder.op("Abs", self), number(lambd, self.dtype))
    return builder.op("Where", far, self, number(0, self.dtype))


@rule("softshrink")
def _softshrink(builder: Builder, call: Call, self: Any, lambd: Any = 0.5) -> Any:
    return builder.op("Shrink", self, lambd=float(lambd), bias=float(lambd))


@rule("pixel_shuffle")
def _pixel_shuffle(builder: Builder, call: Call, self: Any, upscale_factor: int) -> Any:
    return builder.op("DepthToSpace", self, blocksize=upscale_factor, mode="CRD")


@rule("pixel_unshuffle")
def _pixel_unshuffle(builder: Builder, call: Call, self: Any, downscale_factor: int) -> Any:
    *lead, channels, height, width = builder.shape(self)
    size = downscale_factor
    parts = builder.op("Reshape", self, axes(builder, [-1, channels, height // size, size, width // size, size]))
    moved = builder.op("Transpose", parts, perm=[0, 1, 3, 5, 2, 4])
    return builder.op(
        "Reshape", moved, builder.integers([*lead, channels * size * size, height // size, width // size])
    )


@rule("threshold")
def _threshold(builder: Builder, call: Call, self: Any, threshold: Any, value: Any) -> Any:
    above = builder.op("Greater", self, number(threshold, self.dtype))
    return builder.op("Where", above, self, number(value, self.dtype))


@rule("glu")
def _glu(builder: Builder, call: Call, self: Any, dim: int = -1) -> Any:
    half = call.outputs[0].shape[dim]
    one, other = builder.op("Split", self, axes(builder, [half, half]), outputs=2, axis=dim)
    return builder.op("Mul", one, builder.op("Sigmoid", other))


# --- lookups ------------------------------------------------------------------------------------------------------


@rule("embedding")
def _embedding(builder: Builder, call: Call, weight: Any, indices: Any, *others: Any) -> Any:
    return builder.op("Gather", weight, indices)


@rule("index_select")
def _index_select(builder: Builder, call: Call, self: Any, dim: int, index: Any) -> Any:
    return builder.op("Gather", self, index, axis=dim)


@rule("gather")
def _gather(builder: Builder, call: Call, self: Any, dim: int, index: Any, sparse_grad: bool = False) -> Any:
    return builder.op("GatherElements", self, index, axis=dim)


@rule("index")
def _index(builder: Builder, call: Call, self: Any, indices: Any) -> Any:
    given = [(dim, each) for dim, each in enumerate(indices) if each is not None]
    if any(each.dtype == torch.bool for _, each in given):
        raise RuntimeError(
            "the shape of what a mask selects depends on elements, which a graph of ONNX cannot say here"
        )
    if len(given) == 1:
        return builder.op("Gather", self, given[0][1], axis=given[0][0])
    dims = [dim for dim, _ in given]
    if dims != list(range(len(dims))):
        raise RuntimeError("indices for several dimensions have a form in ONNX for the leading dimensions only")
    shape = torch.broadcast_shapes(*(each.shape for _, each in given))
    columns = [
        builder.op(
            "Unsqueeze",
            builder.op("Expand", operand(builder, each, torch.int64), axes(builder, shape)),
            axes(builder, [-1]),
        )
        for _, each in given
    ]
    return builder.op("GatherND", self, builder.op("Concat", *columns, axis=-1))


_MODES = {"nearest": "nearest", "bilinear": "linear", "trilinear": "linear", "linear": "linear", "bicubic": "cubic"}


@rule("upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d "
      "upsample_bicubic2d")  # fmt: skip
def _upsample(builder: Builder, call: Call, self: Any, output_size: Any, *others: Any, **scales: Any) -> Any:
    kind = call.name.removeprefix("upsample_")[:-2]
    aligned = kind != "nearest" and bool(others and others[0])
    place = "asymmetric" if kind == "nearest" else "align_corners" if aligned else "half_pixel"
    batch = builder.op("Slice", builder.op("Shape", self), axes(builder, [0]), axes(builder, [2]))
    sizes = builder.op("Concat", batch, builder.integers(output_size), axis=0)
    more: dict[str, Any] = {"nearest_mode": "floor"} if kind == "nearest" else {}
    if kind == "bicubic":
        more["cubic_coeff_a"] = -0.75
    return builder.op(
        "Resize", self, None, None, sizes, mode=_MODES[kind], coordinate_transformation_mode=place, **more
    )
