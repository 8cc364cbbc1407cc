"""Sums of products in Einstein's notation, and contractions, computed by permutations and matrix products."""

from __future__ import annotations

import functools
import math
from typing import Any

from ...codegen.plans import Plans
from ...dispatch.arguments import require, require_tensors
from ...dispatch.decorators import public, tensors
from ...dispatch.out import stored
from ...kernels.runtime.costs import LARGE
from ...tape.edges import has_no_history, is_plain
from ...tensor import Tensor, wrap, wrap_dim
from ..shape.view import reshaped
from .matmul import check_tensors

_SHORT = 16  # elements of a row over which loops are slow

TENSORDOT = "tensordot: Expected the output tensor to have dtype {wanted}, but got an output tensor with dtype {given}"


@public()
def tensordot(a, b, dims=2, out=None, **numpy):
    """The sums of products over `dims`.

    `dims` contains two lists of dimensions, or is a number n: the last n dimensions of `a` and the first n of `b`.

    Libraries for several kinds of arrays use NumPy's name of `dims`, which is `axes`.

    >>> import adjoint as torch
    >>> torch.tensordot(torch.ones(2, 3), torch.ones(3, 4), dims=1).shape
    torch.Size([2, 4])
    """
    check_tensors("tensordot", a=a, b=b)
    dims = numpy.pop("axes", dims)
    if numpy:
        raise TypeError(f"tensordot() got an unexpected keyword argument '{next(iter(numpy))}'")
    dims_a, dims_b = _contracted(dims, a._array.ndim, b._array.ndim)
    if a._array.dtype != b._array.dtype:
        raise RuntimeError("both inputs should have same dtype")
    result = _contract(a, b, dims_a, dims_b)
    return stored("tensordot", result, out, TENSORDOT, recorded=True)


def tensordot_multiplies_matrices(a: Tensor, b: Tensor, dims: Any = 2, out: Any = None, **numpy: Any) -> bool:
    """Return whether `tensordot` of these arguments needs a matrix product, and not only the sum of all products."""
    shapes = a.shape, b.shape
    contracted = _contracted(numpy.get("axes", dims), a.ndim, b.ndim)
    return any(
        shape[dim] != 1 for shape, dims in zip(shapes, contracted, strict=True) for dim in _others(dims, len(shape))
    )


def _contracted(dims, ndim_a, ndim_b):
    """The dimensions of both tensors over which `tensordot` sums."""
    if isinstance(dims, Tensor):
        dims = dims.item() if dims._array.size == 1 else dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(ndim_a, ndim_b):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return list(range(-dims, 0)), list(range(dims))
    if not isinstance(dims, (tuple, list)) or len(dims) != 2:
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing two lists, but got "
            f"dims={dims}"
        )
    for name, position, value in (("dims_self", 3, dims[0]), ("dims_other", 4, dims[1])):
        require("Ints", value, "tensordot", name, position)
    if len(dims[0]) != len(dims[1]):
        raise RuntimeError("both dimension lists should have same length")
    return list(dims[0]), list(dims[1])


def _contract(a, b, dims_a, dims_b):
    """Multiply `a` and `b` as matrices. The inner dimension combines all contracted dimensions."""
    ndim_a, ndim_b = a._array.ndim, b._array.ndim
    sums_a, sums_b = [], []
    for i, j in zip(dims_a, dims_b, strict=True):
        m, n = a._array.shape[wrap_dim(i, ndim_a)], b._array.shape[wrap_dim(j, ndim_b)]
        if n == 1:
            sums_a.append(i)
        elif m == 1:
            sums_b.append(j)
        elif m != n:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {m} in dim {i} and second has size {n} in dim {j}"
            )
    for dim in sums_a:
        a = tensors.sum(a, dim, True, dtype=a.dtype)
    for dim in sums_b:
        b = tensors.sum(b, dim, True, dtype=b.dtype)
    free_a, free_b = _others(dims_a, ndim_a), _others(dims_b, ndim_b)
    rows, columns = [a._array.shape[d] for d in free_a], [b._array.shape[d] for d in free_b]
    height, width, inner = math.prod(rows), math.prod(columns), math.prod(a._array.shape[d] for d in dims_a)
    order_a, order_b = tuple(free_a + dims_a), tuple(dims_b + free_b)
    if height == width == 1:
        left, right = tensors.permute(a, order_a), tensors.permute(b, order_b)
        if left._array.flags.c_contiguous and right._array.flags.c_contiguous:
            result = tensors.dot(left.flatten(), right.flatten())
        else:
            result = tensors.sum(tensors.squeeze_all(left) * tensors.squeeze_all(right), dtype=a.dtype)
    else:
        result = tensors.mm(_joined(a, order_a, (height, inner)), _joined(b, order_b, (inner, width)))
    return result.reshape((*rows, *columns))


def _joined(tensor, order, shape):
    """Return `tensor` with its dimensions permuted to `order` and then combined to `shape`."""
    if has_no_history(tensor):
        return wrap(tensor._array.transpose(order).reshape(shape))
    return reshaped(tensors.permute(tensor, order), shape)


def _others(dims, ndim):
    """Return the dimensions that are not in `dims`, which must be distinct."""
    wrapped = [wrap_dim(d, ndim) for d in dims]
    for position, dim in enumerate(wrapped):
        if dim in wrapped[:position]:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
    return [d for d in range(ndim) if d not in wrapped]


@public()
def einsum(*args):
    """The sum of products that an equation describes. For example, `"bij,bjk->bik"` multiplies stacks of matrices.

    Letters name dimensions, and `...` stands for dimensions that broadcast. A letter that is missing after `->` is
    summed over. Without `->`, the letters that occur once remain, in alphabetical order. A letter that occurs twice in
    one operand selects the diagonal. Instead of an equation, each operand may be followed by a list of numbers that
    name its dimensions.

    >>> import adjoint as torch
    >>> torch.einsum("i,i->", torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor(11.)
    """
    equation, operands = _equation_first(args)
    key: Any = None
    if len(operands) == 2 and all(map(is_plain, operands)):
        key = equation, operands[0]._array.shape, operands[1]._array.shape
        if (planned := _PLANS.get(key)) is not None:
            factors, result, kept = planned
            if result is None:
                return tensors.mul(*[_aligned(operands[side], alignment) for side, alignment in factors])
            product = _in_place(tensors.bmm(*[_factor(operands[side], *how) for side, *how in factors]), result)
            return tensors.view_shape(product, product._array.shape[:kept])
    inputs, output = _parse(equation, tuple([operand._array.ndim for operand in operands]))
    summed = sorted((label for label in _labels(inputs) if label not in output), key=_alphabetical)
    order = output + summed
    aligned = [
        _align(index, tensor, list(labels), order)
        for index, (tensor, labels) in enumerate(zip(operands, inputs, strict=True))
    ]
    _check_sizes(aligned, order)
    if len(aligned) == 1:
        return tensors.sum(aligned[0], tuple(range(len(output), len(order)))) if summed else aligned[0]
    if len(aligned) == 2:
        if swapped := _second_first(aligned, [label in inputs[0] for label in output]):
            aligned.reverse()
        if key is not None:
            _plan(key, inputs, order, len(output), swapped, [tensor._array.shape for tensor in aligned])
    result = _multiply(aligned, len(output))
    return tensors.view_shape(result, result._array.shape[: len(output)]) if summed else result


def einsum_multiplies_matrices(*args: Any) -> bool:
    """Return whether `einsum` of these arguments sums products over dimensions that two operands share."""
    equation, operands = _equation_first(args)
    shapes = [tuple(operand._array.shape) for operand in operands]
    inputs, output = _parse(equation, tuple(map(len, shapes)))
    named = [
        {label for label, size in zip(labels, shape, strict=True) if size != 1}
        for labels, shape in zip(inputs, shapes, strict=True)
    ]
    return any(
        set.union(*named[:position]) & named[position] - {*output}.union(*named[position + 1 :])
        for position in range(1, len(named))
    )


def _equation_first(args):
    """Return the equation and the operands from the arguments of `einsum`, which has three forms."""
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    equation, operands = (args[0], args[1:]) if isinstance(args[0], str) else _from_sublists(args)
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not operands:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    require_tensors(operands, 1)
    return equation, operands


_PLANS: Plans[Any] = Plans()
"""The plan for multiplying two tensors, by equation and shapes."""


def _plan(key, inputs, order, kept, swapped, shapes):
    """Store a plan for tensors of these shapes if one elementwise or batched matrix product computes the result."""
    sums = [dim for dim in range(kept, len(order)) if any(shape[dim] != 1 for shape in shapes)]
    alone = any(shape[dim] == 1 for shape in shapes for dim in sums)
    if alone or any(len(set(labels)) < len(labels) for labels in inputs):
        return
    sides = (1, 0) if swapped else (0, 1)
    if not sums:
        if kept == len(order):
            _PLANS.keep(key, ([(side, _alignment(list(inputs[side]), order)) for side in sides], None, kept))
        return
    *stacks, result = _as_stacks(shapes[0], shapes[1], sums)
    factors = []
    for side, (dims, sizes) in zip(sides, stacks, strict=True):
        labels = inputs[side]
        present = tuple([labels.index(order[dim]) for dim in dims if order[dim] in labels])
        factors.append((side, present, sizes, _alignment(list(labels), order), dims))
    _PLANS.keep(key, (factors, result, kept))


def _factor(tensor, present, sizes, alignment, dims):
    """Return a tensor as a stack of matrices of these sizes."""
    if has_no_history(tensor):
        return wrap(tensor._array.transpose(present).reshape(sizes))
    return reshaped(tensors.permute(_aligned(tensor, alignment), dims), sizes)


def _alphabetical(label):
    return (isinstance(label, int), label)


def _multiply(aligned, kept):
    """Multiply aligned tensors in order. Each dimension is summed over as soon as no later tensor needs it.

    The dimensions after the first `kept` dimensions are summed over, and remain with size 1.
    """
    result, ndim = aligned[0], aligned[0]._array.ndim
    for position, other in enumerate(aligned[1:], start=1):
        later = aligned[position + 1 :]
        sums = [
            dim
            for dim in range(kept, ndim)
            if all(item._array.shape[dim] == 1 for item in later)
            and (result._array.shape[dim] != 1 or other._array.shape[dim] != 1)
        ]
        result = _sum_of_products(result, other, sums)
    return result


def _second_first(aligned, named):
    """Return whether the product of two tensors is in the order of the result if the second comes first.

    This holds if dimensions that only the second tensor has come before dimensions that only the first tensor has.
    `named` lists the dimensions of the result that the first tensor has.
    """
    one, two = (tensor._array.shape for tensor in aligned)
    kept = len(named)
    ours = [dim for dim in range(kept) if one[dim] != 1 and two[dim] == 1]
    theirs = [dim for dim in range(kept) if not named[dim]]
    contracted = any(one[dim] != 1 and two[dim] != 1 for dim in range(kept, len(one)))
    return contracted and bool(ours) and bool(theirs) and theirs[-1] < ours[0]


def _from_sublists(args):
    """Return the form `einsum(op1, [0, 1], op2, [1, 2], [0, 2])` as an equation."""
    operands, terms = args[0 : len(args) - len(args) % 2 : 2], args[1::2]
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

    def text(sublist):
        for item in sublist:
            if item is not Ellipsis and not 0 <= item < 52:
                raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
        return "".join("..." if item is Ellipsis else letters[item] for item in sublist)

    for index, term in enumerate(terms):
        if not isinstance(term, (list, tuple, Tensor)):
            raise TypeError(f"expected a list of subscripts after operand {index}, but got {type(term).__name__}")
    equation = ",".join(text(term) for term in terms)
    if len(args) % 2:
        equation += "->" + text(args[-1])
    return equation, operands


@functools.lru_cache(256)
def _parse(equation, ndims):
    """Return the labels of each operand and of the output. The dimensions of an ellipsis are counted from the end."""
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) < len(ndims):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    if len(terms) > len(ndims):
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    inputs, start = [], 0
    for index, (term, ndim) in enumerate(zip(terms, ndims, strict=True)):
        inputs.append(_operand_labels(index, _subscripts(term, start, f"for operand {index}"), ndim))
        start += len(term) + 1
    ellipsis = list(range(min((label for label in _labels(inputs) if isinstance(label, int)), default=0), 0))
    if not arrow:
        flat = [label for labels in inputs for label in labels if isinstance(label, str)]
        return inputs, ellipsis + sorted(label for label in set(flat) if flat.count(label) == 1)
    subscripts = _subscripts(right, len(left) + 2, "for output")
    seen = _labels(inputs)
    for position, label in enumerate(subscripts):
        if label is not Ellipsis and label in subscripts[:position]:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
        if label is not Ellipsis and label not in seen:
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation for any input operand"
            )
    return inputs, _expanded(subscripts, ellipsis)


def _subscripts(term, start, where):
    """Return the letters, and `Ellipsis`, of a part of the equation that begins at index `start`."""
    subscripts, index = [], 0
    while index < len(term):
        letter = term[index]
        if letter == ".":
            if Ellipsis in subscripts:
                found = "but an ellipsis (...) was already found"
                found = "for which an ellipsis was already found" if where != "for output" else found
                raise RuntimeError(f"einsum(): found '.' {where} {found}")
            if term[index : index + 3] != "...":
                shown = " (...)" if where == "for output" else ""
                raise RuntimeError(f"einsum(): found '.' {where} that is not part of any ellipsis{shown}")
            subscripts.append(Ellipsis)
            index += 2
        elif letter.isascii() and letter.isalpha():
            subscripts.append(letter)
        elif letter != " ":
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {start + index} in the equation string, subscripts must be in "
                "[a-zA-Z]"
            )
        index += 1
    return subscripts


def _operand_labels(index, subscripts, ndim):
    """Return one label for each of an operand's dimensions."""
    named = len(subscripts) - (Ellipsis in subscripts)
    if Ellipsis not in subscripts and named != ndim:
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions ({ndim}) "
            f"for operand {index} and no ellipsis was given"
        )
    if named > ndim:
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({named}) is more than the number of dimensions ({ndim}) "
            f"for operand {index}"
        )
    return _expanded(subscripts, range(named - ndim, 0))


def _expanded(subscripts, ellipsis):
    """Return the subscripts with labels in place of their ellipsis."""
    return [label for item in subscripts for label in (ellipsis if item is Ellipsis else (item,))]


def _labels(inputs):
    seen = []
    for labels in inputs:
        seen += [label for label in dict.fromkeys(labels) if label not in seen]
    return seen


def _align(index, tensor, labels, order):
    """Return `tensor` with one dimension per label of `order`, of size 1 if missing. Repeated labels become diagonals."""
    for label in [label for label in dict.fromkeys(labels) if labels.count(label) > 1]:
        while labels.count(label) > 1:
            tensor = _diagonal(index, tensor, labels, label)
    return _aligned(tensor, _alignment(labels, order))


def _alignment(labels, order):
    """Return the positions of the dimensions to add to a tensor with these labels, and the permutation to `order`."""
    added = [label for label in order if label not in labels]
    places = tuple(range(len(labels), len(labels) + len(added)))
    labels = labels + added
    return places, tuple([labels.index(label) for label in order])


def _aligned(tensor, alignment):
    places, dims = alignment
    for place in places:
        tensor = tensors.unsqueeze(tensor, place)
    return tensors.permute(tensor, dims)


def _diagonal(index, tensor, labels, label):
    """Return the diagonal of the first two dimensions with one label, in place of the first. `labels` loses the second."""
    first = labels.index(label)
    second = labels.index(label, first + 1)
    sizes = tensor._array.shape[first], tensor._array.shape[second]
    if sizes[0] != sizes[1]:
        raise RuntimeError(
            f"einsum(): subscript {label} is repeated for operand {index} but the sizes don't match, {sizes[1]} != {sizes[0]}"
        )
    del labels[second]
    last = len(labels) - 1
    return tensors.permute(tensor.diagonal(0, first, second), (*range(first), last, *range(first, last)))


def _check_sizes(aligned, order):
    sizes = [1] * len(order)
    for index, tensor in enumerate(aligned):
        for dim, size in enumerate(tensor._array.shape):
            if size != 1 and sizes[dim] not in (1, size):
                label = order[dim]
                if isinstance(label, int):
                    place = sorted(item for item in order if isinstance(item, int)).index(label)
                    raise RuntimeError(
                        f"einsum(): dimension {place} covered by ellipsis in operand {index}has size {size} which does not "
                        f"broadcast with previously seen ellipsis with size {sizes[dim]} for the respective dimension"
                    )
                raise RuntimeError(
                    f"einsum(): subscript {label} has size {size} for operand {index} which does not broadcast with "
                    f"previously seen size {sizes[dim]}"
                )
            sizes[dim] = size if size != 1 else sizes[dim]


def _sum_of_products(a, b, sums):
    """Return the product of two aligned tensors, summed over `sums` (kept with size 1). It uses `bmm` if possible."""
    shape_a, shape_b = a._array.shape, b._array.shape
    only_a = tuple(d for d in sums if shape_b[d] == 1 and shape_a[d] != 1)
    only_b = tuple(d for d in sums if shape_a[d] == 1 and shape_b[d] != 1)
    if only_a:
        a = tensors.sum(a, only_a, True)
    if only_b:
        b = tensors.sum(b, only_b, True)
    contracted = [d for d in sums if shape_a[d] != 1 and shape_b[d] != 1]
    if not contracted:
        return a * b
    (order_a, sizes_a), (order_b, sizes_b), result = _as_stacks(a._array.shape, b._array.shape, contracted)
    left, right = reshaped(tensors.permute(a, order_a), sizes_a), reshaped(tensors.permute(b, order_b), sizes_b)
    return _in_place(tensors.bmm(left, right), result)


def _as_stacks(shape_a, shape_b, contracted):
    """Return the orders and shapes that turn two aligned tensors into stacks of matrices, and the arguments of `_in_place`."""
    ndim = len(shape_a)
    batch = [d for d in range(ndim) if d not in contracted and shape_a[d] != 1 and shape_b[d] != 1]
    rows = [d for d in range(ndim) if d not in contracted and d not in batch and shape_a[d] != 1]
    columns = [d for d in range(ndim) if d not in contracted and d not in batch and d not in rows]

    def size(shape, dims):
        return math.prod(shape[d] for d in dims)

    left = (
        (*batch, *rows, *contracted, *columns),
        (size(shape_a, batch), size(shape_a, rows), size(shape_a, contracted)),
    )
    right = (*batch, *contracted, *columns, *rows), (
        size(shape_b, batch), size(shape_b, contracted), size(shape_b, columns),
    )  # fmt: skip
    laid_out = [*batch, *rows, *contracted, *columns]
    sizes = [1 if d in contracted else shape_a[d] * shape_b[d] if d not in batch else shape_a[d] for d in laid_out]
    inverse = [0] * ndim
    for position, dim in enumerate(laid_out):
        inverse[dim] = position
    return left, right, (tuple(sizes), tuple(inverse))


def _in_place(product, result):
    """Return the product of stacks of matrices with its dimensions separated and in the order of the result."""
    sizes, inverse = result
    return tensors.permute(reshaped(product, sizes), inverse)


def _kept(factor):
    return factor if has_no_history(factor) else factor.clone()


@functools.lru_cache(256)
def _kron_shapes(first, second):
    """Return the shapes of the factors of a product with the elements of a Kronecker product, and the shape of this product."""
    ndim = max(len(first), len(second))
    a = (1,) * (ndim - len(first)) + first
    b = (1,) * (ndim - len(second)) + second
    left, right = [size for n in a for size in (n, 1)], [size for n in b for size in (1, n)]
    return a, b, tuple(left), tuple(right), tuple([m * n for m, n in zip(a, b, strict=True)])


@public(method=True, numpy_names=True)
def kron(input, other, *, out=None):
    """The Kronecker product."""
    check_tensors("kron", input=input, other=other)
    a, b, separate, inner, shape = _kron_shapes(input._array.shape, other._array.shape)
    short = math.prod(shape) >= LARGE and 1 < b[-1] < _SHORT and a[-1] > 1
    if short and has_no_history(input) and has_no_history(other):
        # Loops over rows as short as the rows of `other` are slow, so rows of the result are multiplied.
        input, other = (
            tensors.repeat_interleave(tensors.unsafe_view(input, a), b[-1], -1),
            tensors.tile(tensors.unsafe_view(other, b), (a[-1],)),
        )
        left = tensors.unsafe_view(input, tuple(size for n in a[:-1] for size in (n, 1)) + shape[-1:])
        right = tensors.unsafe_view(other, tuple(size for n in b[:-1] for size in (1, n)) + shape[-1:])
    else:
        # Multiply copies, which are small compared with the result. A view without a base would not detect changes of its memory.
        left, right = tensors.unsafe_view(_kept(input), separate), tensors.unsafe_view(_kept(other), inner)
    result = tensors.unsafe_view(left * right, shape)
    return result if out is None else stored("kron", result, out)
