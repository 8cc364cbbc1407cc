"""Types of functions of tensors. Written by scripts/write_type_stubs.py; do not edit."""

from builtins import bool as _bool
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy

from adjoint.device import device as _device
from adjoint.device import layout as _layout
from adjoint.device import memory_format as _memory_format
from adjoint.dtypes import dtype as _dtype

_Number: TypeAlias = _bool | _int | _float | _complex
_Dims: TypeAlias = _int | Sequence[_int]

from adjoint.tensor import Tensor

from adjoint.nn.functional.activation import celu as celu
from adjoint.nn.functional.activation import elu as elu
from adjoint.nn.functional.activation import glu as glu
from adjoint.nn.functional.activation import gumbel_softmax as gumbel_softmax
from adjoint.nn.functional.activation import hardsigmoid as hardsigmoid
from adjoint.nn.functional.activation import hardswish as hardswish
from adjoint.nn.functional.activation import hardtanh as hardtanh
from adjoint.nn.functional.activation import leaky_relu as leaky_relu
from adjoint.nn.functional.activation import log_softmax as log_softmax
from adjoint.nn.functional.activation import mish as mish
from adjoint.nn.functional.activation import relu as relu
from adjoint.nn.functional.activation import relu6 as relu6
from adjoint.nn.functional.activation import rrelu as rrelu
from adjoint.nn.functional.activation import selu as selu
from adjoint.nn.functional.activation import sigmoid as sigmoid
from adjoint.nn.functional.activation import silu as silu
from adjoint.nn.functional.activation import softmax as softmax
from adjoint.nn.functional.activation import softmin as softmin
from adjoint.nn.functional.activation import softsign as softsign
from adjoint.nn.functional.activation import tanh as tanh
from adjoint.nn.functional.activation import tanhshrink as tanhshrink
from adjoint.nn.functional.activation import threshold as threshold
from adjoint.nn.functional.attention import _canonical_mask as _canonical_mask
from adjoint.nn.functional.attention import _none_or_dtype as _none_or_dtype
from adjoint.nn.functional.attention import multi_head_attention_forward as multi_head_attention_forward
from adjoint.nn.functional.attention import scaled_dot_product_attention as scaled_dot_product_attention
from adjoint.nn.functional.declared import operators as operators
from adjoint.nn.functional.dropout import alpha_dropout as alpha_dropout
from adjoint.nn.functional.dropout import dropout as dropout
from adjoint.nn.functional.dropout import dropout1d as dropout1d
from adjoint.nn.functional.dropout import dropout2d as dropout2d
from adjoint.nn.functional.dropout import dropout3d as dropout3d
from adjoint.nn.functional.dropout import feature_alpha_dropout as feature_alpha_dropout
from adjoint.nn.functional.embedding_bag import embedding_bag as embedding_bag
from adjoint.nn.functional.enumerated import conv_tbc as conv_tbc
from adjoint.nn.functional.enumerated import native_channel_shuffle as native_channel_shuffle
from adjoint.nn.functional.grouped import ScalingType as ScalingType
from adjoint.nn.functional.grouped import SwizzleType as SwizzleType
from adjoint.nn.functional.grouped import grouped_mm as grouped_mm
from adjoint.nn.functional.grouped import scaled_grouped_mm as scaled_grouped_mm
from adjoint.nn.functional.grouped import scaled_mm as scaled_mm
from adjoint.nn.functional.interpolation import interpolate as interpolate
from adjoint.nn.functional.interpolation import upsample as upsample
from adjoint.nn.functional.interpolation import upsample_bilinear as upsample_bilinear
from adjoint.nn.functional.interpolation import upsample_nearest as upsample_nearest
from adjoint.nn.functional.linear_loss import linear_cross_entropy as linear_cross_entropy
from adjoint.nn.functional.loss import binary_cross_entropy as binary_cross_entropy
from adjoint.nn.functional.loss import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from adjoint.nn.functional.loss import cosine_embedding_loss as cosine_embedding_loss
from adjoint.nn.functional.loss import cross_entropy as cross_entropy
from adjoint.nn.functional.loss import ctc_loss as ctc_loss
from adjoint.nn.functional.loss import gaussian_nll_loss as gaussian_nll_loss
from adjoint.nn.functional.loss import hinge_embedding_loss as hinge_embedding_loss
from adjoint.nn.functional.loss import huber_loss as huber_loss
from adjoint.nn.functional.loss import kl_div as kl_div
from adjoint.nn.functional.loss import l1_loss as l1_loss
from adjoint.nn.functional.loss import margin_ranking_loss as margin_ranking_loss
from adjoint.nn.functional.loss import mse_loss as mse_loss
from adjoint.nn.functional.loss import multi_margin_loss as multi_margin_loss
from adjoint.nn.functional.loss import multilabel_margin_loss as multilabel_margin_loss
from adjoint.nn.functional.loss import multilabel_soft_margin_loss as multilabel_soft_margin_loss
from adjoint.nn.functional.loss import nll_loss as nll_loss
from adjoint.nn.functional.loss import poisson_nll_loss as poisson_nll_loss
from adjoint.nn.functional.loss import smooth_l1_loss as smooth_l1_loss
from adjoint.nn.functional.loss import soft_margin_loss as soft_margin_loss
from adjoint.nn.functional.loss import triplet_margin_loss as triplet_margin_loss
from adjoint.nn.functional.loss import triplet_margin_with_distance_loss as triplet_margin_with_distance_loss
from adjoint.nn.functional.normalization import batch_norm as batch_norm
from adjoint.nn.functional.normalization import embedding as embedding
from adjoint.nn.functional.normalization import group_norm as group_norm
from adjoint.nn.functional.normalization import instance_norm as instance_norm
from adjoint.nn.functional.normalization import layer_norm as layer_norm
from adjoint.nn.functional.normalization import local_response_norm as local_response_norm
from adjoint.nn.functional.normalization import normalize as normalize
from adjoint.nn.functional.normalization import rms_norm as rms_norm
from adjoint.nn.functional.padding import pad as pad
from adjoint.nn.functional.pooling import adaptive_max_pool1d as adaptive_max_pool1d
from adjoint.nn.functional.pooling import adaptive_max_pool1d_with_indices as adaptive_max_pool1d_with_indices
from adjoint.nn.functional.pooling import adaptive_max_pool2d as adaptive_max_pool2d
from adjoint.nn.functional.pooling import adaptive_max_pool2d_with_indices as adaptive_max_pool2d_with_indices
from adjoint.nn.functional.pooling import adaptive_max_pool3d as adaptive_max_pool3d
from adjoint.nn.functional.pooling import adaptive_max_pool3d_with_indices as adaptive_max_pool3d_with_indices
from adjoint.nn.functional.pooling import fractional_max_pool2d as fractional_max_pool2d
from adjoint.nn.functional.pooling import fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices
from adjoint.nn.functional.pooling import fractional_max_pool3d as fractional_max_pool3d
from adjoint.nn.functional.pooling import fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices
from adjoint.nn.functional.pooling import lp_pool1d as lp_pool1d
from adjoint.nn.functional.pooling import lp_pool2d as lp_pool2d
from adjoint.nn.functional.pooling import lp_pool3d as lp_pool3d
from adjoint.nn.functional.pooling import max_pool1d as max_pool1d
from adjoint.nn.functional.pooling import max_pool1d_with_indices as max_pool1d_with_indices
from adjoint.nn.functional.pooling import max_pool2d as max_pool2d
from adjoint.nn.functional.pooling import max_pool2d_with_indices as max_pool2d_with_indices
from adjoint.nn.functional.pooling import max_pool3d as max_pool3d
from adjoint.nn.functional.pooling import max_pool3d_with_indices as max_pool3d_with_indices
def affine_grid(theta: Any, size: Any, align_corners: Any = None) -> Tensor: ...
from adjoint import adaptive_avg_pool1d as adaptive_avg_pool1d
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor: ...
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor: ...
from adjoint import avg_pool1d as avg_pool1d
def avg_pool2d(input: Tensor, kernel_size: Any = ..., stride: Any = None, padding: Any = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: Any = None, *, out: Tensor | None = None) -> Tensor: ...
def avg_pool3d(input: Tensor, kernel_size: Any = ..., stride: Any = None, padding: Any = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: Any = None, *, out: Tensor | None = None) -> Tensor: ...
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
def elu_(input: Tensor, alpha: _float = 1.0, scale: Any = 1, input_scale: Any = 1) -> Tensor: ...
def gelu(input: Tensor, *, approximate: str | None = 'none', out: Tensor | None = None) -> Tensor: ...
from adjoint import hardshrink as hardshrink
def hardtanh_(input: Tensor, min_val: Any = -1.0, max_val: Any = 1.0) -> Tensor: ...
def leaky_relu_(input: Tensor, negative_slope: _float = 0.01) -> Tensor: ...
def grid_sample(input: Tensor, grid: Any, mode: Any = 'bilinear', padding_mode: str | None = 'zeros', align_corners: Any = None) -> Tensor: ...
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor: ...
def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def max_unpool1d(input: Tensor, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None) -> Tensor: ...
def max_unpool2d(input: Tensor, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None) -> Tensor: ...
def max_unpool3d(input: Tensor, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None) -> Tensor: ...
def one_hot(input: Tensor, num_classes: _int = -1) -> Tensor: ...
from adjoint import pairwise_distance as pairwise_distance
from adjoint import pdist as pdist
def fold(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor: ...
from adjoint import pixel_shuffle as pixel_shuffle
from adjoint import pixel_unshuffle as pixel_unshuffle
from adjoint import prelu as prelu
from adjoint import relu_ as relu_
from adjoint import rrelu_ as rrelu_
from adjoint import selu_ as selu_
def softplus(input: Tensor, beta: _float = 1, threshold: _float = 20, *, out: Tensor | None = None) -> Tensor: ...
def softshrink(input: Tensor, lambd: _float = 0.5, *, out: Tensor | None = None) -> Tensor: ...
from adjoint import threshold_ as threshold_
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor: ...
