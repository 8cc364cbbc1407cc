"""Determinants and their logarithms (`adjoint.linalg`)."""

from __future__ import annotations

from ...dispatch.annotations import Array
from ...dispatch.decorators import internal, public, tensors
from ...dispatch.return_types import return_type
from ...kernels.linalg import determinants as kernels
from ..declaring.formulas import added
from ..math.pointwise import is_complex
from .decompositions import conjugate_transpose, factors_shown, named, of_matrices

SLOGDET = return_type("slogdet", "sign", "logabsdet")


@internal(kernels.det_frame, outputs=("left", "right", "kept", "order"), batch="leading")
class det_frame:
    """Return bases in which matrices are diagonal, and a mask of the regular matrices, without derivatives."""

    def forward(A: Array): ...


@public(namespace=None, on_arrays=kernels.det_gradient)
def det_gradient(grad, A, result):
    """`grad` times the conjugate of the determinant's derivative. All orders are correct, even for singular matrices."""
    if not A._array.size:
        return tensors.zeros_like(A)
    scale = grad[..., None, None]
    if A._array.shape[-1] == 1:
        return scale
    left, right, kept, order = det_frame(A)
    if order._array.shape[-1] == 1:
        return (scale * result[..., None, None].conj()) * conjugate_transpose(tensors.linalg_inv_ex(A)[0])
    return scale * conjugate_transpose(right @ _adjugate(left @ A @ right, kept, order) @ left)


def _adjugate(matrix, kept, order):
    """Return the derivative of the determinant, transposed.

    `kept` selects the rows and columns that form a regular matrix.

    The inverse of the regular part leaves a Schur complement with `order` rows and a small determinant. This
    determinant and its derivative are polynomials, computed by Faddeev and LeVerrier's recurrence (Gantmacher 1959,
    "The theory of matrices", chapter IV). Therefore, derivatives of higher orders are also correct.
    """
    rest = 1 - kept
    regular = matrix * (kept[..., None] * kept[..., None, :]) + tensors.diag_embed(rest)
    inverse = tensors.linalg_inv_ex(regular)[0] * (kept[..., None] * kept[..., None, :])
    above, below = matrix * (kept[..., None] * rest[..., None, :]), matrix * (rest[..., None] * kept[..., None, :])
    to_left, to_above = below @ inverse, inverse @ above
    complement = matrix * (rest[..., None] * rest[..., None, :]) - to_left @ above
    power, coefficient = complement * 0, order[..., 0] * 0 + 1
    determinant, adjugate = order[..., 0], power
    for size in range(1, order._array.shape[-1]):
        power = coefficient[..., None, None] * tensors.diag_embed(rest) - complement @ power
        coefficient = tensors.diagonal(complement @ power, 0, -2, -1).sum(-1) / size
        determinant = determinant + order[..., size] * coefficient
        adjugate = adjugate + order[..., size, None, None] * power
    outer = adjugate - to_above @ adjugate
    inner = determinant[..., None, None] * inverse + outer - outer @ to_left
    return linalg_det(regular)[..., None, None] * inner


@of_matrices(kernels.det, aten_name="_linalg_det")
class linalg_det:
    """The determinant of (a stack of) square matrices."""

    saved_display = factors_shown(transposed=True)

    def forward(A: Array): ...

    def grad_A(grad, A, result, xp):
        return xp.det_gradient(grad, A, result)


@public(name="det", method=("det",), numpy_names=True)
def det_function(input):
    """The determinant of (a stack of) square matrices; see `linalg.det`."""
    return linalg_det(input)


@of_matrices(kernels.slogdet, outputs=("sign", "logabsdet"), aten_name="_linalg_slogdet")
class linalg_slogdet:
    """The sign (or phase) of the determinant and the logarithm of its absolute value."""

    saved_display = factors_shown(transposed=True)

    def forward(A: Array): ...

    def grad_A(grads, A, sign, xp):
        to_sign, to_log = grads
        total = to_log
        if to_sign is not None and is_complex(A):
            turn = xp.imag_part(to_sign.conj() * sign) * (-1j)
            total = added(total, turn)
        if total is None:
            return A * 0
        return total.reshape((*total.shape, 1, 1)) * conjugate_transpose(xp.linalg_inv_ex(A)[0])


@public(namespace=None, on_arrays=lambda value: value.imag)
def imag_part(value):
    """The imaginary part."""
    return tensors.imag(value)


@public(name="slogdet", method=("slogdet",), numpy_names=True)
def slogdet_function(input, *, out=None):
    """The sign (or phase) of the determinant and the logarithm of its absolute value; see `linalg.slogdet`."""
    return named(SLOGDET, linalg_slogdet(input, out=out), out)


@public(method=True, numpy_names=True)
def logdet(input):
    """The logarithm of the determinant, which is NaN for a negative determinant."""
    sign, log = linalg_slogdet(input)
    if input._array.dtype.kind == "c":
        return log + sign.log()
    return tensors.where(sign == -1.0, float("nan"), log)
