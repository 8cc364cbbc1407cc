"""Products of matrices and vectors, and functions composed of them."""

from __future__ import annotations

import math
import sys

import numpy

from ..._runtime.tracebacks import shorten
from ...codegen.kernel import Kernel
from ...device import strided
from ...dispatch.annotations import Array, Number
from ...dispatch.calls import call_of
from ...dispatch.decorators import operator, public, tensors
from ...dispatch.lazy_stubs import repeated
from ...dispatch.out import STRICT, stored
from ...dispatch.python_operators import not_known
from ...dispatch.sequential import is_batched
from ...dispatch.signatures import type_name
from ...kernels.linalg import matmul as kernels
from ...kernels.memory.storage import element_strides
from ...kernels.runtime.addresses import may_share_memory
from ...kernels.runtime.shapes import broadcast_shapes
from ...tape.edges import has_no_history
from ...tape.saved import unpack
from ...tensor import Tensor
from ..shape.view import reshaped

DOT = "result dtype {given} does not match input dtype {wanted}"
MV = "addmv input tensors must have the same dtype, but got {given}, {wanted}, and {wanted}"
ADDBMM = "self and mat2 must have the same dtype, but got {given} and {wanted}"


def _transposed(matrix, xp):
    """Return the transposed matrix. Dispatch modes and classes see `aten.t`, as in PyTorch's backward."""
    return matrix.mT if type(matrix) is numpy.ndarray else xp.t(matrix)


def _like_first(grad, mat2, xp):
    """Return the gradient of the first factor in the memory layout of that factor."""
    return xp.mm(grad, _transposed(mat2, xp).conj())


def _like_second(grad, mat1, strides, xp):
    """Return the gradient of the second factor in the memory layout of that factor."""
    if strides[0] < strides[1]:
        return _transposed(xp.mm(_transposed(grad, xp), mat1.conj()), xp)
    return xp.mm(_transposed(mat1, xp).conj(), grad)


def _sizes_of_factors(first, second):
    """Return the attributes of a node for the sizes of its factors, which follow from one saved factor and the result."""

    def inner(node):
        saved = [unpack(node, item) for item in (first, second)]
        return next((each.shape[1 - place] for place, each in enumerate(saved) if each is not None), None)

    return {
        f"{first}_sym_sizes": lambda node: (node._grad_shape[0], inner(node)),
        f"{second}_sym_sizes": lambda node: (inner(node), node._grad_shape[1]),
    }


def _scaled(grad, factor):
    """Return the gradient of a tensor that is multiplied by the number `factor`."""
    return grad if factor == 1 else grad * factor.conjugate()


@operator(kernel=kernels.mm, same_out=STRICT, tangent="multilinear", sparse="products.mm", narrow="eighths")
class mm:
    """The product of two matrices.

    >>> import adjoint as torch
    >>> torch.mm(torch.ones(2, 3), torch.ones(3, 2))
    tensor([[3., 3.],
            [3., 3.]])
    """

    saved_display = _sizes_of_factors("self", "mat2")

    def forward(self: Array, mat2: Array): ...

    def grad_self(grad, mat2, xp):
        return _like_first(grad, mat2, xp)

    def grad_mat2(grad, self, mat2_strides, xp):
        return _like_second(grad, self, mat2_strides, xp)

    def batch(op, batch, first, second):
        if batch.has(second):
            if batch.has(first) or first.layout is strided:
                return matmul(batch.first(first), batch.first(second))
            wide = batch.first(second).transpose(0, 1)  # one product of a sparse and a wide matrix
            return mm(first, wide.flatten(1)).unflatten(1, wide.shape[1:]).transpose(0, 1)
        whole = batch.first(first)  # one tall matrix
        return op.apply(whole.flatten(0, 1), second).unflatten(0, whole.shape[:2])


@operator(kernel=kernels.bmm, same_out=STRICT, tangent="multilinear", sparse="products.bmm", narrow=" bmm")
class bmm:
    """The products of two stacks of matrices."""

    def forward(self: Array, mat2: Array): ...

    def grad_self(grad, mat2, xp):
        return xp.bmm(grad, mat2.mT.conj())

    def grad_mat2(grad, self, xp):
        return xp.bmm(self.mT.conj(), grad)

    def batch(op, batch, first, second):
        return matmul(batch.first(first), batch.first(second))


@operator(kernel=kernels.mv, same_out=MV, tangent="multilinear", sparse="products.mv")
class mv:
    """The product of a matrix and a vector."""

    def forward(self: Array, vec: Array): ...

    def grad_self(grad, vec):
        return grad.reshape((-1, 1)) * vec.conj()

    def grad_vec(grad, self, xp):
        return xp.mv(_transposed(self, xp).conj(), grad)

    def batch(op, batch, matrix, vector):
        if not batch.has(matrix):
            return mm(batch.first(vector), matrix.t())
        return matmul(batch.first(matrix), batch.first(vector).unsqueeze(-1)).squeeze(-1)


@operator(kernel=kernels.dot, same_out=DOT, tangent="multilinear", narrow=" dot")
class dot:
    """The sum of the products of the elements of two vectors."""

    def forward(self: Array, tensor: Array): ...

    def grad_self(grad, tensor):
        return grad * tensor.conj()

    def grad_tensor(grad, self):
        return grad * self.conj()

    def batch(op, batch, first, second):
        if batch.has(first) and batch.has(second):
            return (batch.first(first) * batch.first(second)).sum(-1)
        return matmul(batch.first(first), second) if batch.has(first) else matmul(batch.first(second), first)


@operator(kernel=kernels.vdot, same_out=DOT, tangent="multilinear", narrow=" dot")
class vdot:
    """`dot` with the first vector conjugated."""

    def forward(self: Array, other: Array): ...

    def grad_self(grad, other):
        return grad.conj() * other

    def grad_other(grad, self):
        return grad * self

    def batch(op, batch, first, second):
        return (batch.first(first).conj() * batch.first(second)).sum(-1)


def _batch_sum(batch, added, rank, product, beta, alpha):
    """Return `beta * added + alpha * product` for a batch. `added` broadcasts to `rank` dimensions."""
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    offset = batch.aligned(added, rank)
    return product + (offset if beta == 1 else offset * beta)


def _added(kernel, **options):
    """Declare an operator that computes `beta * input` plus `alpha` times a product."""

    def grad_self(grad, beta):
        return _scaled(grad, beta)

    def declare(declaration):
        declaration.grad_self = grad_self
        shared = {"inplace": True, "same_out": STRICT, "deprecated_order": ("beta", "alpha")}
        return operator(kernel=kernel, **{**shared, **options})(declaration)

    return declare


@_added(Kernel(kernels.addmm, small=kernels.addmm_plain), sparse="products.addmm", narrow="eighths", tangent="affine")
class addmm:
    """`beta * input + alpha * (mat1 @ mat2)`."""

    saved_display = _sizes_of_factors("mat1", "mat2")

    def forward(self: Array, mat1: Array, mat2: Array, *, beta: Number = 1, alpha: Number = 1): ...

    def grad_mat1(grad, mat2, alpha, xp):
        return _scaled(_like_first(grad, mat2, xp), alpha)

    def grad_mat2(grad, mat1, mat2_strides, alpha, xp):
        return _scaled(_like_second(grad, mat1, mat2_strides, xp), alpha)

    def batch(op, batch, added, first, second, beta, alpha):
        if not batch.has(added) and added._array.ndim < 2 and not batch.has(second):  # one tall matrix
            whole = batch.first(first)
            product = addmm(added, whole.flatten(0, 1), second, beta=beta, alpha=alpha)
            return product.unflatten(0, whole.shape[:2])
        return _batch_sum(batch, added, 2, matmul(batch.first(first), batch.first(second)), beta, alpha)


@_added(kernels.addmv, public_inplace=True, tangent="affine", sparse="products.addmv")
class addmv:
    """`beta * input + alpha * (mat @ vec)`."""

    def forward(self: Array, mat: Array, vec: Array, *, beta: Number = 1, alpha: Number = 1): ...

    def grad_mat(grad, vec, alpha):
        return _scaled(grad.reshape((-1, 1)) * vec.conj(), alpha)

    def grad_vec(grad, mat, alpha, xp):
        return _scaled(xp.mv(mat.mT.conj(), grad), alpha)

    def batch(op, batch, added, matrix, vector, beta, alpha):
        if not batch.has(added) and added._array.ndim < 2 and not batch.has(matrix):  # one tall matrix
            return addmm(added, batch.first(vector), matrix.t(), beta=beta, alpha=alpha)
        product = matmul(batch.first(matrix), batch.first(vector).unsqueeze(-1)).squeeze(-1)
        return _batch_sum(batch, added, 1, product, beta, alpha)


@_added(kernels.baddbmm, tangent="affine")
class baddbmm:
    """`beta * input + alpha * bmm(batch1, batch2)`."""

    def forward(self: Array, batch1: Array, batch2: Array, *, beta: Number = 1, alpha: Number = 1): ...

    def grad_batch1(grad, batch2, alpha, xp):
        return _scaled(xp.bmm(grad, batch2.mT.conj()), alpha)

    def grad_batch2(grad, batch1, alpha, xp):
        return _scaled(xp.bmm(batch1.mT.conj(), grad), alpha)

    def batch(op, batch, added, first, second, beta, alpha):
        return _batch_sum(batch, added, 3, matmul(batch.first(first), batch.first(second)), beta, alpha)


@_added(kernels.addbmm, inplace="resizes", same_out=ADDBMM)
class addbmm:
    """`beta * input + alpha * bmm(batch1, batch2).sum(0)`."""

    def forward(self: Array, batch1: Array, batch2: Array, *, beta: Number = 1, alpha: Number = 1): ...

    saved_display = {
        "batch1_sym_sizes": None,
        "batch1_sym_argsize_0": lambda node: node.saved_batch1_shape[0],
        "batch1_sym_argsize_1": lambda node: node.saved_batch1_shape[1],
        "batch2_sym_argsize_2": lambda node: node._grad_shape[1],
    }

    def grad_batch1(grad, batch1_shape, batch2, alpha, xp):
        return _scaled(xp.bmm(xp.expand(grad, (batch1_shape[0], *grad.shape)), batch2.mT.conj()), alpha)

    def grad_batch2(grad, batch1, alpha, xp):
        return _scaled(xp.bmm(batch1.mT.conj(), xp.expand(grad, (batch1.shape[0], *grad.shape))), alpha)

    def batch(op, batch, added, first, second, beta, alpha):
        product = (batch.expanded(first) @ batch.expanded(second)).sum(1)
        return _batch_sum(batch, added, 2, product, beta, alpha)


@_added(kernels.addr, promote="common", elementwise=False, same_out=None)
class addr:
    """`beta * input + alpha * outer(vec1, vec2)`."""

    def forward(self: Array, vec1: Array, vec2: Array, *, beta: Number = 1, alpha: Number = 1): ...

    def grad_vec1(grad, vec2, alpha, xp):
        return _scaled(xp.mv(grad, vec2.conj()), alpha)

    def grad_vec2(grad, vec1, alpha, xp):
        return _scaled(xp.mv(grad.mT, vec1.conj()), alpha)

    def batch(op, batch, added, first, second, beta, alpha):
        product = batch.expanded(first).unsqueeze(2) * batch.expanded(second).unsqueeze(1)
        return _batch_sum(batch, added, 2, product, beta, alpha)


@public(method=True, alias=("ger",), numpy_names=True)
def outer(input, vec2, *, out=None):
    """The products of each element of one vector with each element of another."""
    try:
        first, second = input._array, vec2._array
    except AttributeError:
        check_tensors("outer", input=input, vec2=vec2)
        raise
    if first.ndim != 1 or second.ndim != 1:
        which, ndim = ("self", first.ndim) if first.ndim != 1 else ("vec2", second.ndim)
        raise RuntimeError(f"outer: Expected 1-D argument {which}, but got {ndim}-D")
    return tensors.mul(reshaped(input, (first.size, 1)), vec2, out=out)


@public(method=True, numpy_names=True)
def inner(input, other, *, out=None):
    """The sums of products over the last dimension of both tensors."""
    check_tensors("inner", input=input, other=other)
    a, b = input._array, other._array
    if a.ndim == 0 or b.ndim == 0:
        return tensors.mul(input, other, out=out)
    if a.shape[-1] != b.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(a.shape)} and {list(b.shape)}"
        )
    return tensors.tensordot(input, other, ((-1,), (-1,)), out=out)


@public(method=True, numpy_names=True)
def matmul(input, other, *, out=None):
    """The product of two tensors. Vectors give a number, and matrices give a matrix.

    Dimensions before the last two broadcast. Each position in these dimensions has a separate matrix product.

    >>> import adjoint as torch
    >>> torch.matmul(torch.ones(5, 2, 3), torch.ones(3, 4)).shape
    torch.Size([5, 2, 4])
    """
    try:
        left, right = input._array.ndim, other._array.ndim
    except AttributeError:
        check_tensors("matmul", input=input, other=other)
        raise
    if out is not None:
        if left == right == 2 and all(map(has_no_history, (input, other, out))) and _is_apart(out, input, other):
            return mm(input, other, out=out)
        words = STRICT if right > 1 else DOT if left == 1 else MV
        return stored("matmul", matmul(input, other), out, words)
    if left == 2:
        if right == 2:
            return mm(input, other)
        if right == 1:
            return mv(input, other)
    if left == 1:
        if right == 1:
            return dot(input, other)
        if right == 2:
            if is_batched(input):  # one operator is cheaper than three
                return mv(other.t(), input)
            return mm(input.unsqueeze(0), other).squeeze_(0)
    if left == 0 or right == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {left}D and {right}D")
    return _batched(input, other, left, right)


def _is_apart(tensor, first, second):
    """Return whether a tensor shares no memory with two other tensors."""
    array = tensor._array
    return not may_share_memory(array, first._array) and not may_share_memory(array, second._array)


def check_tensors(function, **arguments):
    """Raise an error unless all arguments are tensors. The error names the position of the argument."""
    for index, (name, value) in enumerate(arguments.items()):
        if not isinstance(value, Tensor):
            call = call_of(function)
            where = call.where(name, index, [*arguments.values()])
            raise TypeError(f"{call.name}(): argument '{name}'{where} must be Tensor, not {type_name(value)}")


def _batched(input, other, left, right):
    """Return a product with a stack of matrices. If the other factor allows it, the stack is multiplied as one tall matrix."""
    a, b = input._array.shape, other._array.shape
    if left == right == 3 and a[0] == b[0] and input.layout is not strided:
        return bmm(input, other)
    if right < left and right <= 2 and (other.requires_grad or _evenly_strided(input)):
        return _folded(input, other)
    if left < right and left <= 2:
        if input.requires_grad or (left == 1 and _evenly_strided(other.mT)):
            return _folded_transposed(input, other)
    elif left == right == 3:
        if b[0] == 1 != a[0] and other.requires_grad:
            return _folded(input, tensors.squeeze(other, 0))
        if a[0] == 1 != b[0] and input.requires_grad:
            return _folded_transposed(tensors.squeeze(input, 0), other)
    if left == 1:
        input, a = input.unsqueeze(0), (1, *a)
    if right == 1:
        other, b = other.unsqueeze(-1), (*b, 1)
    batch = broadcast_shapes(a[:-2], b[:-2])
    count = math.prod(batch)
    product = bmm(_one_stack(input, batch, count), _one_stack(other, batch, count))
    if right == 1:
        product = tensors.squeeze(product, -1)
    sizes = (*batch, *(() if left == 1 else a[-2:-1]), *(() if right == 1 else b[-1:]))
    return product if product._array.shape == sizes and has_no_history(product) else tensors.unsafe_view(product, sizes)


def _one_stack(tensor, batch, count):
    """Return a tensor as one stack of `count` matrices. `count` is the product of `batch`, the sizes before the last two."""
    shape = tensor._array.shape
    if len(batch) == 1 and shape[:-2] == batch and has_no_history(tensor):
        return tensor
    return reshaped(tensors.expand(tensor, (*batch, *shape[-2:])), (count, *shape[-2:]))


def _evenly_strided(stack):
    """Return whether the rows of all matrices of a stack are evenly spaced, like the rows of one tall matrix."""
    shape, steps = stack._array.shape, element_strides(stack._array)
    return all(steps[dim] == steps[dim + 1] * shape[dim + 1] for dim in range(len(shape) - 2))


def _folded(stack, other):
    """`stack @ other`, where `other` is one matrix or vector, as the product of one tall matrix."""
    shape = stack._array.shape
    rows = reshaped(stack, (math.prod(shape[:-1]), shape[-1]))
    product = mm(rows, other) if other._array.ndim == 2 else mv(rows, other)
    return tensors.unsafe_view(product, (*shape[:-1], *other._array.shape[1:]))


def _folded_transposed(input, stack):
    """`input @ stack`, where `input` is one matrix or vector, as the transpose of a product of one tall matrix."""
    if input._array.ndim == 1:
        return _folded(stack.mT, input)
    return _folded(stack.mT, input.t()).mT.contiguous()


@public(namespace=None, method=("__matmul__",))
def matmul_operator(input, other):
    """`input @ other`."""
    try:
        if not isinstance(other, Tensor):
            return not_known()
        if input._array.ndim == 2 == other._array.ndim:
            return mm(input, other)
        return matmul(input, other)
    except Exception as error:
        shorten(error)
        raise


@public(namespace=None, method=("__rmatmul__",))
def reflected_matmul(input, other):
    """`other @ input`, where `other` is not a tensor."""
    try:
        return matmul(other, input) if isinstance(other, Tensor) else not_known()
    except Exception as error:
        shorten(error)
        raise


@public(namespace="functional", retried=False)
def linear(input, weight, bias=None, *, out=None):
    """`input @ weight.T + bias`. The shapes (*, in), (out, in) and (out,) give (*, out)."""
    try:
        if out is not None:
            return stored("linear", linear(input, weight, bias), out, STRICT)
        ndim = input._array.ndim
        if weight._array.ndim == 2:
            if ndim == 1 and is_batched(input) and (bias is None or bias._array.ndim == 1):
                return mv(weight, input) if bias is None else addmv(bias, weight, input)
            if ndim == 2:
                transposed = weight.t()
                return mm(input, transposed) if bias is None else addmm(bias, input, transposed)
            if bias is not None and bias._array.ndim == 1 and ndim > 0 and input._array.flags.c_contiguous:
                shape = input._array.shape
                rows = input.reshape((math.prod(shape[:-1]), shape[-1]))
                return addmm(bias, rows, weight.t()).view((*shape[:-1], weight._array.shape[0]))
        if not ndim or not weight._array.ndim:
            raise RuntimeError(
                f"both arguments to linear need to be at least 1D, but they are {ndim}D and {weight._array.ndim}D"
            )
        return matmul(input, weight.t()) if bias is None else matmul(input, weight.t()) + bias
    except Exception as error:  # noqa: BLE001  (raised again)
        try:
            return repeated(error, "linear", sys._getframe())
        except Exception as final:
            shorten(final)
            raise
