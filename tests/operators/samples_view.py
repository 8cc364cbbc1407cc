"""Samples of operators that rearrange elements: views, parts, joining, padding, copies."""

import adjoint as torch

from .sampling import Sample, Value, both, real, sample


def _geometry(*shape):
    from adjoint.tape.views import Geometry

    return Value(lambda: Geometry(torch.zeros(shape, dtype=torch.float64)._array))


_EMPTY, _NUMBER = real(0, 3), real()

_UPSAMPLINGS = {
    **{f"upsample_{mode}{dims}d": dims for mode in ("nearest", "nearest_exact") for dims in (1, 2, 3)},
    "upsample_linear1d": 1,
    "upsample_bilinear2d": 2,
    "upsample_trilinear3d": 3,
    "upsample_bicubic2d": 2,
    "upsample_bilinear2d_aa": 2,
    "upsample_bicubic2d_aa": 2,
    "upsample_lanczos2d_aa": 2,
}

SAMPLES = {
    "view_shape": [both(real(2, 3), (3, 2)), both(real(2, 3), (-1,)), both(_EMPTY, (3, 0)), both(_NUMBER, (1, 1))],
    "reshape_alias": [both(real(2, 3), (3, 2)), both(_EMPTY, (3, 0)), both(_NUMBER, (1, 1))],
    "unsafe_view": [both(real(2, 3), (3, 2)), both(_EMPTY, (3, 0)), both(_NUMBER, (1, 1))],
    "unsqueeze": [both(real(2, 3), 1, dims=3), both(_EMPTY, 0, dims=3), both(_NUMBER, 0, dims=1)],
    "squeeze_all": [both(real(1, 3, 1)), both(real(1, 0)), both(_NUMBER)],
    "squeeze_dim": [both(real(2, 1, 3), 1), both(real(2, 3), 1), both(real(1, 0), 0), both(_NUMBER, 0)],
    "squeeze_dims": [both(real(1, 2, 1), (0, 2)), both(real(1, 0), (0,)), both(_NUMBER, (0,))],
    "expand": [both(real(3), (2, 3)), both(real(2, 1), (4, 2, 3)), both(real(1, 0), (2, 0)), both(_NUMBER, (2, 3))],
    "transpose": [both(real(2, 3), 0, 1), both(real(2, 3, 4), 2, 0), both(_EMPTY, 0, 1), both(_NUMBER, 0, 0)],
    "t": [both(real(2, 3)), both(real(3)), both(_EMPTY), both(_NUMBER)],
    "permute": [both(real(2, 3, 4), (2, 0, 1)), both(_EMPTY, (1, 0)), both(_NUMBER, ())],
    "alias": [both(real(2, 3)), both(_EMPTY), both(_NUMBER)],
    "cat": [both([real(2, 3), real(1, 3)]), both([real(2, 3), real(2, 1)], 1), both([_EMPTY, real(2, 3)])],
    "stack": [
        both([real(2, 3), real(2, 3)], dims=3),
        both([real(2, 3), real(2, 3)], 2, dims=3),
        both([_EMPTY, _EMPTY], dims=3),
        both([_NUMBER, _NUMBER], dims=1),
    ],
    "block_diagonal": [both([real(2, 3), real(1, 2)]), both([_NUMBER, real(2)]), both([real(0, 2), real(1, 1)])],
    "repeat": [both(real(2, 3), (2, 1)), both(real(3), (2, 2)), both(_EMPTY, (2, 2)), both(_NUMBER, (3,))],
    "roll": [both(real(2, 3), (1, 2), (0, 1)), both(_EMPTY, (1,), (1,)), both(_NUMBER, (1,), (0,))],
    "flip": [both(real(2, 3), (1,)), both(real(2, 3), (0, 1)), both(_EMPTY, (1,)), both(_NUMBER, (0,))],
    "rot90": [*[both(real(2, 3), turns) for turns in range(5)], both(real(2, 3, 2), 1, (1, 2)), both(_EMPTY)],
    "select": [both(real(2, 3), 1, 2), both(real(2, 3), 0, -1), both(_EMPTY, 1, 2)],
    "select_backward": [both(real(2), (2, 3), 1, 2), both(_NUMBER, (3,), 0, 1), both(real(0), (0, 3), 1, 2)],
    "slice": [
        both(real(4, 3), 0, 1, 3),
        both(real(4, 3), 1, None, None, 2),
        both(_EMPTY, 1, 0, 2),
        both(real(4), 0, 3, 1),
    ],
    "slice_backward": [
        both(real(2, 3), (4, 3), 0, 1, 3, 1),
        both(real(4, 2), (4, 3), 1, None, None, 2),
        both(real(0, 2), (0, 3), 1, 0, 2, 1),
    ],
    "diagonal": [both(real(3, 3)), both(real(2, 4), 1), both(real(2, 3, 4), -1, 2, 1), both(_EMPTY)],
    "diagonal_backward": [
        both(real(3), (3, 3), 0, 0, 1),
        both(real(2), (2, 4), 1, 0, 1),
        both(real(0), (0, 3), 0, 0, 1),
    ],
    "unfold": [both(real(6), 0, 2, 2), both(real(2, 5), 1, 3, 1), both(_EMPTY, 1, 2, 1), both(_NUMBER, 0, 1, 1)],
    "unfold_backward": [
        both(real(3, 2), (6,), 0, 2, 2),
        both(real(2, 3, 3), (2, 5), 1, 3, 1),
        both(real(0, 2, 2), (0, 3), 1, 2, 1),
    ],
    "unbind": [both(real(2, 3)), both(real(2, 3), 1), both(_EMPTY, 1)],
    "split_size": [both(real(5, 2), 2), both(real(2, 5), 3, 1), both(_EMPTY, 2, 1)],
    "split_with_sizes": [both(real(5, 2), (2, 3)), both(real(2, 5), (1, 4), 1), both(_EMPTY, (1, 2), 1)],
    "unsafe_split": [both(real(5, 2), 2), both(real(2, 5), 3, 1), both(_EMPTY, 2, 1)],
    "narrow_copy": [both(real(4, 3), 0, 1, 2), both(real(4, 3), 1, 0, 2), both(_EMPTY, 1, 0, 2)],
    "select_scatter": [
        sample(real(2, 3), real(2), 1, 2),
        sample(real(2, 3), real(3), 0, 1),
        sample(_EMPTY, real(0), 1, 2),
    ],
    "slice_scatter": [
        sample(real(4, 3), real(2, 3), 0, 1, 3),
        sample(real(4, 3), real(4, 2), 1, None, None, 2),
        sample(_EMPTY, real(0, 2), 1, 0, 2),
    ],
    "diagonal_scatter": [both(real(3, 3), real(3)), both(real(2, 4), real(2), 1), both(_EMPTY, real(0))],
    "tril": [both(real(3, 3)), both(real(2, 3, 4), 1), both(_EMPTY)],
    "triu": [both(real(3, 3)), both(real(2, 3, 4), -1), both(_EMPTY)],
    "diag_embed": [both(real(3), dims=2), both(real(2, 3), 1, 0, 2, dims=3), both(_EMPTY, dims=3)],
    "diagonal_copy": [both(real(3, 3)), both(real(2, 3, 4), -1, 2, 1), both(_EMPTY)],
    "trace": [both(real(3, 3)), both(real(2, 4)), both(_EMPTY)],
    "view_as_real": [
        Sample((real(2, 3),), {}, complex_numbers="only"),
        Sample((_EMPTY,), {}, complex_numbers="only"),
        Sample((_NUMBER,), {}, complex_numbers="only"),
    ],
    "view_as_complex": [sample(real(3, 2)), sample(real(0, 2)), sample(real(2))],
    "as_strided_scatter": [
        sample(real(3, 4), real(2, 2), (2, 2), (1, 5), 1),
        sample(real(3, 4), real(0, 2), (0, 2), (4, 1)),
    ],
    "as_strided": [
        both(real(6), (2, 2), (3, 1)),
        both(real(6), (2, 2), (1, 1), 1),
        both(real(6), (3,), (0,)),
        both(_NUMBER, (2,), (0,)),
        both(real(0), (0, 2), (1, 1)),
    ],
    "as_strided_backward": [
        both(real(2, 2), _geometry(6), (2, 2), (3, 1), 0),
        both(real(2, 2), _geometry(6), (2, 2), (1, 1), 1),
        both(real(0, 2), _geometry(0), (0, 2), (1, 1), 0),
    ],
    "as_strided_gather": [
        both(real(6), _geometry(6), (2, 2), (3, 1), 0),
        both(real(6), _geometry(6), (2, 2), (1, 1), 1),
        both(real(0), _geometry(0), (0, 2), (1, 1), 0),
    ],
    "constant_pad_nd": [
        both(real(2, 3), (1, 2)),
        both(real(2, 3), (1, 0, 2, 1), 0.5),
        both(real(2, 3), (-1, 1)),
        both(_EMPTY, (1, 1)),
    ],
    **{
        f"reflection_pad{n}d": [
            both(real(2, *[4] * n), (1, 2) * n),
            both(real(2, 1, *[4] * n), (0, 1) * n),
            both(real(0, 1, *[4] * n), (1, 1) * n),
        ]
        for n in (1, 2, 3)
    },
    **{
        f"replication_pad{n}d": [
            both(real(2, *[3] * n), (1, 2) * n),
            both(real(2, 1, *[3] * n), (0, 1) * n),
            both(real(0, 1, *[3] * n), (1, 1) * n),
        ]
        for n in (1, 2, 3)
    },
    **{
        f"{kind}_pad{n}d_backward": [
            both(real(1, *[6] * n), real(1, *[4] * n), (1, 1) * n),
            both(real(0, 1, *[6] * n), real(0, 1, *[4] * n), (1, 1) * n),
        ]
        for kind in ("reflection", "replication")
        for n in (1, 2, 3)
    },
    "im2col": [
        both(real(1, 2, 3, 4), (2, 2), (1, 1), (0, 0), (1, 1)),
        both(real(2, 4, 5), (2, 1), (2, 1), (1, 2), (1, 2)),
        both(real(0, 2, 3, 4), (2, 2), (1, 1), (0, 0), (1, 1)),
    ],
    "col2im": [
        both(real(1, 8, 6), (3, 4), (2, 2), (1, 1), (0, 0), (1, 1)),
        both(real(4, 20), (4, 5), (2, 1), (2, 1), (1, 2), (1, 2)),
        both(real(0, 8, 6), (3, 4), (2, 2), (1, 1), (0, 0), (1, 1)),
    ],
    **{
        name: [sample(real(1, 2, *(2, 3, 4)[-dims:]), (3,) * dims, False, (None,) * dims), empty]
        for name, dims in _UPSAMPLINGS.items()
        for empty in [sample(real(0, 2, *(2, 3, 4)[-dims:]), (3,) * dims, False, (1.5,) * dims)]
    },
    "resample_gradient": [
        sample(real(1, 2, 3, 3), (2, 3), "linear", True, False, (None, None)),
        sample(real(1, 2, 3), (2,), "nearest", False, False, (None,)),
        sample(real(0, 2, 3), (2,), "nearest", False, False, (None,)),
    ],
    "pixel_shuffle": [both(real(1, 4, 2, 3), 2), both(real(0, 4, 2, 3), 2)],
    "pixel_unshuffle": [both(real(1, 1, 4, 6), 2), both(real(0, 1, 4, 6), 2)],
    "channel_shuffle": [both(real(1, 4, 2, 3), 2), both(real(0, 4, 2, 3), 2)],
    "to_dtype": [
        sample(real(2, 3), torch.float64),
        sample(real(2, 3), torch.complex128),
        both(_EMPTY, torch.complex128),
        both(_NUMBER, torch.complex128),
    ],
    "clone": [both(real(2, 3)), both(_EMPTY), both(_NUMBER)],
    "copy": [both(real(2, 3), real(2, 3)), both(real(2, 3), real(3)), both(_EMPTY, _EMPTY), both(_NUMBER, _NUMBER)],
    "fill": [both(real(2, 3), 1.5), both(_EMPTY, 1.5), both(_NUMBER, 1.5)],
    "fill_tensor": [both(real(2, 3), _NUMBER), both(_EMPTY, _NUMBER), both(_NUMBER, _NUMBER)],
    "full_of_number": [both(real(2, 3), 1.5), both(_EMPTY, 1.5), both(_NUMBER, 1.5)],
    "full_of_tensor": [both(real(2, 3), _NUMBER), both(_EMPTY, _NUMBER), both(_NUMBER, _NUMBER)],
    "fill_diagonal": [both(real(3, 3), 1.5), both(real(5, 2), 1.5, True)],
    "zero": [both(real(2, 3)), both(_EMPTY), both(_NUMBER)],
}

_COPIES = """
    alias as_strided expand permute select slice split_with_sizes squeeze_all squeeze_dim squeeze_dims t transpose unbind unfold
    unsqueeze view_as_complex view_as_real view_shape
""".split()

SAMPLES |= {f"{name}_copy": SAMPLES[name] for name in _COPIES}
SAMPLES |= {
    "split_copy": SAMPLES["split_size"],
    "detach_copy": SAMPLES["alias"],
    "forward_primal": SAMPLES["alias"],
    "unsafe_split_with_sizes": SAMPLES["split_with_sizes"],
}
