"""Distances and similarities, slices scaled down to a largest norm, and bilinear functions."""

from __future__ import annotations

from numpy import ndarray

from ... import dtypes
from ...dispatch.annotations import Array, Bool, Dims, Float, Int, Number
from ...dispatch.arguments import invalid_arguments, require
from ...dispatch.decorators import internal, operator, public, tensors
from ...dispatch.out import STRICT
from ...dtypes import promote_types
from ...kernels.linalg import distance as kernels
from ...kernels.reduce import moments
from ...kernels.runtime.shapes import broadcast_shapes
from ...tape.modes import FLAGS
from ...tensor import wrap, wrap_dim
from ..reduce.moments import norm_gradient


@internal(moments.norm, out=False, node="NormBackward1", narrow="halves", aten_name="norm", aten="ScalarOpt_dim")
class norm_over:
    """Return the `p`-norm over `dim` in the form that PyTorch's composed functions use."""

    def forward(self: Array, p: Number, dim: Dims, keepdim: Bool): ...

    def grad_self(grad, self, p, dim, keepdim, result, xp):
        return norm_gradient(grad, self, result, p, dim, keepdim, xp)


@public()
def cosine_similarity(x1, x2, dim=1, eps=1e-8, **names):
    """`x1 · x2 / (max(‖x1‖, eps) max(‖x2‖, eps))` along `dim`.

    The arguments are broadcast together.

    >>> import adjoint as torch
    >>> torch.cosine_similarity(torch.tensor([[3.0, 4.0]]), torch.tensor([[4.0, 3.0]]))
    tensor([0.9600])
    """
    if names:
        return _with_axis(cosine_similarity, names, x1, x2, dim=dim, eps=eps)
    dtype = x1.dtype
    if x2._array.dtype is not x1._array.dtype:
        dtype = promote_types(dtype, x2.dtype)
        x1, x2 = x1.to(dtype), x2.to(dtype)
    if not dtype.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {dtype.scalar_type}")
    if x1._array.shape != x2._array.shape:
        shape = broadcast_shapes(x1._array.shape, x2._array.shape)
        x1, x2 = x1.expand(shape), x2.expand(shape)
    return tensors.sum(_unit(x1, dim, eps) * _unit(x2, dim, eps), dim)


def _unit(x, dim, eps):
    """Divide `x` by its norm, or by `eps` if it is larger. A recorded call has the steps of PyTorch's graph."""
    if not x.requires_grad and not FLAGS.special and type(x._array) is ndarray:
        found = moments.unit(x._array, dim, eps)
        if found is not None:
            return wrap(found)
    norm = tensors.linalg_vector_norm(x, 2, dim, True).clone()
    tensors.clamp_min_to_number.inplace(norm.detach(), eps)  # the derivative ignores the bound
    return x / norm


@public()
def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False, **names):
    """The `p`-norm of `x1 - x2 + eps` along the last dimension.

    >>> import adjoint as torch
    >>> torch.pairwise_distance(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2))
    tensor([5.0000])
    """
    if names:
        return _with_axis(pairwise_distance, names, x1, x2, p=p, eps=eps, keepdim=keepdim)
    difference = x1 - x2
    shifted = tensors.add_number(difference, eps)
    return norm_over(shifted, p, max(shifted._array.ndim - 1, 0), keepdim)


def _with_axis(function, names, *args, **options):
    """Call `function` again, with NumPy's options `axis` and `keepdims` under PyTorch's names."""
    renamed = {"axis": "dim", "keepdims": "keepdim"}
    for name, value in names.items():
        if renamed.get(name) not in options:
            raise invalid_arguments(function.__name__, *args)
        options[renamed[name]] = value
    return function(*args, **options)


@operator(kernel=kernels.pdist, method=False, out=False, aten_name="_pdist_forward")
class pdist:
    """The `p`-norm distance between each pair of rows `i < j`, shape `(N (N - 1) / 2,)`.

    >>> import adjoint as torch
    >>> torch.pdist(torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426])
    """

    aten_gradients = {"self": "_pdist_backward(grad, self, p, result)"}

    def forward(self: Array, p: Float = 2.0): ...

    def grad_self(grad, self, p, result, xp):
        return xp.pdist_backward(grad, self, p, result)

    def batch(op, batch, value, p):
        """The norms of the differences of all pairs of rows."""
        rows = value._array.shape[0]
        if not value._array.size or rows < 2:
            return None
        first, second = tensors.triu_indices(rows, rows, 1).unbind()
        whole = batch.first(value)
        return tensors.linalg_vector_norm(whole.index_select(1, first) - whole.index_select(1, second), p, (-1,))


@public(namespace=None, on_arrays=kernels.pdist_backward)
def pdist_backward(grad, self, p, distance):
    """The gradient of the argument of `pdist`."""
    first, second = tensors.triu_indices(len(self), len(self), 1)
    difference = self.index_select(0, first) - self.index_select(0, second)
    parts = norm_gradient(grad, difference, distance, p, 1, False, tensors)
    zeros = tensors.zeros_like(self)
    return zeros if parts is None else zeros.index_add(0, first, parts).index_add(0, second, -parts)


@internal(kernels.trilinear, out=False, tangent="multilinear", aten_name="_trilinear")
class trilinear:
    """`(i1 * i2 * i3).sum(sumdim)`. Each factor first gets new dimensions at its positions in `expand`."""

    real_derivative = "_trilinear"

    def forward(i1: Array, i2: Array, i3: Array, expand1, expand2, expand3, sumdim): ...

    def grad_i1(grad, i2, i3, expand1, expand2, expand3, sumdim, xp):
        return xp.trilinear(grad, i2.conj(), i3.conj(), sumdim, expand2, expand3, expand1)

    def grad_i2(grad, i1, i3, expand1, expand2, expand3, sumdim, xp):
        return xp.trilinear(i1.conj(), grad, i3.conj(), expand1, sumdim, expand3, expand2)

    def grad_i3(grad, i1, i2, expand1, expand2, expand3, sumdim, xp):
        return xp.trilinear(i1.conj(), i2.conj(), grad, expand1, expand2, sumdim, expand3)

    def batch(op, batch, first, second, third, *dims):
        """Add the batch dimension to the `expand` dimensions of arguments that the whole batch shares."""
        values = (first, second, third)
        *expands, summed = ([dim + 1 for dim in each] for each in dims[:4])
        shared = [each if batch.has(value) else [0, *each] for value, each in zip(values, expands, strict=True)]
        return op.apply(*map(batch.first, values), *shared, summed)


@public()
def bilinear(input1, input2, weight, bias=None):
    """`input1ᵀ weight[k] input2 + bias[k]` for each output k.

    Shapes: `(..., I)`, `(..., J)`, `(K, I, J)`, `(K,)` to `(..., K)`.
    """
    first, second, shape = input1._array.shape, input2._array.shape, weight._array.shape
    if len(first) != len(second):
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {len(first)} and {len(second)}")
    for dim, (one, two) in enumerate(zip(first[:-1], second[:-1], strict=True)):
        if one != two:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {dim}: got {one} and {two}")
    for name, given, dim in (("input1", input1, 1), ("input2", input2, 2)):
        wanted, size = weight.size(dim), given.size(-1)
        if size != wanted:
            raise RuntimeError(f"bilinear(): {name} size does not match weight size: got {size} but expected {wanted}")
    if len(shape) != 3:
        raise RuntimeError("number of dimensions must match")
    if bias is not None and bias.size(0) != shape[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias._array.shape[0]} but expected {shape[0]}"
        )
    given = {"input1": input1, "input2": input2, "weight": weight} | ({} if bias is None else {"bias": bias})
    if any(tensor.dtype is not input1.dtype for tensor in given.values()):
        listed = ", ".join(f"{name}: {dtypes.C_NAMES[tensor.dtype]}" for name, tensor in given.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {listed}")
    if input1.dtype is dtypes.bool:
        raise NotImplementedError("\"bmm\" not implemented for 'Bool'")
    rows = 1
    for size in first[:-1]:
        rows *= size
    products = trilinear(
        input1.reshape((rows, first[-1])), weight, input2.reshape((rows, second[-1])), (1, 3), (0,), (1, 2), (2, 3)
    )
    result = products.view((*first[:-1], shape[0]))
    return result if bias is None else result + bias


# --- distances ------------------------------------------------------------------------------------------------


@internal(kernels.cdist, out=False, node="CdistBackward0", batch="broadcast", aten_name="_cdist_forward")
class cdist_direct:
    """The `p`-norms of the differences of rows, computed one by one."""

    aten_gradients = {
        "x1": "_cdist_backward(grad, x1, x2, p, result)",
        "x2": "_cdist_backward(grad.mT, x2, x1, p, result.mT)",
    }

    def forward(x1: Array, x2: Array, p): ...

    def grad_x1(grad, x1, x2, p, result, xp):
        return xp.cdist_backward(grad, x1, x2, p, result)

    def grad_x2(grad, x1, x2, p, result, xp):
        return xp.cdist_backward(grad.mT, x2, x1, p, result.mT)


@public(namespace=None, on_arrays=kernels.cdist_backward)
def cdist_backward(grad, x1, x2, p, distance):
    """The gradient of the first argument of `cdist`, whose result is `distance`."""
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    parts = norm_gradient(grad, difference, distance, p, -1, False, tensors)
    return (difference * 0 if parts is None else parts).sum(-2)


@internal(kernels.euclidean_dist, out=False, aten_name="_euclidean_dist")
class euclidean_dist:
    """Euclidean distances of rows by a product of matrices."""

    def forward(x1: Array, x2: Array): ...

    def grad_x1(grad, x1, x2, result, xp):
        return _euclidean_gradient(grad, x1, x2, result, xp)

    def grad_x2(grad, x1, x2, result, xp):
        return _euclidean_gradient(grad.mT, x2, x1, result.mT, xp)


def _euclidean_gradient(grad, x1, x2, distance, xp):
    ratio = xp.grad_by_distance(grad, distance)
    return x1 * xp.sum(ratio, -1, True) - ratio @ x2


@public(namespace=None, on_arrays=kernels.grad_by_distance)
def grad_by_distance(grad, distance):
    """`grad / distance`, and 0 at distance 0, where the distance is not differentiable."""
    return tensors.where(distance == 0, grad * 0, grad / distance)


_MODES = {
    None: None,
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": True,
    "donot_use_mm_for_euclid_dist": False,
}


@public()
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The `p`-norm distances between rows of `x1` and rows of `x2`: shapes `(..., P, M)`, `(..., R, M)` to `(..., P, R)`.

    For more than 25 rows, a matrix product computes Euclidean distances unless `compute_mode` forbids this. The product
    is faster and less precise.

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
    require("Tensor", x1, "cdist", "x1", 1)
    require("Tensor", x2, "cdist", "x2", 2)
    require("Float", p, "cdist", "p", 3)
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


@operator(inplace=True, same_out=STRICT, kernel=kernels.renorm, batch="sequential")
class renorm:
    """The tensor with slices along `dim` scaled down to the `p`-norm `maxnorm` if their norm is larger.

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
