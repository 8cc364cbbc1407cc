"""Sums of products in Einstein's notation, and contractions, by permuting dimensions and multiplying matrices."""

from __future__ import annotations

from ..tensor import Tensor, wrap_dim
from .build import public, tensors


@public()
def tensordot(a, b, dims=2, out=None):
    """The sums of products over `dims`: the last of `a` with the first of `b`, or two lists of dimensions.

    >>> import adjoint as torch
    >>> torch.tensordot(torch.ones(2, 3), torch.ones(3, 4), dims=1).shape
    torch.Size([2, 4])
    """
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a._array.ndim, b._array.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims_a, dims_b = list(range(a._array.ndim - dims, a._array.ndim)), list(range(dims))
    else:
        if isinstance(dims, Tensor):
            dims = dims.tolist()
        dims_a, dims_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    if len(dims_a) != len(dims_b):
        raise RuntimeError("both dimension lists should have same length")
    dims_a = [wrap_dim(d, a._array.ndim) for d in dims_a]
    dims_b = [wrap_dim(d, b._array.ndim) for d in dims_b]
    shape_a, shape_b = a._array.shape, b._array.shape
    for i, j in zip(dims_a, dims_b, strict=True):
        if shape_a[i] != shape_b[j]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {shape_a[i]} in dim {i} "
                f"and second has size {shape_b[j]} in dim {j}"
            )
    free_a = [d for d in range(a._array.ndim) if d not in dims_a]
    free_b = [d for d in range(b._array.ndim) if d not in dims_b]
    inner = 1
    for d in dims_a:
        inner *= shape_a[d]
    rows, columns = [shape_a[d] for d in free_a], [shape_b[d] for d in free_b]
    left = tensors.permute(a, tuple(free_a + dims_a)).reshape((_product(rows), inner))
    right = tensors.permute(b, tuple(dims_b + free_b)).reshape((inner, _product(columns)))
    result = tensors.mm(left, right).reshape((*rows, *columns))
    return result if out is None else out.copy_(result)


def _product(sizes):
    count = 1
    for size in sizes:
        count *= size
    return count


@public()
def einsum(equation, *operands):
    """The sum of products that `equation` describes: `"bij,bjk->bik"` multiplies stacks of matrices.

    Letters name dimensions, `...` stands for those that broadcast. A letter missing after `->` is summed over; without `->` the
    letters that occur once remain, in alphabetical order. A letter twice in one operand takes its diagonal.

    >>> import adjoint as torch
    >>> torch.einsum("i,i->", torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor(11.)
    """
    if not isinstance(equation, str):
        equation, operands = _from_sublists(equation, operands)
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not operands:
        raise RuntimeError("einsum(): must provide at least one operand")
    inputs, output = _parse(equation, operands)
    order = output + [label for label in _labels(inputs) if label not in output]
    aligned = [
        _align(index, tensor, labels, order)
        for index, (tensor, labels) in enumerate(zip(operands, inputs, strict=True))
    ]
    _check_sizes(aligned, inputs, order)
    result = aligned[0]
    kept = len(output)
    for position, other in enumerate(aligned[1:], start=1):
        later = aligned[position + 1 :]
        sums = [
            dim
            for dim in range(kept, len(order))
            if all(item._array.shape[dim] == 1 for item in later)
            and (result._array.shape[dim] != 1 or other._array.shape[dim] != 1)
        ]
        result = _sum_of_products(result, other, sums)
    left = tuple(dim for dim in range(kept, len(order)) if result._array.shape[dim] != 1)
    if left:
        result = result.sum(left, True)
    return result.reshape(result._array.shape[:kept])


def _from_sublists(first, rest):
    """The form `einsum(op1, [0, 1], op2, [1, 2], [0, 2])` as an equation."""
    given = (first, *rest)
    operands, terms = given[0 : len(given) - len(given) % 2 : 2], given[1::2]
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

    def text(sublist):
        return "".join("..." if item is Ellipsis else letters[item] for item in sublist)

    equation = ",".join(text(term) for term in terms)
    if len(given) % 2:
        equation += "->" + text(given[-1])
    return equation, operands


def _parse(equation, operands):
    """The labels of each operand and of the output; a dimension of an ellipsis is labelled by its distance from the end."""
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) < len(operands):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    if len(terms) > len(operands):
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    inputs, widest = [], 0
    for index, (term, tensor) in enumerate(zip(terms, operands, strict=True)):
        before, dots, after = term.partition("...")
        for letter in before + after:
            if not letter.isalpha():
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {equation.index(letter)} in the equation string, "
                    "subscripts must be in [a-zA-Z]"
                )
        rest = tensor._array.ndim - len(before) - len(after)
        if rest < 0 or (rest > 0 and not dots):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(before) + len(after)}) "
                + ("is more than" if rest < 0 else "does not match")
                + f" the number of dimensions ({tensor._array.ndim}) for operand {index}"
                + ("" if rest < 0 else " and no ellipsis was given")
            )
        inputs.append([*before, *range(-rest, 0), *after])
        widest = max(widest, rest)
    ellipsis = list(range(-widest, 0))
    if not arrow:
        counts = {}
        for label in (label for labels in inputs for label in labels if isinstance(label, str)):
            counts[label] = counts.get(label, 0) + 1
        return inputs, ellipsis + sorted(label for label, count in counts.items() if count == 1)
    before, dots, after = right.partition("...")
    output = [*before, *(ellipsis if dots else ()), *after]
    seen = _labels(inputs)
    for position, label in enumerate(output):
        if isinstance(label, str) and label not in seen:
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation for any input operand"
            )
        if label in output[:position]:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
    return inputs, output


def _labels(inputs):
    seen = []
    for labels in inputs:
        seen += [label for label in labels if label not in seen]
    return seen


def _align(index, tensor, labels, order):
    """`tensor` with one dimension for each label of `order`, of size 1 where it has none; repeated labels as diagonals."""
    labels = list(labels)
    for label in [label for label in dict.fromkeys(labels) if labels.count(label) > 1]:
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            sizes = tensor._array.shape[first], tensor._array.shape[second]
            if sizes[0] != sizes[1]:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand {index} but the sizes don't match, "
                    f"{sizes[1]} != {sizes[0]}"
                )
            tensor = tensor.diagonal(0, first, second)
            del labels[second], labels[first]
            labels.append(label)
    places = [labels.index(label) for label in order if label in labels]
    tensor = tensors.permute(tensor, tuple(places))
    for dim, label in enumerate(order):
        if label not in labels:
            tensor = tensor.unsqueeze(dim)
    return tensor


def _check_sizes(aligned, inputs, order):
    sizes = [1] * len(order)
    for index, tensor in enumerate(aligned):
        for dim, size in enumerate(tensor._array.shape):
            if size != 1 and sizes[dim] not in (1, size):
                raise RuntimeError(
                    f"einsum(): subscript {order[dim]} has size {size} for operand {index} which does not broadcast with "
                    f"previously seen size {sizes[dim]}"
                )
            sizes[dim] = max(sizes[dim], size) if size else size


def _sum_of_products(a, b, sums):
    """The product of two aligned tensors, summed over `sums`, which remain with size 1; by `bmm` where possible."""
    shape_a, shape_b = a._array.shape, b._array.shape
    only_a = tuple(d for d in sums if shape_b[d] == 1 and shape_a[d] != 1)
    only_b = tuple(d for d in sums if shape_a[d] == 1 and shape_b[d] != 1)
    if only_a:
        a = a.sum(only_a, True)
    if only_b:
        b = b.sum(only_b, True)
    contracted = [d for d in sums if shape_a[d] != 1 and shape_b[d] != 1]
    if not contracted:
        return a * b
    shape_a, shape_b = a._array.shape, b._array.shape
    ndim = len(shape_a)
    batch = [d for d in range(ndim) if d not in contracted and shape_a[d] != 1 and shape_b[d] != 1]
    rows = [d for d in range(ndim) if d not in contracted and d not in batch and shape_a[d] != 1]
    columns = [d for d in range(ndim) if d not in contracted and d not in batch and d not in rows]
    left = tensors.permute(a, (*batch, *rows, *contracted, *columns)).reshape(
        (
            _product(shape_a[d] for d in batch),
            _product(shape_a[d] for d in rows),
            _product(shape_a[d] for d in contracted),
        )
    )
    right = tensors.permute(b, (*batch, *contracted, *columns, *rows)).reshape(
        (
            _product(shape_b[d] for d in batch),
            _product(shape_b[d] for d in contracted),
            _product(shape_b[d] for d in columns),
        )
    )
    product = tensors.bmm(left, right)
    ordered = [*batch, *rows, *columns]
    sizes = [*(shape_a[d] for d in (*batch, *rows)), *(shape_b[d] for d in columns), *(1 for _ in contracted)]
    product = product.reshape(tuple(sizes))
    inverse = [0] * ndim
    for position, dim in enumerate([*ordered, *contracted]):
        inverse[dim] = position
    return tensors.permute(product, tuple(inverse))


@public(method=True)
def kron(input, other, *, out=None):
    """The Kronecker product."""
    ndim = max(input._array.ndim, other._array.ndim)
    a = input.reshape((1,) * (ndim - input._array.ndim) + input._array.shape)
    b = other.reshape((1,) * (ndim - other._array.ndim) + other._array.shape)
    left = a.reshape(tuple(size for n in a._array.shape for size in (n, 1)))
    right = b.reshape(tuple(size for n in b._array.shape for size in (1, n)))
    result = (left * right).reshape(tuple(m * n for m, n in zip(a._array.shape, b._array.shape, strict=True)))
    return result if out is None else out.copy_(result)
