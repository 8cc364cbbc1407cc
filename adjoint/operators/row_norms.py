"""Distances of the rows of matrices from one another, and slices cut down to a norm."""

from __future__ import annotations

from ..kernels import distance as kernels
from ..kernels.shapes import broadcast_shapes
from ..tensor import Tensor, wrap_dim
from .build import operator, public, tensors
from .out import STRICT
from .reduction import norm_gradient

# --- distances ------------------------------------------------------------------------------------------------


@operator(namespace=None, method=(), out=False, node="CdistBackward0", kernel=kernels.cdist)
class cdist_direct:
    """The `p`-norms of the differences of rows, computed one by one."""

    def forward(x1: Array, x2: Array, p): ...

    def grad_x1(grad, x1, x2, p, result, xp):
        return xp.cdist_backward(grad, x1, x2, p, result)

    def grad_x2(grad, x1, x2, p, result, xp):
        return xp.cdist_backward(grad.mT, x2, x1, p, result.mT)


@public(namespace=None, on_arrays=kernels.cdist_backward)
def cdist_backward(grad, x1, x2, p, distance):
    """The gradient of the first of the matrices between whose rows `distance` is."""
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    parts = norm_gradient(grad, difference, distance, p, -1, False, tensors)
    return (difference * 0 if parts is None else parts).sum(-2)


@operator(namespace=None, method=(), out=False, node="EuclideanDistBackward0", kernel=kernels.euclidean_dist)
class euclidean_dist:
    """Euclidean distances of rows by a product of matrices."""

    def forward(x1: Array, x2: Array): ...

    def grad_x1(grad, x1, x2, result, xp):
        return _euclidean_gradient(grad, x1, x2, result, xp)

    def grad_x2(grad, x1, x2, result, xp):
        return _euclidean_gradient(grad.mT, x2, x1, result.mT, xp)


def _euclidean_gradient(grad, x1, x2, distance, xp):
    ratio = xp.where(distance == 0, grad * 0, grad / distance)
    return x1 * xp.sum(ratio, -1, True) - ratio @ x2


_MODES = {
    None: None,
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": True,
    "donot_use_mm_for_euclid_dist": False,
}


@public()
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The `p`-norm distances between each row of `x1` and each of `x2`: shapes `(..., P, M)`, `(..., R, M)` to `(..., P, R)`.

    Euclidean distances of more than 25 rows are, unless `compute_mode` says otherwise, computed by a product of matrices,
    which is faster and less precise.

    >>> import adjoint as torch
    >>> torch.cdist(torch.tensor([[0.0, 0.0], [3.0, 0.0]]), torch.tensor([[0.0, 4.0]]))
    tensor([[4.],
            [5.]])
    """
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    _check_rows(x1, x2, p)
    one, two = x1._array.shape, x2._array.shape
    batch = broadcast_shapes(one[:-2], two[:-2])
    by_matmul = _MODES[compute_mode]
    if by_matmul is None:
        by_matmul = one[-2] > 25 or two[-2] > 25
    empty = 0 in (*batch, one[-2], two[-2], one[-1])
    if p != 2 or not by_matmul or empty:
        return cdist_direct(x1, x2, float(p))
    if batch:
        x1 = tensors.expand(x1, (*batch, *one[-2:])).contiguous().view((-1, *one[-2:]))
        x2 = tensors.expand(x2, (*batch, *two[-2:])).contiguous().view((-1, *two[-2:]))
    return euclidean_dist(x1, x2).view((*batch, one[-2], two[-2]))


def _check_rows(x1, x2, p):
    for position, (name, matrix) in enumerate((("x1", x1), ("x2", x2)), start=1):
        if not isinstance(matrix, Tensor):
            kind = type(matrix).__name__
            raise TypeError(f"cdist(): argument '{name}' (position {position}) must be Tensor, not {kind}")
    if not isinstance(p, (int, float)):
        raise TypeError(f"cdist(): argument 'p' (position 3) must be float, not {type(p).__name__}")
    for name, matrix in (("X1", x1), ("X2", x2)):
        if matrix._array.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {matrix._array.ndim}D")
    if x1._array.shape[-1] != x2._array.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1._array.shape[-1]} X2: {x2._array.shape[-1]}"
        )
    for name, matrix in (("X1", x1), ("X2", x2)):
        if not matrix.is_floating_point():
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {matrix.dtype.scalar_type}")
    if not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")


# --- bounded norms --------------------------------------------------------------------------------------------


@operator(inplace=True, same_out=STRICT, kernel=kernels.renorm)
class renorm:
    """The tensor with those slices along `dim` scaled down whose `p`-norm exceeds `maxnorm`.

    >>> import adjoint as torch
    >>> torch.renorm(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """

    def forward(self: Array, p: Number, dim: Int, maxnorm: Number): ...

    def grad_self(grad, self, p, dim, maxnorm, xp):
        ndim = len(self.shape)
        dims = tuple(d for d in range(ndim) if d != wrap_dim(dim, ndim))
        norm = xp.linalg_vector_norm(self, p, dims, True)
        factor = maxnorm / (norm + 1e-7)
        along = xp.sum(xp.real(grad.conj() * self), dims, True)
        of_norm = norm_gradient(-(factor / (norm + 1e-7)) * along, self, norm, p, dims, True, xp)
        return xp.where(norm > maxnorm, grad * factor + of_norm, grad)
