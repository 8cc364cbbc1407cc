"""Samples of reading and writing by indices and masks."""

import adjoint as torch

from .sampling import Value, both, exactly, index, mask, permutation, real, sample

_EMPTY, _NUMBER = real(0, 3), real()
_REDUCTIONS = "sum prod mean amax amin".split()


def _indices(*parts):
    """Return integer indices for an internal operator. None stands for a whole dimension."""
    from adjoint.operators.index.indexing import Indices

    return Value(lambda: Indices.of([None if part is None else torch.tensor(part) for part in parts]))


_SCATTER = [
    (real(3, 4), 0, index(3, 2, 4)),
    (real(3, 4), 1, index(4, 3, 2)),
    (_NUMBER, 0, exactly(0)),
    (_EMPTY, 1, index(3, 0, 2)),
]
_SOURCES = [real(2, 4), real(3, 2), real(1), real(0, 2)]
_APART = [(real(3, 4), 1, permutation(3, 4), real(3, 4)), (_EMPTY, 1, permutation(0, 3), real(0, 3))]

SAMPLES = {
    "gather": [both(*call) for call in _SCATTER],
    "gather_backward": [
        both(real(2, 4), (3, 4), 0, index(3, 2, 4)),
        both(real(3, 2), (3, 4), 1, index(4, 3, 2)),
        both(real(1), (), 0, exactly(0)),
        both(real(0, 2), (0, 3), 1, index(3, 0, 2)),
    ],
    "scatter_source": [both(*call) for call in _APART],
    "scatter_number": [both(*call, 1.5) for call in _SCATTER],
    "scatter_combined": [sample(*call, "add") for call in _APART],
    "scatter_number_combined": [sample(*call, 1.5, "add") for call in _SCATTER],
    "scatter_add": [both(*call, source) for call, source in zip(_SCATTER, _SOURCES, strict=True)],
    "scatter_reduce": [
        sample(*call, source, reduction, include_self=include)
        for reduction in _REDUCTIONS
        for include in (True, False)
        for call, source in zip(_SCATTER, _SOURCES, strict=True)
    ],
    "index_select": [
        both(real(3, 4), 0, index(3, 5)),
        both(real(3, 4), 1, index(4, 2)),
        both(_EMPTY, 1, index(3, 2)),
        both(_NUMBER, 0, exactly(0)),
    ],
    "index_select_backward": [
        both(real(5, 4), (3, 4), 0, index(3, 5)),
        both(real(3, 2), (3, 4), 1, index(4, 2)),
        both(real(0, 2), (0, 3), 1, index(3, 2)),
        both(real(1), (1,), 0, exactly(0)),
    ],
    "sum_of_runs": [
        both(real(5, 4), exactly(0, 2, 2, 4)),
        both(real(3, 2, 2), exactly(1, 3, 5), index(3, 6), True),
        both(real(0, 3), exactly(0, 0)),
    ],
    "sum_of_runs_backward": [
        both(real(3, 4), (5, 4), exactly(0, 2, 2, 4)),
        both(real(2, 2, 2), (3, 2, 2), exactly(1, 3, 5), index(3, 6), True),
        both(real(1, 3), (0, 3), exactly(0, 0)),
        both(real(3, 0), (5, 0), exactly(0, 2, 2, 4)),
    ],
    "index_add": [
        both(real(3, 4), 0, index(3, 5), real(5, 4)),
        both(real(3, 4), 1, index(4, 2), real(3, 2), alpha=1.5),
        both(_EMPTY, 1, index(3, 2), real(0, 2)),
        both(_NUMBER, 0, exactly(0), _NUMBER),
    ],
    "index_reduce": [
        sample(real(3, 4), dim, index(size, 5), real(*shape), reduction, include_self=include)
        for reduction in "prod mean amax amin".split()
        for include in (True, False)
        for dim, size, shape in ((0, 3, (5, 4)), (1, 4, (3, 5)))
    ]
    + [sample(_EMPTY, 1, index(3, 2), real(0, 2), "mean"), sample(_NUMBER, 0, exactly(0), _NUMBER, "prod")],
    "is_among": [
        sample(index(5, 2, 3), index(5, 4)),
        sample(index(5, 0, 3), index(5, 4)),
        sample(index(5), index(5, 4), True),
    ],
    "nonzero_static": [sample(mask(2, 3), size=4), sample(mask(0, 3), size=2), sample(mask(), size=1)],
    "index_copy": [
        both(real(3, 4), 0, exactly(2, 0), real(2, 4)),
        both(real(3, 4), 1, exactly(1, 3), real(3, 2)),
        both(_EMPTY, 1, exactly(2, 0), real(0, 2)),
        both(_NUMBER, 0, exactly(0), _NUMBER),
    ],
    "index_fill_number": [
        both(real(3, 4), 0, exactly(2, 0), 1.5),
        both(real(3, 4), 1, exactly(1), 1.5),
        both(_EMPTY, 1, exactly(1), 1.5),
        both(_NUMBER, 0, exactly(0), 1.5),
    ],
    "index_fill_tensor": [
        both(real(3, 4), 0, exactly(2, 0), _NUMBER),
        both(real(3, 4), 1, exactly(1), _NUMBER),
        both(_EMPTY, 1, exactly(1), _NUMBER),
        both(_NUMBER, 0, exactly(0), _NUMBER),
    ],
    "take": [both(real(3, 4), index(12, 2, 3)), both(_NUMBER, exactly(0)), both(real(3), index(3, 0))],
    "take_backward": [
        both(real(2, 3), (3, 4), index(12, 2, 3)),
        both(real(1), (), exactly(0)),
        both(real(0), (3,), index(3, 0)),
    ],
    "put": [
        both(real(3, 4), exactly(2, 7, 5), real(3)),
        both(real(3, 4), exactly(2, 7, 2), real(3), True),
        both(_NUMBER, exactly(0), real(1)),
        both(real(3), index(3, 0), real(0)),
    ],
    "index": [
        both(real(3, 4), _indices([2, 0, 2])),
        both(real(3, 4), _indices(None, [1, 3])),
        both(real(0, 3), _indices(None, [1])),
        both(real(3, 4), _indices([[0], [2]], [1, 3])),
    ],
    "index_backward": [
        both(real(3, 4), (3, 4), _indices([2, 0, 2])),
        both(real(3, 2), (3, 4), _indices(None, [1, 3])),
        both(real(0, 1), (0, 3), _indices(None, [1])),
        both(real(2, 2), (3, 4), _indices([[0], [2]], [1, 3])),
    ],
    "index_put_arrays": [
        both(real(3, 4), _indices([2, 0]), real(2, 4)),
        both(real(3, 4), _indices(None, [1, 3]), real(2)),
        both(real(3, 4), _indices([2, 0, 2]), real(3, 4), True),
        both(real(0, 3), _indices(None, [1]), real(0, 1)),
    ],
    "masked_fill_number": [
        both(real(2, 3), mask(2, 3), 1.5),
        both(real(2, 3), mask(3), 1.5),
        both(_EMPTY, mask(0, 3), 1.5),
        both(_NUMBER, mask(), 1.5),
    ],
    "masked_fill_tensor": [
        both(real(2, 3), mask(2, 3), _NUMBER),
        both(_EMPTY, mask(3), _NUMBER),
        both(_NUMBER, mask(), _NUMBER),
    ],
    "masked_select": [
        both(real(2, 3), mask(2, 3)),
        both(real(2, 3), mask(3)),
        both(_EMPTY, mask(0, 3)),
        both(_NUMBER, mask()),
    ],
    "masked_select_backward": [
        both(real(2), (3,), exactly(True, False, True, dtype=bool)),
        both(real(0), (0,), mask(0)),
        both(real(1), (), exactly(True, dtype=bool)),
    ],
    "masked_scatter": [
        both(real(2, 3), mask(2, 3), real(6)),
        both(_EMPTY, mask(0, 3), real(2)),
        both(_NUMBER, mask(), real(2)),
    ],
    "masked_scatter_backward": [
        both(real(3), exactly(True, False, True, dtype=bool), (2, 3)),
        both(real(0), mask(0), (0, 3)),
        both(real(1), mask(1), (2,)),
    ],
    "nonzero_places": [sample(mask(2, 3)), sample(mask(0, 3)), sample(mask())],
    "embedding": [
        sample(real(4, 3), index(4, 2, 2)),
        sample(real(4, 3), exactly(0, 2, 0, 3), 1),
        sample(real(4, 3), exactly(2, 0, 3), -1, True),
        sample(real(4, 3), index(4, 0)),
        sample(real(4, 3), index(4)),
    ],
    "embedding_dense_backward": [
        sample(real(2, 2, 3), index(4, 2, 2), 4, -1, False),
        sample(real(3, 3), exactly(2, 0, 3), 4, 1, True),
        sample(real(0, 3), index(4, 0), 4, -1, False),
    ],
}
