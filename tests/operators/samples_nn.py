"""Samples of the operators of networks: convolution, pooling, normalization, losses, gates, dropout."""

import numpy

from adjoint.kernels.nn.grid_sampling import Sampling

from .sampling import (
    Input,
    both,
    constant,
    distinct,
    exactly,
    fraction,
    index,
    permutation,
    positive,
    real,
    sample,
    unit,
)

_ONE, _TWO, _THREE = (1,), (1, 1), (1, 1, 1)
_NONE = (0,), (0, 0), (0, 0, 0)
_EMPTY, _NUMBER = real(0, 3), real()
_REDUCTIONS = "none mean sum".split()


def _convolutions():
    yield both(real(2, 2, 5), real(3, 2, 3), real(3), (1,), (1,), (1,), False, (0,), 1)
    yield both(real(1, 2, 6), real(4, 1, 2), None, (2,), (0,), (2,), False, (0,), 2)
    yield both(real(1, 2, 4, 4), real(2, 2, 2, 3), real(2), (1, 2), (0, 1), (1, 1), False, (0, 0), 1)
    yield both(real(1, 1, 3, 3, 3), real(2, 1, 2, 2, 2), real(2), (1, 1, 1), (0, 0, 0), (1, 1, 1), False, (0, 0, 0), 1)
    yield both(real(1, 2, 3), real(2, 3, 3), real(3), (2,), (1,), (1,), True, (1,), 1)
    yield both(real(1, 2, 2, 3), real(2, 1, 2, 2), None, (2, 1), (0, 1), (1, 1), True, (0, 0), 2)
    yield both(real(0, 2, 5), real(3, 2, 3), real(3), (1,), (1,), (1,), False, (0,), 1)


def _signs(*shape):
    return Input(shape, lambda generator, shape: generator.randint(0, 2, shape) * 2.0 - 1, differentiable=False)


def _log_softmax(tensor):
    return tensor.log_softmax(-1)


def _first(result):
    return result[0]


_LINEAR, _CUBIC = Sampling(0, 0, False), Sampling(2, 0, False)


def _maximal(*indices):
    return exactly(*indices)


def _pools(n):
    """Return samples of windows in `n` dimensions: plain, overlapping, padded, dilated."""
    size = {1: 5, 2: 4, 3: 3}[n]
    images = distinct(1, 2, *[size] * n), distinct(2, *[size] * n), distinct(0, 2, *[size] * n)
    two, one, none = (2,) * n, (1,) * n, (0,) * n
    yield from (sample(image, two, two, none, one, False) for image in images)
    yield sample(images[0], two, one, one, one, True)
    yield sample(images[0], two, one, none, (2,) * n, False)


def _means(n):
    size = 4 if n == 2 else 3
    images = real(1, 2, *[size] * n), real(2, *[size] * n), real(0, 2, *[size] * n)
    two, one, none = (2,) * n, (1,) * n, (0,) * n
    yield from (sample(image, two, two, none, False, True, None) for image in images)
    yield sample(images[0], two, one, one, True, False, None)
    yield sample(images[0], two, one, one, False, True, 3)


def _gradients_of_means(n):
    size = 4 if n == 2 else 3
    two, one, none = (2,) * n, (1,) * n, (0,) * n
    whole = [size // 2] * n
    yield sample(real(1, 2, *whole), constant(real(1, 2, *[size] * n)), two, two, none, False, True, None)
    yield sample(real(0, 2, *whole), constant(real(0, 2, *[size] * n)), two, two, none, False, True, None)
    yield sample(real(1, 2, *[size + 1] * n), constant(real(1, 2, *[size] * n)), two, one, one, False, False, None)


def _adaptive(n, of):
    size = 4 if n == 2 else 3
    yield sample(of(1, 2, *[size] * n), (2,) * n)
    yield sample(of(2, *[size] * n), (1, 2, 3)[:n])
    yield sample(of(0, 2, *[size] * n), (2,) * n)


SAMPLES = {
    "convolution": list(_convolutions()),
    "conv_input_grad": [
        both(real(2, 3, 5), real(3, 2, 3), (2, 2, 5), (1,), (1,), (1,), 1),
        both(real(1, 2, 3, 2), real(2, 2, 2, 3), (1, 2, 4, 4), (1, 2), (0, 1), (1, 1), 1),
        both(real(0, 3, 5), real(3, 2, 3), (0, 2, 5), (1,), (1,), (1,), 1),
    ],
    "conv_weight_grad": [
        both(real(2, 3, 5), real(2, 2, 5), (3, 2, 3), (1,), (1,), (1,), 1),
        both(real(1, 2, 3, 2), real(1, 2, 4, 4), (2, 2, 2, 3), (1, 2), (0, 1), (1, 1), 1),
        both(real(0, 3, 5), real(0, 2, 5), (3, 2, 3), (1,), (1,), (1,), 1),
    ],
    **{f"max_pool{n}d_with_indices": list(_pools(n)) for n in (2, 3)},
    "max_pool2d_with_indices_backward": [
        sample(real(1, 2, 2, 2), constant(real(1, 2, 4, 4)), index(16, 1, 2, 2, 2)),
        sample(real(0, 2, 2, 2), constant(real(0, 2, 4, 4)), index(16, 0, 2, 2, 2)),
    ],
    "max_pool3d_with_indices_backward": [
        sample(real(1, 2, 1, 1, 2), constant(real(1, 2, 3, 3, 3)), index(27, 1, 2, 1, 1, 2)),
        sample(real(0, 2, 1, 1, 1), constant(real(0, 2, 3, 3, 3)), index(27, 0, 2, 1, 1, 1)),
    ],
    **{f"avg_pool{n}d_of": list(_means(n)) for n in (2, 3)},
    **{f"avg_pool{n}d_backward": list(_gradients_of_means(n)) for n in (2, 3)},
    **{f"adaptive_avg_pool{n}d_of": list(_adaptive(n, real)) for n in (2, 3)},
    **{f"adaptive_max_pool{n}d_of": list(_adaptive(n, distinct)) for n in (2, 3)},
    **{
        f"adaptive_avg_pool{n}d_backward": [
            sample(real(1, 2, *[2] * n), constant(real(1, 2, *[3] * n))),
            sample(real(0, 2, *[2] * n), constant(real(0, 2, *[3] * n))),
        ]
        for n in (2, 3)
    },
    **{
        f"fractional_max_pool{n}d_of": [
            sample(distinct(1, 2, *[4] * n), (2,) * n, (2,) * n, constant(unit(1, 2, n))),
            sample(distinct(0, 2, *[4] * n), (2,) * n, (2,) * n, constant(unit(0, 2, n))),
        ]
        for n in (2, 3)
    },
    **{
        f"fractional_max_pool{n}d_backward": [
            sample(real(1, 2, *[2] * n), constant(real(1, 2, *[3] * n)), index(3**n, 1, 2, *[2] * n)),
            sample(real(0, 2, *[2] * n), constant(real(0, 2, *[3] * n)), index(3**n, 0, 2, *[2] * n)),
        ]
        for n in (2, 3)
    },
    **{
        f"adaptive_max_pool{n}d_backward": [
            sample(real(1, 2, *[2] * n), constant(real(1, 2, *[3] * n)), index(3**n, 1, 2, *[2] * n)),
            sample(real(0, 2, *[2] * n), constant(real(0, 2, *[3] * n)), index(3**n, 0, 2, *[2] * n)),
        ]
        for n in (2, 3)
    },
    "native_batch_norm": [
        sample(real(4, 3), real(3), real(3), None, None, True, 0.1, 1e-5),
        sample(real(2, 3, 2), None, None, None, None, True, 0.1, 1e-5),
        sample(real(2, 3, 2), real(3), real(3), constant(real(3)), constant(positive(3)), False, 0.1, 1e-5),
        sample(real(0, 3, 2), real(3), real(3), constant(real(3)), constant(positive(3)), False, 0.1, 1e-5),
    ],
    "blocked_attention": [
        sample(real(2, 4, 3, 2), real(2, 2, 4, 2), real(2, 2, 4, 3), None, None, 0.0, False, 0.7),
        sample(real(2, 3, 2), real(2, 3, 2), real(2, 3, 2), None, None, 0.0, True, -0.7),
        sample(real(3, 2), real(4, 2), real(4, 1), constant(real(3, 4)), None, 0.0, False, 1.3),
        sample(real(0, 1, 3, 2), real(0, 1, 3, 2), real(0, 1, 3, 2), None, None, 0.0, False, 1.0),
    ],
    "recurrent_layer": [
        sample(real(3, 2, 2), real(2, 2), None, real(2, 2), None, "RNN_TANH", False),
        sample(real(3, 2, 6), real(2, 2), None, real(6, 2), real(6), "GRU", True),
        sample(real(3, 2, 8), real(2, 2), real(2, 2), real(8, 2), None, "LSTM", False),
        sample(real(3, 0, 2), real(0, 2), None, real(2, 2), real(2), "RNN_RELU", False),
    ],
    "grid_sampler_2d_of": [
        sample(real(1, 2, 3, 4), unit(1, 2, 2, 2), mode, padding, corners)
        for mode, padding, corners in (
            (0, 0, True),
            (0, 1, False),
            (0, 2, False),
            (1, 0, False),
            (2, 0, True),
            (2, 2, False),
        )
    ]
    + [sample(real(0, 2, 3, 4), unit(0, 2, 2, 2), 0, 0, False)],
    "grid_sampler_3d_of": [
        sample(real(1, 1, 3, 2, 4), unit(1, 1, 2, 2, 3), mode, padding, False)
        for mode, padding in ((0, 0), (0, 2), (1, 1))
    ]
    + [sample(real(0, 2, 3, 2, 4), unit(0, 1, 2, 2, 3), 0, 0, False)],
    "grid_weights": [
        sample(unit(2, 2, 1, 2), (3, 4), _CUBIC, (0, 1)),
        sample(unit(2, 2, 1, 2), (3, 4), _LINEAR, (0, 0)),
        sample(unit(0, 2, 1, 2), (3, 4), _LINEAR, (0, 0)),
    ],
    "grid_pixels": [
        sample(real(2, 2, 3, 4), constant(unit(2, 2, 1, 2)), _LINEAR),
        sample(real(0, 2, 3, 4), constant(unit(0, 2, 1, 2)), _LINEAR),
    ],
    "grid_scattered": [
        sample(real(2, 2, 4, 2), constant(unit(2, 2, 1, 2)), (3, 4), _LINEAR),
        sample(real(0, 2, 4, 2), constant(unit(0, 2, 1, 2)), (3, 4), _LINEAR),
    ],
    "affine_grid_generator": [sample(real(2, 2, 3), (2, 1, 3, 2), corners) for corners in (True, False)]
    + [sample(real(0, 2, 3), (0, 1, 3, 2), True)],
    "affine_grid_backward": [
        sample(real(2, 3, 2, 2), (2, 1, 3, 2), False),
        sample(real(0, 3, 2, 2), (0, 1, 3, 2), True),
    ],
    **{
        f"max_unpool{n}d_of": [
            sample(real(1, 2, *[1] * (n - 1), 2), permutation(1, 2, *[1] * (n - 1), 2), (2,) * n),
            sample(real(0, 2, *[1] * (n - 1), 2), index(1, 0, 2, *[1] * (n - 1), 2), (2,) * n),
        ]
        for n in (2, 3)
    },
    "ctc_loss_of": [
        sample(
            real(4, 2, 3),
            exactly([1, 2], [2, 2]),
            (4, 4),
            (2, 2),
            0,
            False,
            second=False,
            before=_log_softmax,
            after=_first,
        ),
    ],
    "ctc_loss_backward": [
        sample(
            constant(real(2)),
            real(3, 2, 3),
            exactly([1], [2]),
            (3, 2),
            (1, 1),
            constant(real(2)),
            constant(real(2, 3, 3)),
            0,
            False,
        )
    ],
    "native_layer_norm": [
        sample(real(2, 3), (3,), real(3), real(3), 1e-5),
        sample(real(2, 2, 3), (2, 3), None, None, 1e-5),
        sample(_EMPTY, (3,), real(3), real(3), 1e-5),
    ],
    "native_group_norm": [
        sample(real(2, 4, 3), real(4), real(4), 2, 1e-5),
        sample(real(1, 4, 3), None, None, 1, 1e-5),
        sample(real(0, 4, 3), real(4), real(4), 2, 1e-5),
    ],
    # losses
    **{
        name: [
            *[sample(real(2, 3), real(2, 3), reduction) for reduction in _REDUCTIONS],
            sample(_EMPTY, _EMPTY, "sum"),
            sample(_NUMBER, _NUMBER),
        ]
        for name in "mse_loss smooth_l1_loss huber_loss".split()
    },
    "nll_loss_of": [
        *[sample(real(4, 3), index(3, 4), None, -100, reduction) for reduction in _REDUCTIONS],
        sample(real(4, 3), index(3, 4), constant(positive(3)), 1, "mean"),
        sample(_EMPTY, index(3, 0), None, -100, "sum"),
    ],
    "nll_loss2d_of": [
        *[sample(real(2, 3, 1, 2), index(3, 2, 1, 2), None, -100, reduction) for reduction in _REDUCTIONS],
        sample(real(2, 3, 1, 2), index(3, 2, 1, 2), constant(positive(3)), 1, "mean"),
        sample(real(0, 3, 1, 2), index(3, 0, 1, 2), None, -100, "sum"),
    ],
    "nll_loss_backward": [
        sample(_NUMBER, constant(real(4, 3)), index(3, 4), None, -100, "mean"),
        sample(real(4), constant(real(4, 3)), index(3, 4), constant(positive(3)), 1, "none"),
        sample(real(0), constant(_EMPTY), index(3, 0), None, -100, "none"),
    ],
    "nll_loss2d_backward": [
        sample(_NUMBER, constant(real(2, 3, 1, 2)), index(3, 2, 1, 2), None, -100, "mean"),
        sample(real(2, 1, 2), constant(real(2, 3, 1, 2)), index(3, 2, 1, 2), constant(positive(3)), 1, "none"),
        sample(real(0, 1, 2), constant(real(0, 3, 1, 2)), index(3, 0, 1, 2), None, -100, "none"),
    ],
    "binary_cross_entropy": [
        *[sample(fraction(2, 3), fraction(2, 3), None, reduction) for reduction in _REDUCTIONS],
        sample(fraction(2, 3), fraction(2, 3), constant(positive(3))),
        sample(fraction(0, 3), fraction(0, 3), None, "sum"),
        sample(fraction(), fraction()),
    ],
    "bce_with_logits": [
        *[sample(real(2, 3), fraction(2, 3), None, None, reduction) for reduction in _REDUCTIONS],
        sample(real(2, 3), fraction(2, 3), constant(positive(3)), constant(positive(3))),
        sample(_EMPTY, fraction(0, 3), None, None, "sum"),
        sample(_NUMBER, fraction()),
    ],
    "binary_cross_entropy_backward": [
        *[sample(real(), fraction(2, 3), constant(fraction(2, 3)), None, reduction) for reduction in ("mean", "sum")],
        sample(real(2, 3), fraction(2, 3), constant(fraction(2, 3)), constant(positive(3)), "none"),
        sample(_EMPTY, fraction(0, 3), constant(fraction(0, 3)), None, "none"),
    ],
    "soft_margin_loss": [
        *[sample(real(2, 3), _signs(2, 3), reduction) for reduction in _REDUCTIONS],
        sample(_EMPTY, _signs(0, 3), "sum"),
        sample(_NUMBER, _signs()),
    ],
    "multi_margin_loss": [
        *[sample(real(4, 3), index(3, 4), 1, 0.8, None, reduction) for reduction in _REDUCTIONS],
        sample(real(4, 3), index(3, 4), 2, 0.8, constant(positive(3)), "mean"),
        sample(_EMPTY, index(3, 0), 1, 0.8, None, "sum"),
    ],
    "multilabel_margin_loss_forward": [
        *[sample(real(2, 3), exactly([0, -1, 1], [2, 0, -1]), reduction) for reduction in _REDUCTIONS],
        sample(_EMPTY, index(3, 0, 3), "sum"),
    ],
    "multilabel_margin_slopes": [
        sample(real(2, 3), exactly([0, -1, 1], [2, 0, -1]), exactly([1, 0, 0], [1, 0, 1])),
        sample(_EMPTY, index(3, 0, 3), index(3, 0, 3)),
    ],
    # gates and dropout
    "prelu_kernel": [sample(real(2, 3), real(1, 3)), sample(_EMPTY, real(1, 3)), sample(_NUMBER, _NUMBER)],
    "prelu_backward": [
        sample(real(2, 3), real(2, 3), real(1, 3)),
        sample(_EMPTY, _EMPTY, real(1, 3)),
        sample(_NUMBER, _NUMBER, _NUMBER),
    ],
    "glu": [sample(real(2, 4)), sample(real(4, 3), 0), sample(real(0, 4))],
    "rrelu_with_noise": [],
    "rrelu_backward": [
        sample(real(2, 3), constant(real(2, 3)), constant(positive(2, 3))),
        sample(_EMPTY, constant(_EMPTY), constant(_EMPTY)),
        sample(_NUMBER, constant(_NUMBER), constant(_NUMBER)),
    ],
    "rrelu_mean": [sample(real(2, 3), 0.3), sample(_EMPTY, 0.3), sample(_NUMBER, 0.3)],
    "rrelu_mean_in_place": [sample(real(2, 3), 0.3), sample(_EMPTY, 0.3), sample(_NUMBER, 0.3)],
    "safe_softmax_of": [sample(real(2, 3), 1), sample(_EMPTY, 1)],
    "native_dropout_backward": [
        sample(real(2, 3), exactly([True, False, True]), 2.0),
        sample(_EMPTY, exactly([True, False, True]), 2.0),
        sample(_NUMBER, exactly(True), 2.0),
    ],
    "native_dropout": [
        sample(real(2, 3), 0.4, True, seeded=True),
        sample(real(2, 3), 0.4, False),
        sample(_EMPTY, 0.4, True, seeded=True),
        sample(_NUMBER, 0.4, True, seeded=True),
    ],
    "fake_quantize_per_tensor_affine_cachemask": [  # constant, because the gradient is not the derivative of the steps
        sample(constant(shape), 0.3, 1, -3, 4) for shape in (real(2, 3), _EMPTY, _NUMBER)
    ],
    "fake_quantize_per_tensor_affine_of_tensors": [
        sample(constant(shape), exactly(0.3, dtype="f4"), exactly(1), -3, 4) for shape in (real(2, 3), _EMPTY, _NUMBER)
    ],
    "fake_quantize_per_channel_affine_cachemask": [
        sample(constant(shape), exactly(0.3, 0.2, 1, dtype="f4"), exactly(1, 0, 2, dtype="i4"), 1, -3, 4)
        for shape in (real(2, 3), _EMPTY)
    ],
}
SAMPLES["rrelu_with_noise"] = [
    sample(positive(2, 3), Input((2, 3), lambda generator, shape: numpy.ones(shape), differentiable=False)),
    sample(constant(_EMPTY), constant(_EMPTY)),
    sample(constant(_NUMBER), constant(_NUMBER)),
]
