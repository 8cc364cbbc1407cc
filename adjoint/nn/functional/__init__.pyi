"""Types of functions of tensors. Written by scripts/write_type_stubs.py; do not edit."""

from builtins import bool as _bool, complex as _complex, float as _float, int as _int
from collections.abc import Sequence
from typing import TypeAlias
from adjoint.tensor import Tensor

_Number: TypeAlias = _bool | _int | _float | _complex
_Dims: TypeAlias = _int | Sequence[_int]

from adjoint.nn.functional.activation import celu as celu, elu as elu, glu as glu, gumbel_softmax as gumbel_softmax, hardsigmoid as hardsigmoid, hardswish as hardswish, hardtanh as hardtanh, leaky_relu as leaky_relu, log_softmax as log_softmax, mish as mish, relu as relu, relu6 as relu6, rrelu as rrelu, selu as selu, sigmoid as sigmoid, silu as silu, softmax as softmax, softmin as softmin, softsign as softsign, tanh as tanh, tanhshrink as tanhshrink, threshold as threshold
from adjoint.nn.functional.attention import _canonical_mask as _canonical_mask, _none_or_dtype as _none_or_dtype, multi_head_attention_forward as multi_head_attention_forward, scaled_dot_product_attention as scaled_dot_product_attention
from adjoint.nn.functional.declared import operators as operators
from adjoint.nn.functional.dropout import alpha_dropout as alpha_dropout, dropout as dropout, dropout1d as dropout1d, dropout2d as dropout2d, dropout3d as dropout3d, feature_alpha_dropout as feature_alpha_dropout
from adjoint.nn.functional.embedding_bag import embedding_bag as embedding_bag
from adjoint.nn.functional.enumerated import conv_tbc as conv_tbc, native_channel_shuffle as native_channel_shuffle
from adjoint.nn.functional.grouped import ScalingType as ScalingType, SwizzleType as SwizzleType, grouped_mm as grouped_mm, scaled_grouped_mm as scaled_grouped_mm, scaled_mm as scaled_mm
from adjoint.nn.functional.interpolation import interpolate as interpolate, upsample as upsample, upsample_bilinear as upsample_bilinear, upsample_nearest as upsample_nearest
from adjoint.nn.functional.linear_loss import linear_cross_entropy as linear_cross_entropy
from adjoint.nn.functional.loss import binary_cross_entropy as binary_cross_entropy, binary_cross_entropy_with_logits as binary_cross_entropy_with_logits, cosine_embedding_loss as cosine_embedding_loss, cross_entropy as cross_entropy, ctc_loss as ctc_loss, gaussian_nll_loss as gaussian_nll_loss, hinge_embedding_loss as hinge_embedding_loss, huber_loss as huber_loss, kl_div as kl_div, l1_loss as l1_loss, margin_ranking_loss as margin_ranking_loss, mse_loss as mse_loss, multi_margin_loss as multi_margin_loss, multilabel_margin_loss as multilabel_margin_loss, multilabel_soft_margin_loss as multilabel_soft_margin_loss, nll_loss as nll_loss, poisson_nll_loss as poisson_nll_loss, smooth_l1_loss as smooth_l1_loss, soft_margin_loss as soft_margin_loss, triplet_margin_loss as triplet_margin_loss, triplet_margin_with_distance_loss as triplet_margin_with_distance_loss
from adjoint.nn.functional.normalization import batch_norm as batch_norm, embedding as embedding, group_norm as group_norm, instance_norm as instance_norm, layer_norm as layer_norm, local_response_norm as local_response_norm, normalize as normalize, rms_norm as rms_norm
from adjoint.nn.functional.padding import pad as pad
from adjoint.nn.functional.pooling import adaptive_max_pool1d as adaptive_max_pool1d, adaptive_max_pool1d_with_indices as adaptive_max_pool1d_with_indices, adaptive_max_pool2d as adaptive_max_pool2d, adaptive_max_pool2d_with_indices as adaptive_max_pool2d_with_indices, adaptive_max_pool3d as adaptive_max_pool3d, adaptive_max_pool3d_with_indices as adaptive_max_pool3d_with_indices, fractional_max_pool2d as fractional_max_pool2d, fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices, fractional_max_pool3d as fractional_max_pool3d, fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices, lp_pool1d as lp_pool1d, lp_pool2d as lp_pool2d, lp_pool3d as lp_pool3d, max_pool1d as max_pool1d, max_pool1d_with_indices as max_pool1d_with_indices, max_pool2d as max_pool2d, max_pool2d_with_indices as max_pool2d_with_indices, max_pool3d as max_pool3d, max_pool3d_with_indices as max_pool3d_with_indices
def affine_grid(theta: Tensor, size: Sequence[_int], align_corners: _bool | None = None) -> Tensor: ...
from adjoint import adaptive_avg_pool1d as adaptive_avg_pool1d
def adaptive_avg_pool2d(input: Tensor, output_size: _int | Sequence[_int]) -> Tensor: ...
def adaptive_avg_pool3d(input: Tensor, output_size: _int | Sequence[_int]) -> Tensor: ...
from adjoint import avg_pool1d as avg_pool1d
def avg_pool2d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: _int | None = None, *, out: Tensor | None = None) -> Tensor: ...
def avg_pool3d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: _int | None = None, *, out: Tensor | None = None) -> Tensor: ...
from adjoint import bilinear as bilinear
from adjoint import celu_ as celu_
from adjoint import channel_shuffle as channel_shuffle
from adjoint import conv1d as conv1d
from adjoint import conv2d as conv2d
from adjoint import conv3d as conv3d
from adjoint import conv_transpose1d as conv_transpose1d
from adjoint import conv_transpose2d as conv_transpose2d
from adjoint import conv_transpose3d as conv_transpose3d
from adjoint import cosine_similarity as cosine_similarity
def elu_(input: Tensor, alpha: _float = 1.0) -> Tensor: ...
def gelu(input: Tensor, *, approximate: str = 'none', out: Tensor | None = None) -> Tensor: ...
from adjoint import hardshrink as hardshrink
def hardtanh_(input: Tensor, min_val: _float = -1.0, max_val: _float = 1.0) -> Tensor: ...
def leaky_relu_(input: Tensor, negative_slope: _float = 0.01) -> Tensor: ...
def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: _bool | None = None) -> Tensor: ...
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor: ...
def logsigmoid(input: Tensor) -> Tensor: ...
def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: _Dims, stride: _Dims | None = None, padding: _Dims = 0, output_size: Sequence[_int] | None = None) -> Tensor: ...
def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: _Dims, stride: _Dims | None = None, padding: _Dims = 0, output_size: Sequence[_int] | None = None) -> Tensor: ...
def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: _Dims, stride: _Dims | None = None, padding: _Dims = 0, output_size: Sequence[_int] | None = None) -> Tensor: ...
def one_hot(input: Tensor, num_classes: _int = -1) -> Tensor: ...
from adjoint import pairwise_distance as pairwise_distance
from adjoint import pdist as pdist
def fold(input: Tensor, output_size: _Dims, kernel_size: _Dims, dilation: _Dims = 1, padding: _Dims = 0, stride: _Dims = 1) -> Tensor: ...
from adjoint import pixel_shuffle as pixel_shuffle
from adjoint import pixel_unshuffle as pixel_unshuffle
from adjoint import prelu as prelu
from adjoint import relu_ as relu_
from adjoint import rrelu_ as rrelu_
from adjoint import selu_ as selu_
def softplus(input: Tensor, beta: _Number = 1, threshold: _Number = 20, *, out: Tensor | None = None) -> Tensor: ...
def softshrink(input: Tensor, lambd: _Number = 0.5, *, out: Tensor | None = None) -> Tensor: ...
from adjoint import threshold_ as threshold_
def unfold(input: Tensor, kernel_size: _Dims, dilation: _Dims = 1, padding: _Dims = 0, stride: _Dims = 1) -> Tensor: ...
GRID_SAMPLE_INTERPOLATION_MODES: dict[str, int]
GRID_SAMPLE_PADDING_MODES: dict[str, int]
