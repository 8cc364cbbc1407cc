"""Samples of products of matrices and of linear algebra."""

import numpy

from .sampling import both, definite, exactly, matrix, real, sample


def _pivots(*values):
    """Return the numbers of the rows that elimination has exchanged, counted from 1."""
    return exactly(*values, dtype=numpy.int32)


_SHAPES = ((3, 3), (2, 3, 2), (2, 3), (0, 3, 3))
_NO_PIVOTS = exactly(dtype=numpy.int32, shape=(0, 3))


def _symmetric(matrix):
    return matrix + matrix.mH


def _lower(matrix):
    return matrix.tril() if matrix.shape[-1] == matrix.shape[-2] else matrix


def _upper(matrix):
    return matrix.triu() if matrix.shape[-1] == matrix.shape[-2] else matrix


def _unsigned(*parts):
    """Return a function that removes the sign (or phase) of vectors, because it is not determined."""
    return lambda result: [part.abs() if number in parts else part for number, part in enumerate(result)]


SAMPLES = {
    "mm": [both(real(2, 3), real(3, 4)), both(real(0, 3), real(3, 4)), both(real(2, 0), real(0, 4))],
    "bmm": [both(real(2, 2, 3), real(2, 3, 4)), both(real(0, 2, 3), real(0, 3, 4)), both(real(2, 2, 0), real(2, 0, 4))],
    "mv": [both(real(2, 3), real(3)), both(real(0, 3), real(3))],
    "dot": [both(real(3), real(3)), both(real(0), real(0))],
    "vdot": [both(real(3), real(3)), both(real(0), real(0))],
    "addmm": [
        both(real(2, 4), real(2, 3), real(3, 4)),
        both(real(4), real(2, 3), real(3, 4), beta=0.5, alpha=2.0),
        both(real(), real(0, 3), real(3, 4)),
    ],
    "addmv": [
        both(real(2), real(2, 3), real(3)),
        both(real(), real(2, 3), real(3), beta=0.5, alpha=2.0),
        both(real(0), real(0, 3), real(3)),
    ],
    "baddbmm": [
        both(real(2, 2, 4), real(2, 2, 3), real(2, 3, 4)),
        both(real(4), real(2, 2, 3), real(2, 3, 4), beta=0.5, alpha=2.0),
        both(real(), real(0, 2, 3), real(0, 3, 4)),
    ],
    "addbmm": [
        both(real(2, 4), real(2, 2, 3), real(2, 3, 4)),
        both(real(4), real(2, 2, 3), real(2, 3, 4), beta=0.5, alpha=2.0),
        both(real(), real(0, 2, 3), real(0, 3, 4)),
    ],
    "addr": [
        both(real(2, 3), real(2), real(3)),
        both(real(3), real(2), real(3), beta=0.5, alpha=2.0),
        both(real(), real(0), real(3)),
    ],
    "linalg_inv": [both(matrix(3, 3)), both(matrix(2, 2, 2)), both(matrix(0, 3, 3)), both(matrix(0, 0))],
    "linalg_solve": [
        both(matrix(3, 3), real(3, 2)),
        both(matrix(3, 3), real(3)),
        both(matrix(3, 3), real(2, 3), left=False),
        both(matrix(0, 3, 3), real(0, 3, 2)),
    ],
    "linalg_det": [both(matrix(3, 3)), both(matrix(2, 2, 2)), both(matrix(0, 3, 3))],
    "det_frame": [both(matrix(3, 3)), both(matrix(2, 2, 2)), both(matrix(0, 2, 2))],
    "linalg_slogdet": [both(matrix(3, 3)), both(matrix(2, 2, 2)), both(matrix(0, 3, 3))],
    "linalg_cross": [both(real(2, 3), real(2, 3)), both(real(3, 2), real(3, 1), dim=0), both(real(0, 3), real(0, 3))],
    "linalg_cholesky": [
        both(definite(3, 3), before=_symmetric),
        both(definite(2, 2, 2), upper=True, before=_symmetric),
        both(definite(0, 3, 3), before=_symmetric),
    ],
    "cholesky": [
        both(definite(3, 3), before=_symmetric),
        both(definite(2, 2, 2), True, before=_symmetric),
        both(definite(0, 3, 3), before=_symmetric),
    ],
    "linalg_eigh": [
        both(definite(3, 3), before=_symmetric, after=_unsigned(1)),
        sample(definite(2, 2, 2), "U", before=_symmetric, after=_unsigned(1)),
        both(definite(0, 3, 3), before=_symmetric, after=_unsigned(1)),
    ],
    "linalg_svd": [
        *[both(matrix(*shape), False, after=_unsigned(0, 2)) for shape in ((3, 3), (2, 3, 2), (2, 3), (0, 3, 3))]
    ],
    "linalg_qr": [both(matrix(3, 3)), both(matrix(2, 3, 2)), both(matrix(0, 3, 3))],
    "linalg_solve_triangular": [
        both(matrix(3, 3), real(3, 2), False),
        both(matrix(2, 3, 3), real(2, 2, 3), True, False),
        both(matrix(3, 3), real(3, 2), True, True, True),
        both(matrix(0, 3, 3), real(0, 3, 2), True),
    ],
    "solve_with_triangular": [
        both(real(3, 2), matrix(3, 3), True, False, False),
        both(real(2, 3, 2), matrix(2, 3, 3), False, True, True),
        both(real(2, 1, 3, 2), matrix(2, 3, 3), True, True, False),
        both(real(0, 3, 2), matrix(0, 3, 3), True, False, False),
    ],
    "cholesky_solve": [
        both(real(3, 2), matrix(3, 3), before=_lower),
        both(real(2, 2, 1), matrix(2, 2, 2), True, before=_upper),
        both(real(0, 3, 1), matrix(0, 3, 3), before=_lower),
    ],
    "cholesky_inverse": [
        both(matrix(3, 3), before=_lower),
        both(matrix(2, 2, 2), True, before=_upper),
        both(matrix(0, 3, 3), before=_lower),
    ],
    "linalg_cholesky_ex": [
        both(definite(3, 3), before=_symmetric),
        both(definite(2, 2, 2), upper=True, before=_symmetric),
        both(definite(0, 3, 3), before=_symmetric),
    ],
    "fft_c2c": [both(real(5), (0,), 0, True), both(real(2, 3), (0, 1), 1, False), both(real(0, 3), (1,), 2, True)],
    "fft_r2c": [
        sample(real(5), (0,), 0, False),
        *(sample(real(3, size), (0, 1), scale, True) for size, scale in ((1, 0), (2, 1), (4, 2), (5, 0))),
        sample(real(0, 3), (1,), 0, True),
    ],
    "fft_c2r": [
        *(both(real(2, size // 2 + 1), (0, 1), scale, size) for size, scale in ((1, 0), (2, 1), (4, 2), (5, 0))),
        both(real(0, 2), (1,), 0, 3),
    ],
    "fft_c2r_backward": [
        *(sample(real(3, size), (0, 1), scale) for size, scale in ((1, 0), (2, 1), (4, 2), (5, 0))),
        sample(real(0, 3), (1,), 0),
    ],
    "linalg_matrix_exp": [both(matrix(3, 3)), both(matrix(2, 2, 2)), both(matrix(0, 3, 3))],
    "linalg_eig": [
        both(matrix(3, 3), after=_unsigned(1)),
        both(matrix(2, 2, 2), after=_unsigned(1)),
        both(matrix(0, 3, 3), after=_unsigned(1)),
    ],
    "linalg_pinv": [
        *[both(matrix(*shape)) for shape in ((3, 3), (2, 3, 2), (2, 3), (0, 3, 3))],
        both(definite(3, 3), None, None, True, before=_symmetric),
    ],
    "linalg_lstsq": [
        both(matrix(3, 2), real(3, 2), None, None, False),
        both(matrix(2, 2, 3), real(2, 2), None, "gelsd", True),
        both(matrix(0, 3, 2), real(0, 3, 2), None, None, False),
    ],
    "linalg_matrix_rank": [both(matrix(3, 3)), both(matrix(2, 3, 2)), both(matrix(0, 3, 3))],
    "linalg_lu": [both(matrix(*shape)) for shape in _SHAPES],
    "linalg_lu_factor_ex": [both(matrix(*shape)) for shape in _SHAPES],
    "unpacked_factors": [
        both(matrix(3, 3), _pivots(2, 2, 3)),
        both(matrix(3, 2), _pivots(3, 2)),
        both(matrix(2, 3), _pivots(1, 2)),
        both(matrix(0, 3, 3), _NO_PIVOTS),
    ],
    "linalg_lu_solve": [
        *(both(matrix(3, 3), _pivots(2, 3, 3), real(3, 2), adjoint=adjoint) for adjoint in (False, True)),
        *(both(matrix(3, 3), _pivots(2, 3, 3), real(2, 3), left=False, adjoint=adjoint) for adjoint in (False, True)),
        both(matrix(3, 3), _pivots(2, 3, 3), real(2, 3, 1)),
        both(matrix(0, 3, 3), _NO_PIVOTS, real(0, 3, 2)),
    ],
    "linalg_inv_ex": [both(matrix(3, 3)), both(matrix(2, 2, 2)), both(matrix(0, 3, 3))],
    "linalg_solve_ex": [
        both(matrix(3, 3), real(3, 2)),
        both(matrix(3, 3), real(3)),
        both(matrix(3, 3), real(2, 3), left=False),
        both(matrix(0, 3, 3), real(0, 3, 2)),
    ],
    "linalg_ldl_factor_ex": [both(definite(3, 3)), both(definite(2, 2, 2), hermitian=True), both(definite(0, 3, 3))],
    "linalg_ldl_solve": [
        both(definite(3, 3), _pivots(1, 2, 3), real(3, 2)),
        both(definite(3, 3), _pivots(-2, -2, 3), real(2, 3, 2), hermitian=True),
        both(definite(0, 3, 3), _NO_PIVOTS, real(0, 3, 2)),
    ],
    "geqrf": [sample(matrix(3, 2)), sample(matrix(2, 2, 3)), sample(matrix(0, 3, 3))],
    "linalg_householder_product": [
        both(matrix(3, 3), real(3)),
        both(matrix(2, 4, 3), real(2, 2)),
        both(matrix(0, 3, 3), real(0, 3)),
    ],
    "ormqr": [
        both(matrix(3, 2), real(2), real(3, 2)),
        both(matrix(2, 3, 2), real(2, 2), real(2, 2, 3), False, True),
        both(matrix(3, 2), real(2), real(3, 2), True, True),
        both(matrix(3, 3), real(3), real(1, 3), False),
        both(matrix(0, 3, 3), real(0, 3), real(0, 3, 2)),
    ],
}
