"""Samples of operators along dimensions: reductions, selections, sorting, scans, softmax, distances."""

from .sampling import (
    Sample,
    both,
    constant,
    distinct,
    exactly,
    index,
    real,
    sample,
)

_REDUCING = "sum mean prod".split()
_EXTREMES = "amax amin".split()
_MOMENTS = "var std var_mean std_mean".split()


def _dims(*shape, of=real, **options):
    """Return one sample for each way to specify dimensions."""
    return [
        Sample((of(*shape), dim), {**options, **keep}, complex_numbers=True)
        for dim in (0, 1, (0, 1), (-1,), None)
        for keep in ({}, {"keepdim": True})
    ]


SAMPLES = {
    **{f"{name}_all": [both(real(2, 3)), both(real()), both(real(0, 3))] for name in _REDUCING},
    **{
        f"{name}_dim": [*_dims(2, 3), both(real(), 0), both(real(2, 0), 1), both(real(2, 0), 0)]
        for name in "sum mean".split()
    },
    "prod_dim": [both(real(2, 3), 0), both(real(2, 3), 1, True), both(real(), 0), both(real(2, 0), 1)],
    "hash_tensor": [
        sample(constant(real(2, 3))),
        sample(constant(real(2, 3)), 0, keepdim=True),
        sample(constant(real())),
        sample(constant(real(2, 0)), 0),
    ],
    "nansum": [sample(real(2, 3)), sample(real(2, 3), 1, True), sample(real()), sample(real(0, 3), 0)],
    **{
        name: [
            sample(distinct(2, 3)),
            sample(distinct(2, 3), 0),
            sample(distinct(2, 3), (0, 1), True),
            sample(distinct(), 0),
            sample(real(0, 3), 1),
        ]
        for name in _EXTREMES
    },
    **{f"{name}_all": [sample(distinct(2, 3)), sample(distinct())] for name in "max min".split()},
    **{
        f"{name}_dim": [
            sample(distinct(2, 3), 1),
            sample(distinct(2, 3), 0, True),
            sample(distinct(), 0),
            sample(real(0, 3), 1),
        ]
        for name in "max min".split()
    },
    "aminmax": [
        sample(distinct(2, 3)),
        sample(distinct(2, 3), dim=1, keepdim=True),
        sample(distinct(), dim=0),
        sample(real(0, 3), dim=1),
    ],
    **{
        name: [
            sample(constant(distinct(2, 3))),
            sample(constant(distinct(2, 3)), 1),
            sample(constant(distinct()), 0),
            sample(constant(real(0, 3)), 1),
        ]
        for name in "argmax argmin".split()
    },
    **{
        name: [
            sample(constant(real(2, 3))),
            sample(constant(real(2, 3)), 1),
            sample(constant(real())),
            sample(constant(real(0))),
        ]
        for name in "all any count_nonzero".split()
    },
    **{
        f"{name}_correction": [
            both(real(2, 3)),
            both(real(2, 3), 1),
            both(real(2, 3), (0, 1), correction=0, keepdim=True),
            both(real(2, 3), 0, correction=1.5),
            sample(
                real(), correction=0, second="std" not in name
            ),  # the standard deviation of one number has no derivative
            sample(real(0, 3), 1),
        ]
        for name in _MOMENTS
    },
    "linalg_vector_norm": [
        *[both(real(2, 3), order) for order in (2, 1, 3, 0.5)],
        *[sample(distinct(2, 3), order) for order in (float("inf"), -float("inf"), 0, -1.5)],
        both(real(2, 3), 2, 1, True),
        sample(real(), 2),
        sample(real(0, 3), 2, 0),
    ],
    "norm_over": [
        both(real(2, 3), 2, 1, False),
        both(real(2, 3), 3, (0, 1), True),
        sample(real(), 2, 0, False),
        sample(real(0, 3), 2, 0, False),
    ],
    "pdist": [sample(real(4, 3)), sample(real(4, 3), 1.0), sample(real(4, 3), 3.0), sample(real(0, 3))],
    "trilinear": [
        sample(real(2, 1, 3), real(2, 3, 1), real(1, 3, 3), [], [], [], [2]),
        sample(real(2), real(3, 2), real(2), [0], [], [0], [1]),
        sample(real(0), real(3, 0), real(0), [0], [], [0], [1]),
    ],
    "dist": [
        *[sample(real(2, 3), real(2, 3), order) for order in (2, 1, 3)],
        both(real(2, 3), real(3)),
        sample(real(), real()),
        sample(real(0, 3), real(0, 3)),
    ],
    "cdist_direct": [
        *[sample(real(2, 3), real(4, 3), order) for order in (1.0, 2.0, 3.0)],
        sample(real(2, 2, 3), real(2, 1, 3), 2.0),
        sample(real(0, 3), real(4, 3), 2.0),
    ],
    "euclidean_dist": [sample(real(2, 3), real(4, 3)), sample(real(0, 3), real(4, 3))],
    "renorm": [
        *[both(real(2, 3), order, 0, 1.0) for order in (2, 1, 3)],
        sample(real(2, 3), 2, 1, 100.0),
        sample(real(0, 3), 2, 0, 1.0),
    ],
    "value_selecting_backward": [
        sample(real(2), (2, 3), 1, index(3, 2), False),
        sample(real(), (), 0, index(1), False),
        sample(real(0), (0, 3), 1, index(3, 0), False),
    ],
    "selected_values": [
        sample(real(2, 3), 1, index(3, 2), False),
        sample(real(2, 3), 0, index(2, 1, 3), True),
        sample(real(), 0, index(1), False),
        sample(real(0, 3), 1, index(3, 0), False),
    ],
    # softmax
    **{
        f"{name}_of": [sample(real(2, 3), 0), sample(real(2, 3), 1), sample(real(), 0), sample(real(0, 3), 1)]
        for name in "softmax log_softmax".split()
    },
    **{
        f"{name}_backward": [
            sample(real(2, 3), real(2, 3), 0),
            sample(real(2, 3), real(2, 3), 1),
            sample(real(), real(), 0),
            sample(real(0, 3), real(0, 3), 1),
        ]
        for name in "softmax log_softmax".split()
    },
    "logsumexp": [sample(real(2, 3), 0), sample(real(2, 3), (0, 1), True), sample(real(), 0), sample(real(2, 0), 1)],
    # scans and sorting
    **{
        name: [both(real(2, 3), 0), both(real(2, 3), 1), both(real(), 0), both(real(0, 3), 1)]
        for name in "cumsum cumprod".split()
    },
    "logcumsumexp": [sample(real(2, 3), 0), sample(real(2, 3), 1), sample(real(), 0), sample(real(0, 3), 1)],
    **{
        name: [sample(distinct(2, 3), 0), sample(distinct(2, 3), 1), sample(distinct(), 0), sample(real(0, 3), 1)]
        for name in "cummax cummin".split()
    },
    **{
        name: [sample(distinct(2, 3)), sample(distinct(2, 3), 0, True), sample(distinct()), sample(real(0, 3))]
        for name in "sort_default sort_stable".split()
    },
    "topk": [
        sample(distinct(2, 4), 2),
        sample(distinct(4, 2), 3, 0, False),
        sample(distinct(), 1),
        sample(real(0, 3), 2),
    ],
    "kthvalue": [
        sample(distinct(2, 4), 2),
        sample(distinct(4, 2), 3, 0, True),
        sample(distinct(), 1),
        sample(real(0, 3), 2),
    ],
    "mode": [sample(distinct(2, 3)), sample(distinct(2, 3), 0, True), sample(distinct()), sample(real(0, 3))],
    **{
        f"{name}_all": [sample(distinct(2, 3)), sample(distinct()), sample(constant(real(0)))]
        for name in "median nanmedian".split()
    },
    **{
        f"{name}_dim": [
            sample(distinct(2, 3), 1),
            sample(distinct(2, 3), 0, True),
            sample(distinct(), 0),
            sample(real(0, 3), 1),
        ]
        for name in "median nanmedian".split()
    },
    "unique_all": [sample(distinct(2, 3)), sample(distinct()), sample(real(0))],
    "unique_dim": [sample(distinct(4, 2), 0), sample(distinct(2, 4), 1)],
    "unique_runs": [sample(distinct(6)), sample(distinct(4, 2), 0), sample(distinct()), sample(real(0))],
    "histc": [
        sample(constant(real(6)), 4, -2, 2),
        sample(constant(real()), 4, -2, 2),
        sample(constant(real(0)), 4, -2, 2),
    ],
    "bincount": [sample(index(4, 6)), sample(index(4, 6), constant(real(6)), 5), sample(index(4, 0))],
    "segment_of_each": [
        sample(index(3, 4), True, 9),
        sample(index(3, 2, 4), True, 9),
        sample(index(3, 1), False, 4),
        sample(index(3, 0), True, 4),
    ],
    "searchsorted_tensor": [
        sample(exactly(1, 3, 5, 7), index(9, 2, 3)),
        sample(exactly(1, 3, 5, 7), index(9), right=True),
        sample(exactly(1, 3, 5, 7), index(9, 0)),
    ],
}
