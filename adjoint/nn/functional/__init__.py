"""`torch.nn.functional`: the computations of layers as functions of tensors.

Most of these functions are operators. The functions written here compose operators. Like PyTorch, they call some
functions as `torch.nn.functional.name`, because a program may have replaced a function.
"""

import adjoint as torch

from .activation import (
    celu,
    elu,
    glu,
    gumbel_softmax,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    mish,
    relu,
    relu6,
    rrelu,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softsign,
    tanh,
    tanhshrink,
    threshold,
)
from .attention import _canonical_mask, _none_or_dtype, multi_head_attention_forward, scaled_dot_product_attention
from .declared import operators
from .dropout import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout
from .embedding_bag import embedding_bag
from .enumerated import conv_tbc, native_channel_shuffle
from .grouped import ScalingType, SwizzleType, grouped_mm, scaled_grouped_mm, scaled_mm
from .interpolation import interpolate, upsample, upsample_bilinear, upsample_nearest
from .linear_loss import linear_cross_entropy
from .loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cosine_embedding_loss,
    cross_entropy,
    ctc_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    huber_loss,
    kl_div,
    l1_loss,
    margin_ranking_loss,
    mse_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    nll_loss,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from .normalization import (
    batch_norm,
    embedding,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    normalize,
    rms_norm,
)
from .padding import pad
from .pooling import (
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
)

_OPERATORS = """
affine_grid adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d avg_pool1d avg_pool2d avg_pool3d bilinear
celu_ channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity elu_
gelu hardshrink hardtanh_ leaky_relu_ grid_sample linear logsigmoid max_unpool1d max_unpool2d max_unpool3d one_hot
pairwise_distance pdist fold pixel_shuffle pixel_unshuffle prelu relu_ rrelu_ selu_ softplus softshrink threshold_
unfold
""".split()
"""The functions that are operators."""

globals().update({_name: getattr(operators, _name) for _name in _OPERATORS})

GRID_SAMPLE_INTERPOLATION_MODES: dict[str, int] = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES: dict[str, int] = {"zeros": 0, "border": 1, "reflection": 2}

for _function in list(globals().values()):
    if type(_function) is type(relu) and _function.__globals__.get("__package__") == __package__:
        torch.operators.lazily_wrapped(_function)
