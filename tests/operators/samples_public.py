"""Samples of the public functions that choose among operators or consist of operators, by their names in `adjoint`."""

import numpy

import adjoint as torch

from .sampling import (
    both,
    constant,
    definite,
    distinct,
    exactly,
    fraction,
    index,
    mask,
    matrix,
    only_real,
    permutation,
    positive,
    real,
    sample,
    unit,
)


def symmetric(matrix):
    return matrix + matrix.mH


def unsigned(result):
    """Replace all results by their absolute values, because the sign (or phase) of vectors is not determined."""
    return [part.abs() for part in result]


def _definite(matrix):
    return matrix @ matrix.mT if matrix.dim() == 2 else matrix


def first(result):
    """Return the values without the indices."""
    return result[0]


_M, _V, _P = real(2, 3), real(3), positive(2, 3)
_IMAGE, _IMAGES = real(2, 2, 5), real(1, 2, 4, 4)
_VOLUMES = real(1, 1, 3, 3, 3)
_PIVOTS = exactly(2, 3, 3, dtype=numpy.int32)

_TORCH = {
    # arithmetic
    **{name: [both(_M, _V), both(_M, 1.7)] for name in "div divide".split()},
    "clamp": [sample(_M, -0.5, 1.0), sample(_M, real(3, low=-2.0, high=-0.5), positive(2, 3))],
    "clip": [sample(_M, max=0.5)],
    "clamp_max": [sample(_M, 0.5), sample(_M, _V)],
    "clamp_min": [sample(_M, 0.5), sample(_M, _V)],
    "copysign": [sample(_M, _V), sample(_M, -1.0)],
    "float_power": [both(_P, 1.5), both(_P, _V), sample(2.5, _M)],
    "fmod": [sample(_M, _V), sample(_M, 0.7)],
    "remainder": [sample(_M, _V), sample(_M, 0.7)],
    "lerp": [both(_M, _M, 0.3), both(_M, _M, _V)],
    "pow": [both(_P, 2), both(_P, _V), both(1.7, _M)],
    "rsub": [both(_M, _V), both(_M, 1.7)],
    "square": [both(_M)],
    "positive": [both(_M)],
    "xlogy": [sample(_M, _P), sample(_M, 1.7), sample(1.7, _P)],
    "round": [sample(_M), sample(_M, decimals=1)],
    "polygamma": [sample(1, _P)],
    "conj": [both(_M)],
    "conj_physical": [both(_M)],
    "real": [both(_M)],
    "imag": [sample(_M, complex_numbers="only")],
    "resolve_conj": [both(_M)],
    "resolve_neg": [both(_M)],
    "celu": [sample(_M), sample(_M, 1.3)],
    "selu": [sample(_M)],
    "prelu": [sample(_M, real(3)), sample(_M, real(1))],
    "rrelu": [sample(_M, 0.1, 0.3), sample(_M, 0.1, 0.3, True, seeded=True)],
    "where": [both(mask(2, 3), _M, _V), both(mask(2, 3), _M, 0.5)],
    # reductions
    **{name: [both(_M), both(_M, 1), both(_M, 0, True)] for name in "sum mean prod std var".split()},
    **{f"{name}_mean": [both(_M), both(_M, 1)] for name in ("std", "var")},
    "nanmean": [sample(_M), sample(_M, 1)],
    **{
        name: [sample(distinct(2, 3)), sample(distinct(2, 3), 1, after=first), sample(distinct(2, 3), distinct(3))]
        for name in ("max", "min")
    },
    **{name: [sample(distinct(2, 3)), sample(distinct(2, 3), 1, after=first)] for name in ("median", "nanmedian")},
    **{
        name: [sample(distinct(2, 3), 0.3), sample(distinct(2, 3), constant(fraction(2)), 1)]
        for name in ("quantile", "nanquantile")
    },
    "norm": [both(_M), both(_M, 3, 1), both(_M, "nuc"), sample(_M, 1)],
    "softmax": [sample(_M, 1)],
    "log_softmax": [sample(_M, 1)],
    "_safe_softmax": [sample(_M, 1)],
    "_softmax_backward_data": [sample(_M, _M, 1, torch.float64)],
    "_log_softmax_backward_data": [sample(_M, _M, 1, torch.float64)],
    "_chunk_cat": [sample([real(3, 2), real(2, 2)], 0, 2)],
    "_native_batch_norm_legit": [sample(real(3, 2), real(2), real(2), True, 0.1, 1e-5, after=first)],
    "_unsafe_masked_index": [sample(real(2), mask(2), [exactly(0, 3)], 2.0)],
    "_unsafe_masked_index_put_accumulate": [sample(real(2), mask(2), [exactly(0, 3)], real(2))],
    "segment_reduce": [sample(real(5, 2), "sum", lengths=exactly(2, 3))],
    "convolution": [sample(real(1, 2, 5), real(3, 2, 3), real(3), (1,), (1,), (1,), False, (0,), 1)],
    "special.ndtr": [sample(real(2, 3))],
    "sort": [sample(distinct(2, 3), after=first), sample(distinct(2, 3), 0, True, after=first)],
    "msort": [sample(distinct(2, 3))],
    "cdist": [sample(_M, real(4, 3)), sample(_M, real(4, 3), 1.0)],
    "cov": [both(real(2, 4)), sample(real(2, 4), fweights=exactly(1, 2, 1, 3))],
    "corrcoef": [both(real(2, 4))],
    "cumulative_trapezoid": [both(_M), both(_M, _V), both(_M, dx=0.5, dim=0)],
    **{name: [both(_M), both(_M, _V), both(_M, dx=0.5, dim=0)] for name in ("trapezoid", "trapz")},
    "gradient": [
        both(real(4)),
        both(real(3, 4), spacing=0.5, dim=1),
        sample(real(4), spacing=[constant(distinct(4))]),
    ],
    "squeeze_copy": [both(real(2, 1, 3)), both(real(2, 1, 3), 1)],
    "view_copy": [both(_M, (3, 2))],
    "diff": [both(_M), both(real(4), 2), both(_M, 1, 0, real(1, 3))],
    # views and copies
    "adjoint": [both(_M)],
    "as_strided": [both(real(6), (2, 2), (3, 1))],
    **{f"atleast_{n}d": [both(_V), both(real())] for n in (1, 2, 3)},
    "broadcast_tensors": [both(_M, _V)],
    "broadcast_to": [both(_V, (2, 3))],
    "chunk": [both(real(5, 2), 2)],
    "unsafe_chunk": [both(real(5, 2), 2)],
    "diag": [both(_V), both(_M, 1)],
    "diagflat": [both(_V, 1)],
    "dsplit": [both(real(1, 2, 4), 2)],
    "hsplit": [both(real(2, 4), 2)],
    "vsplit": [both(real(4, 2), 2)],
    "split": [both(real(5, 2), 2), both(real(5, 2), [1, 4])],
    "tensor_split": [both(real(5, 2), 2), both(real(5, 2), (1, 4))],
    "fill": [both(_M, 1.5), both(_M, real())],
    "flatten": [both(_M), both(real(2, 3, 2), 1)],
    "unflatten": [both(real(2, 6), 1, (2, -1))],
    "flip": [both(_M, (0, 1))],
    "fliplr": [both(_M)],
    "flipud": [both(_M)],
    "meshgrid": [both(_V, real(2), indexing="ij")],
    **{name: [both(real(2, 3, 4), 0, 2)] for name in "moveaxis movedim swapaxes".split()},
    "narrow": [both(real(4, 3), 0, 1, 2)],
    "permute": [both(_M, (1, 0))],
    "ravel": [both(_M)],
    "reshape": [both(_M, (3, 2))],
    "roll": [both(_M, 1), both(_M, 1, 0)],
    "squeeze": [both(real(2, 1, 3)), both(real(2, 1, 3), 1)],
    "tile": [both(_M, (2, 1))],
    "take_along_dim": [both(_M, index(3, 2, 2), 1), both(_M, index(6, 4))],
    "repeat_interleave": [both(_M, 2), both(_M, exactly(1, 2), 0)],
    **{name: [both([_M, real(1, 3)])] for name in "concat concatenate".split()},
    **{name: [both([_M, _M])] for name in "column_stack dstack hstack row_stack vstack".split()},
    "block_diag": [both(_M, _V)],
    "cartesian_prod": [both(_V, real(2))],
    "combinations": [both(_V), both(real(4), 3)],
    "vander": [both(_V), both(_V, 4, increasing=True)],
    # indices
    "index_fill": [both(_M, 1, exactly(2), 1.5), both(_M, 1, exactly(2), real())],
    "index_put": [both(_M, [exactly(0, 1), exactly(2, 0)], real(2)), both(_M, [exactly(0, 0)], real(2, 3), True)],
    "masked_fill": [both(_M, mask(2, 3), 1.5), both(_M, mask(2, 3), real())],
    "scatter": [both(_M, 1, exactly([2, 0], [1, 2]), real(2, 2)), both(_M, 1, exactly([2, 0], [1, 2]), 1.5)],
    # products and linear algebra
    "bilinear": [sample(_M, real(2, 2), real(2, 3, 2), real(2))],
    "cross": [both(_M, _M, dim=1), both(real(3, 2), real(3, 2), dim=0)],
    "det": [both(matrix(3, 3))],
    "logdet": [both(matrix(3, 3))],
    "slogdet": [both(matrix(3, 3))],
    "inverse": [both(matrix(3, 3))],
    "einsum": [both("ij,jk->ki", _M, real(3, 2)), both("ii->i", real(3, 3)), both("i,j,ij", real(2), _V, _M)],
    "ger": [both(real(2), _V)],
    "outer": [both(real(2), _V)],
    "inner": [both(_M, _V), both(_M, real(4, 3))],
    "kron": [both(_M, real(2, 1))],
    "matmul": [
        both(_M, real(3, 2)),
        both(_M, _V),
        both(_V, real(3, 2)),
        both(_V, _V),
        both(real(2, 1, 2, 3), real(2, 3, 2)),
    ],
    "matrix_power": [both(matrix(3, 3), 3), both(matrix(3, 3), -2), both(matrix(3, 3), 0)],
    "qr": [both(matrix(3, 2))],
    "pinverse": [both(matrix(3, 2))],
    "lu": [both(matrix(3, 3), after=first)],
    "lu_solve": [both(real(3, 2), matrix(3, 3), _PIVOTS)],
    "lu_unpack": [both(matrix(3, 3), _PIVOTS)],
    "orgqr": [both(matrix(3, 2), real(2))],
    "chain_matmul": [both(_M, real(3, 2), real(2, 4))],
    "frobenius_norm": [both(_M, (0, 1)), both(_M, 1, True)],
    "nuclear_norm": [both(_M)],
    "svd": [both(matrix(3, 2), after=unsigned)],
    "triangular_solve": [both(real(3, 2), matrix(3, 3), after=first)],
    "tensordot": [both(real(2, 3, 4), real(3, 4, 2)), both(_M, _M, ([0, 1], [0, 1]))],
    # networks
    "adaptive_avg_pool1d": [sample(_IMAGE, 2)],
    "adaptive_max_pool1d": [sample(distinct(2, 2, 5), 2, after=first)],
    "lobpcg": [
        sample(real(7, 7), 2, seeded=True, before=_definite, after=lambda results: (results[0], results[1] ** 2))
    ],
    "native_batch_norm": [sample(real(3, 2), real(2), real(2), None, None, True, 0.1, 1e-5, after=first)],
    "native_group_norm": [sample(real(2, 4, 3), real(4), real(4), 2, 4, 3, 2, 1e-5, after=first)],
    "native_layer_norm": [sample(_M, (3,), _V, _V, 1e-5, after=first)],
    "nn.functional.conv_tbc": [sample(real(4, 2, 3), real(2, 3, 2), real(2), 1)],
    "nn.functional.linear_cross_entropy": [
        sample(real(2, 3), real(4, 3), index(4, 2), linear_bias=real(4)),
        sample(real(2, 3), real(4, 2, 3), index(4, 2, 2)),
    ],
    "nn.functional.native_channel_shuffle": [sample(real(1, 4, 2), 2)],
    "svd_lowrank": [sample(real(4, 3), 3, 1, seeded=True, second=False, after=lambda results: results[1])],
    "pca_lowrank": [sample(real(4, 3), 3, seeded=True, second=False, after=lambda results: results[1])],
    "histogram": [sample(real(6), 3, second=False, after=lambda results: results[0])],
    "histogramdd": [sample(real(6, 2), 3, second=False, after=lambda results: results[0])],
    "stft": [sample(real(12), 4, 2, 3, constant(positive(3)), return_complex=True)],
    "istft": [sample(real(2, 4, 5), 4, 1, 4, constant(only_real(4, low=0.5)), onesided=False, complex_numbers="only")],
    "norm_except_dim": [sample(real(2, 3), 2, 1), sample(real(2, 3), 2, -1)],
    "_weight_norm": [sample(real(2, 3), positive(2, 1), 0)],
    "avg_pool1d": [sample(_IMAGE, 2), sample(_IMAGE, 3, 2, 1)],
    "max_pool1d": [sample(distinct(2, 2, 5), 2)],
    "max_pool1d_with_indices": [sample(distinct(2, 2, 5), 2, after=first)],
    "max_pool2d": [sample(distinct(1, 2, 4, 4), 2)],
    "max_pool3d": [sample(distinct(1, 1, 3, 3, 3), 2)],
    "alpha_dropout": [sample(_M, 0.4, True, seeded=True)],
    "dropout": [sample(_M, 0.4, True, seeded=True)],
    "feature_alpha_dropout": [sample(_IMAGE, 0.4, True, seeded=True)],
    "feature_dropout": [sample(_IMAGE, 0.4, True, seeded=True)],
    "batch_norm": [sample(real(4, 3), _V, _V, None, None, True, 0.1, 1e-5, False)],
    "binary_cross_entropy_with_logits": [sample(_M, fraction(2, 3), None, constant(positive(3)), 1)],
    "conv1d": [both(_IMAGE, real(3, 2, 3), _V), both(_IMAGE, real(2, 1, 2), None, 2, "valid", 1, 2)],
    "conv2d": [both(_IMAGES, real(2, 2, 3, 2), real(2), 1, 1)],
    "conv3d": [both(_VOLUMES, real(2, 1, 2, 2, 2))],
    "conv_transpose1d": [both(_IMAGE, real(2, 2, 3), real(2), 2, 1, 1)],
    "conv_transpose2d": [both(_IMAGES, real(2, 1, 2, 2), None, 2)],
    "conv_transpose3d": [both(real(1, 1, 2, 2, 2), real(1, 1, 2, 2, 2))],
    "cosine_similarity": [sample(_M, _M), sample(_M, _M, 0)],
    "pairwise_distance": [sample(_M, _M), sample(_M, _V, 3.0)],
    "group_norm": [sample(real(2, 4, 3), 2, real(4), real(4))],
    "layer_norm": [sample(_M, (3,), _V, _V)],
    "grid_sampler": [sample(_IMAGES, unit(1, 2, 2, 2), 0, 0, True), sample(_VOLUMES, unit(1, 1, 1, 2, 3), 0, 0, True)],
    "grid_sampler_2d": [sample(_IMAGES, unit(1, 2, 2, 2), 0, 1, False)],
    "grid_sampler_3d": [sample(_VOLUMES, unit(1, 1, 1, 2, 3), 0, 0, True)],
    "ctc_loss": [
        sample(
            real(4, 2, 3),
            exactly([1, 2], [2, 2]),
            (4, 4),
            (2, 2),
            second=False,
            before=lambda tensor: tensor.log_softmax(-1),
        )
    ],
    "rms_norm": [sample(_M, (3,), _V)],
}

_FUNCTIONAL = {
    "embedding_bag": [
        sample(index(3, 5), real(3, 2), exactly(0, 2)),
        sample(index(3, 2, 2), real(3, 2), mode="sum", per_sample_weights=real(2, 2)),
    ],
    "interpolate": [
        sample(real(1, 2, 3), scale_factor=2),
        sample(_IMAGES, size=3, mode="bicubic", align_corners=True),
        sample(_IMAGES, size=3, mode="area"),
    ],
    "upsample": [sample(_IMAGES, size=5, mode="bilinear")],
    "upsample_nearest": [sample(_IMAGES, size=5)],
    "upsample_bilinear": [sample(_IMAGES, size=5)],
    "multi_head_attention_forward": [
        sample(
            *[real(3, 1, 4)] * 3,
            4,
            2,
            real(12, 4),
            real(12),
            None,
            None,
            True,
            0.0,
            real(4, 4),
            real(4),
            after=lambda results: results,
        ),
    ],
    "grid_sample": [
        sample(_IMAGES, unit(1, 2, 2, 2), align_corners=True),
        sample(_VOLUMES, unit(1, 1, 1, 2, 3), align_corners=False),
    ],
    "affine_grid": [sample(real(1, 2, 3), (1, 1, 2, 2), align_corners=False)],
    **{
        f"max_unpool{n}d": [sample(real(1, 2, *[1] * (n - 1), 2), permutation(1, 2, *[1] * (n - 1), 2), 2)]
        for n in (1, 2, 3)
    },
    **{f"lp_pool{n}d": [sample(positive(1, 2, *[2] * n), 3, 2)] for n in (1, 2, 3)},
    "ctc_loss": _TORCH["ctc_loss"],
    "unfold": [both(_IMAGES, 2), both(_IMAGE, (2, 1), padding=1)],
    "fold": [both(real(1, 8, 6), (3, 4), 2)],
    **{
        name: _TORCH[name]
        for name in """
            adaptive_avg_pool1d adaptive_max_pool1d avg_pool1d max_pool1d max_pool2d max_pool3d bilinear celu selu conv1d conv2d
            conv3d conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity pairwise_distance prelu rms_norm
        """.split()
    },
    **{f"adaptive_avg_pool{n}d": [sample(real(1, 1, *[3] * n), 2)] for n in (2, 3)},
    **{f"adaptive_max_pool{n}d": [sample(distinct(1, 1, *[3] * n), 2)] for n in (2, 3)},
    **{f"avg_pool{n}d": [sample(real(1, 1, *[3] * n), 2)] for n in (2, 3)},
    **{
        f"fractional_max_pool{n}d": [sample(distinct(1, 1, *[3] * n), 2, 2, constant(unit(1, 1, n)), after=first)]
        for n in (2, 3)
    },
    **{f"max_pool{n}d_with_indices": [sample(distinct(1, 1, *[3] * n), 2, after=first)] for n in (1, 2, 3)},
    **{f"adaptive_max_pool{n}d_with_indices": [sample(distinct(1, 1, *[3] * n), 2, after=first)] for n in (1, 2, 3)},
    **{
        f"fractional_max_pool{n}d_with_indices": [
            sample(distinct(1, 1, *[3] * n), 2, 2, constant(unit(1, 1, n)), after=first)
        ]
        for n in (2, 3)
    },
    **{name: [sample(_M, 0.4, seeded=True)] for name in "alpha_dropout dropout".split()},
    **{
        name: [sample(real(2, 2, *[2] * n), 0.4, seeded=True)]
        for name, n in (("dropout1d", 1), ("dropout2d", 2), ("dropout3d", 3))
    },
    "feature_alpha_dropout": [sample(_IMAGE, 0.4, seeded=True)],
    "batch_norm": [
        sample(real(4, 3), None, None, _V, _V, True),
        sample(real(4, 3), constant(real(3)), constant(positive(3)), _V, _V),
    ],
    "group_norm": [sample(real(2, 4, 3), 2, real(4), real(4))],
    "instance_norm": [sample(_IMAGE)],
    "layer_norm": [sample(_M, (3,), _V, _V)],
    "local_response_norm": [sample(_IMAGE, 2)],
    "normalize": [both(_M), sample(_M, 3.0, 0)],
    "linear": [both(_M, real(2, 3), real(2)), both(_V, real(2, 3))],
    "embedding": [sample(index(4, 2, 2), real(4, 3))],
    "rrelu": [sample(_M), sample(_M, training=True, seeded=True)],
    **{
        name: [sample(_M)]
        for name in "elu hardsigmoid hardswish hardtanh leaky_relu mish relu relu6 sigmoid silu tanh".split()
    },
    "glu": [sample(real(2, 4))],
    "threshold": [sample(_M, 0.5, 7.0)],
    "softsign": [both(_M)],
    "tanhshrink": [both(_M)],
    "softmin": [sample(_M, 1)],
    "softmax": [sample(_M, 1)],
    "log_softmax": [sample(_M, 1)],
    "gumbel_softmax": [sample(_M, dim=1, seeded=True)],
    "pad": [both(_M, (1, 1)), *[both(_IMAGE, (1, 2), mode) for mode in "reflect replicate circular".split()]],
    "scaled_dot_product_attention": [
        sample(real(2, 3, 2), real(2, 4, 2), real(2, 4, 3)),
        sample(_M, _M, _M, is_causal=True),
    ],
    # losses
    "binary_cross_entropy": [sample(fraction(2, 3), fraction(2, 3))],
    "binary_cross_entropy_with_logits": [sample(_M, fraction(2, 3), pos_weight=constant(positive(3)))],
    "cosine_embedding_loss": [sample(_M, _M, exactly(1, -1))],
    "cross_entropy": [
        sample(_M, index(3, 2)),
        sample(_M, index(3, 2), label_smoothing=0.1),
        sample(_M, fraction(2, 3)),
    ],
    "gaussian_nll_loss": [sample(_M, _M, _P), sample(_M, _M, _P, full=True)],
    "hinge_embedding_loss": [sample(_M, exactly([1, -1, 1], [-1, 1, 1]))],
    **{
        name: [sample(_M, _M), sample(_M, _M, reduction="sum")]
        for name in "huber_loss l1_loss mse_loss smooth_l1_loss".split()
    },
    "kl_div": [sample(_M, fraction(2, 3), reduction="batchmean"), sample(_M, _M, log_target=True, reduction="sum")],
    "margin_ranking_loss": [sample(_V, _V, exactly(1, -1, 1), 0.3)],
    "multi_margin_loss": [sample(_M, index(3, 2))],
    "multilabel_margin_loss": [sample(_M, exactly([0, -1, 1], [2, 0, -1]))],
    "multilabel_soft_margin_loss": [sample(_M, constant(fraction(2, 3)))],
    "nll_loss": [sample(_M, index(3, 2)), sample(real(2, 3, 2), index(3, 2, 2))],
    "poisson_nll_loss": [sample(_M, constant(_P)), sample(_P, constant(_P), log_input=False, full=True)],
    "soft_margin_loss": [sample(_M, exactly([1.0, -1, 1], [-1, 1, 1], dtype=float))],
    "triplet_margin_loss": [sample(_M, real(2, 3, low=0.0, high=3.0), real(2, 3, low=-3.0, high=0.0))],
    "triplet_margin_with_distance_loss": [sample(_M, real(2, 3, low=0.0, high=3.0), real(2, 3, low=-3.0, high=0.0))],
}

_LINALG = {
    **{name: _TORCH[name] for name in "matmul matrix_power".split()},
    "cond": [both(matrix(3, 3)), sample(matrix(3, 3), 1)],
    "diagonal": [both(_M), both(_M, offset=1, dim1=0, dim2=1)],
    "eigvals": [both(matrix(3, 3))],
    "lstsq": [both(matrix(3, 2), real(3, 2), after=first)],
    "matrix_rank": [sample(matrix(3, 2)), sample(matrix(3, 2), 0.5)],
    "pinv": [both(matrix(3, 2)), both(matrix(3, 3), rtol=0.1)],
    "solve_triangular": [both(matrix(3, 3), real(3, 2), upper=True)],
    "eigh": [both(definite(3, 3), before=symmetric, after=unsigned)],
    "eigvalsh": [both(definite(3, 3), before=symmetric)],
    "matrix_norm": [both(_M), *[sample(_M, order) for order in ("nuc", 1, -1, 2, -2, float("inf"), -float("inf"))]],
    "multi_dot": [both([_M, real(3, 2), real(2, 4)])],
    "norm": [both(_M), both(_M, 3, 1), both(_M, "nuc"), sample(_V, 1)],
    "svd": [both(matrix(3, 2), False, after=unsigned)],
    "svdvals": [both(matrix(3, 2))],
    "vecdot": [both(_M, _M)],
    "lu": [both(matrix(3, 3))],
    "lu_factor": [both(matrix(3, 3), after=first)],
    "tensorinv": [both(matrix(6, 6), 1), both(matrix(4, 4), ind=1)],
    "tensorsolve": [both(matrix(6, 6), real(6)), both(matrix(4, 4), real(4), dims=(0,))],
    "vander": [both(_V), both(_M, N=4)],
}

_SPECIAL = {
    "log_softmax": [sample(_M, 1)],
    "softmax": [sample(_M, 1)],
    "polygamma": [sample(1, _P)],
    "round": [sample(_M)],
    "xlog1py": [sample(_M, _P), sample(_M, 1.7), sample(1.7, _P)],
    "xlogy": [sample(_M, _P), sample(_M, 1.7), sample(1.7, _P)],
}

_FOURIER = {
    **{
        name: [both(_V), both(_M, 4, 0, "ortho"), both(_M, n=2, norm="forward")]
        for name in "fft ifft irfft hfft".split()
    },
    **{name: [sample(_V), sample(_M, 4, 0, "ortho")] for name in "rfft ihfft".split()},
    **{name: [both(_M), both(_M, (3, 4))] for name in "fft2 ifft2 irfft2 hfft2".split()},
    **{name: [sample(_M), sample(_M, (3, 2))] for name in "rfft2 ihfft2".split()},
    **{name: [both(_M), both(_M, (4,)), both(_M, dim=(0,))] for name in "fftn ifftn irfftn hfftn".split()},
    **{name: [sample(_M), sample(_M, (-1, 2), norm="ortho")] for name in "rfftn ihfftn".split()},
    **{name: [both(_M), both(_M, 1)] for name in "fftshift ifftshift".split()},
}

_TENSOR = {
    **{name: [both(_M)] for name in "contiguous cdouble cpu".split()},
    "double": [sample(_M)],
    "expand": [both(_V, 2, 3)],
    "expand_as": [both(_V, _M)],
    "repeat": [both(_M, 2, 1)],
    "reshape_as": [both(_M, real(3, 2))],
    "resize": [both(_M, 3, 2)],
    "resize_as": [both(_M, real(3, 2))],
    "sum_to_size": [both(_M, 1, 3)],
    "to": [both(_M, torch.complex128)],
    "to_device": [both(_M, "cpu")],
    "type": [both(_M, torch.complex128)],
    "type_as": [both(_M, _V)],
    "view": [both(_M, 3, 2)],
    "view_as": [both(_M, real(3, 2))],
}

SAMPLES = {
    f"{prefix}{name}": calls
    for prefix, table in (
        ("", _TORCH),
        ("nn.functional.", _FUNCTIONAL),
        ("linalg.", _LINALG),
        ("special.", _SPECIAL),
        ("fft.", _FOURIER),
        ("Tensor.", _TENSOR),
    )
    for name, calls in table.items()
}

# Functions without derivative: they create or describe tensors, compare, count, draw random numbers, find positions or round.
NOT_DIFFERENTIABLE = frozenset(
    """
    BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor
    arange as_tensor asarray empty empty_like empty_permuted empty_strided eye from_dlpack from_file from_numpy frombuffer full
    full_like fft.fftfreq fft.rfftfreq
    linspace logspace ones ones_like range scalar_tensor tensor tril_indices triu_indices zeros zeros_like
    bartlett_window blackman_window hamming_window hann_window kaiser_window get_device typename unravel_index isin
    rand rand_like randint randint_like randn randn_like randperm bernoulli multinomial normal
    linalg.ldl_factor fake_quantize_per_tensor_affine fake_quantize_per_channel_affine
    allclose equal is_complex is_conj is_distributed is_floating_point is_inference is_neg is_nonzero is_same_size is_signed
    is_storage is_tensor isclose numel broadcast_shapes get_default_device result_type set_default_device set_default_tensor_type
    argsort argwhere nonzero bucketize searchsorted unique unique_consecutive detach floor_divide nn.functional.one_hot
    Tensor.as_subclass Tensor.backward Tensor.data_ptr Tensor.dim Tensor.dim_order Tensor.element_size
    Tensor.is_contiguous Tensor.is_pinned Tensor.is_set_to Tensor.is_shared Tensor.item Tensor.ndimension Tensor.nelement
    Tensor.new Tensor.new_empty Tensor.new_empty_strided Tensor.new_full Tensor.new_ones Tensor.new_tensor Tensor.new_zeros
    Tensor.numpy Tensor.pin_memory Tensor.register_hook Tensor.register_post_accumulate_grad_hook Tensor.retain_grad Tensor.size
    Tensor.module_load Tensor.storage Tensor.storage_offset Tensor.storage_type Tensor.stride Tensor.tolist Tensor.untyped_storage
    """.split()
)

# Finite differences need more precision or another device.
NOT_DOUBLE = frozenset(
    f"Tensor.{name}" for name in "bfloat16 bool byte cfloat chalf char cuda float half int long short xpu".split()
) | {f"nn.functional.{name}" for name in ("grouped_mm", "scaled_grouped_mm", "scaled_mm")}
