"""Samples of products of matrices and of linear algebra."""

from .sampling import both, definite, matrix, real, sample


def _symmetric(matrix):
    return matrix + matrix.mH


def _unsigned(*parts):
    """Vectors are determined up to their sign (or phase)."""
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
        both(matrix(3, 3), real(2, 3), False),
        both(matrix(0, 3, 3), real(0, 3, 2)),
    ],
    "linalg_det": [both(matrix(3, 3)), both(matrix(2, 2, 2)), both(matrix(0, 3, 3))],
    "linalg_slogdet": [both(matrix(3, 3)), both(matrix(2, 2, 2)), both(matrix(0, 3, 3))],
    "linalg_cross": [both(real(2, 3), real(2, 3)), both(real(3, 2), real(3, 1), 0), both(real(0, 3), real(0, 3))],
    "linalg_cholesky": [
        both(definite(3, 3), before=_symmetric),
        both(definite(2, 2, 2), True, before=_symmetric),
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
}
