"""Batching: an operator for each example of a batch, as one operator for all of them.

`batched` finds the rule for an operator: elementwise operators line the examples up in front; operators with parameters that
name dimensions count one more in front of them; some have a rule of their own in `RULES`; the rest run once for each example.
Arguments are read through a `Batch`, which says which tensors have examples, and gives them with the dimension of examples first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import Any, Protocol

from ..dispatch.declaration import OPERATORS, VALUE, Operator
from ..dispatch.decorators import tensors as operators
from ..dispatch.operands import result_dtype
from ..dispatch.slow_path import applied
from ..operators.linalg.matmul import matmul
from ..tensor import Tensor, wrap_dim


class Batch(Protocol):
    """How rules see the examples: `adjoint.transforms.vmap` has the real one."""

    size: int

    def has(self, value: Any) -> bool:
        """Whether `value` is a tensor with examples."""

    def front(self, tensor: Any) -> Any:
        """A tensor with the dimension of examples first; one without examples as it is."""

    def full(self, tensor: Any) -> Any:
        """The same, one without examples repeated for each."""

    def example(self, value: Any, index: int) -> Any:
        """What one example sees of an argument."""

    def random(self, name: str) -> str:
        """`"same"` or `"different"`: whether examples share random numbers."""


def batched(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """The result (or tuple of results) of `op` for all examples, the dimension of examples first."""
    if op.name in RANDOM and batch.random(op.name) == "same":
        return drawn_once(op, args, batch)
    result = rule_of(op)(op, args, batch)
    return one_by_one(op, args, batch) if result is None else result


@functools.cache
def rule_of(op: Operator) -> Callable[..., Any]:
    """The rule for an operator; where the rule returns None, examples take turns."""
    if op.name in RULES:
        return RULES[op.name]
    if op.name in DYNAMIC:
        return dynamic
    if is_elementwise(op):
        return elementwise
    if op.name.endswith("_copy") and (view := OPERATORS.get(op.name[:-5])) and view.view:
        return copied
    if op.tensors == ["self"] and op.name not in _OF_WHOLE and any(name in DIMENSIONS for name in op.names):
        return along
    return one_by_one


def copied(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """The copying form of a view."""
    view = OPERATORS[op.name[:-5]]
    results = batched(view, args[: len(view.names)], batch)
    return tuple(part.clone() for part in results) if isinstance(results, (tuple, list)) else results.clone()


def dynamic(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """Refuse an operator whose result has another shape for each example."""
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::"
        f"{DYNAMIC[op.name]}. Please rewrite what you are doing with operators whose results have one shape for all examples."
    )


def one_by_one(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """The operator for each example in turn: right for all, if slow."""
    results = [applied(op, tuple(batch.example(value, index) for value in args)) for index in range(max(batch.size, 1))]
    if isinstance(results[0], (tuple, list)):
        columns = zip(*results, strict=True)
        return tuple(_stacked(list(column), batch.size) for column in columns)
    return _stacked(results, batch.size)


RANDOM = frozenset(
    "bernoulli bernoulli_of_tensor bernoulli_of_each bernoulli_of_one multinomial normal normal_of_mean normal_of_std "
    "normal_of_both uniform random random_to random_between exponential geometric cauchy log_normal poisson rrelu_with_noise "
    "native_dropout binomial _standard_gamma _sample_dirichlet".split()
)
"""Operators that draw random numbers."""


def drawn_once(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """The operator for each example, all with the same random numbers."""
    from ..random import default_generator

    generator = next((value for value in args if hasattr(value, "get_state")), default_generator)
    state = generator.get_state()
    results = []
    for index in range(max(batch.size, 1)):
        generator.set_state(state)
        results.append(applied(op, tuple(batch.example(value, index) for value in args)))
    if isinstance(results[0], (tuple, list)):
        return tuple(_stacked(list(column), batch.size) for column in zip(*results, strict=True))
    return _stacked(results, batch.size)


def _stacked(results: list[Tensor], size: int) -> Tensor:
    return operators.stack(results)[:size]


# --- elementwise ------------------------------------------------------------------------------------------------


_ELEMENTWISE = frozenset(
    "select_where zero_where masked_fill_number masked_fill_tensor clamp_to_tensors clamp_min_to_tensor clamp_max_to_tensor "
    "clone copy to_dtype conjugate _neg_view conj_physical fill fill_tensor zero full_of_number full_of_tensor heaviside "
    "round_to_integer round_to_decimals complex polar isnan isinf isfinite isposinf isneginf isreal signbit logical_not "
    "bitwise_not prelu_kernel logsigmoid nan_to_num".split()
)


_BROADCASTING = frozenset(("prelu_backward", "threshold_backward"))
"""Derivatives of activations whose operands may have unequal shapes; others write over one of them."""


def is_elementwise(op: Operator) -> bool:
    """Whether each element of the result depends on one element of each operand, broadcast together."""
    if op.sequence is not None or op.outputs:
        return False
    return op.tangent == "elementwise" or bool(op.operands) or op.name in _ELEMENTWISE


def elementwise(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """The operator itself, examples of unequal numbers of dimensions lined up."""
    tensors = [value for value in args if isinstance(value, Tensor)]
    ranks = [value._array.ndim for value in tensors]
    rank = max(ranks)
    of_one_shape = not op.operands and op.name.endswith("_backward") and op.name not in _BROADCASTING
    if 0 < rank == min(ranks) and not of_one_shape and "memory_format" not in op.names:
        return applied(op, tuple([batch.front(value) for value in args]))
    target = None
    if op.promote and any(batch.has(value) and not value._array.ndim for value in tensors):
        target = result_dtype(op, {n: v for n, v in zip(op.names, args, strict=True) if op.kinds[n] != VALUE})
    lined_up = []
    for name, value in zip(op.names, args, strict=True):
        if name == "memory_format":  # of an example's four dimensions, not of these
            value = None
        if of_one_shape and isinstance(value, Tensor):
            value = batch.full(value)
        elif batch.has(value):
            missing = rank - value._array.ndim
            value = batch.front(value)
            if missing:
                value = value.reshape(value.shape[:1] + (1,) * missing + value.shape[1:])
        if target is not None and isinstance(value, Tensor) and value.dtype != target:
            value = value.to(target)
        lined_up.append(value)
    return applied(op, tuple(lined_up))


# --- along dimensions -------------------------------------------------------------------------------------------

DIMENSIONS = frozenset(("dim", "dim0", "dim1", "dim2", "dims", "dimension"))
_OF_WHOLE = frozenset(("renorm",))
"""Operators to which the other dimensions matter as well."""
_ADDS_DIMENSION = frozenset(("unsqueeze", "unsqueeze_copy", "diag_embed"))
_ALL_OR_SOME = frozenset(
    "amax amin var_correction std_correction var_mean_correction std_mean_correction linalg_vector_norm norm_over logsumexp "
    "sum_dim mean_dim nansum all any count_nonzero".split()
)


def along(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """The operator itself, its dimensions counted after that of the examples; None where none are given or there are none."""
    value = args[0]
    ndim = value._array.ndim
    counted = ndim + (op.name in _ADDS_DIMENSION)
    if not counted:
        return None
    shifted = []
    for name, argument in zip(op.names, args, strict=True):
        if name in DIMENSIONS:
            if argument is None or argument == ():
                if op.name not in _ALL_OR_SOME:
                    return None
                argument = tuple(range(1, ndim + 1))
            else:
                argument = _behind(argument, counted)
        shifted.append(argument)
    return applied(op, (batch.front(value), *shifted[1:]))


def _behind(dims: Any, ndim: int) -> Any:
    if isinstance(dims, (tuple, list)):
        return tuple(wrap_dim(dim, ndim) + 1 for dim in dims)
    return wrap_dim(dims, ndim) + 1


# --- operators with a rule of their own -------------------------------------------------------------------------

RULES: dict[str, Callable[[Operator, tuple[Any, ...], Batch], Any]] = {}

DYNAMIC = {
    "nonzero_places": "nonzero", "masked_select": "masked_select", "unique_all": "_unique2", "unique_dim": "unique_dim",
    "unique_runs": "unique_consecutive",
}  # fmt: skip
"""Operators whose results have as many elements as their values say."""


def rule(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Install the rule for operators of these names."""

    def install(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            RULES[name] = function
        return function

    return install


@rule(
    *"alias forward_primal view_as_real view_as_complex tril triu linalg_inv linalg_det linalg_slogdet linalg_cholesky".split(),
    *"linalg_eigh linalg_svd linalg_qr constant_pad_nd linalg_matrix_exp linalg_eig linalg_pinv linalg_cholesky_ex".split(),
    *"cholesky_inverse linalg_matrix_rank".split(),
)
def leading(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """Operators on the last dimensions take further ones in front."""
    return applied(op, (batch.front(args[0]), *args[1:]))


@rule("view_shape", "reshape_alias", "unsafe_view")
def _view(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    value, size = args
    if not value._array.size:
        return None
    front = batch.front(value)
    return front.reshape((front.shape[0], *size))


@rule("expand")
def _expand(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    value, size = args
    front = batch.front(value)
    missing = len(size) - value._array.ndim
    if missing > 0:
        front = front.reshape(front.shape[:1] + (1,) * missing + front.shape[1:])
    return front.expand((front.shape[0], *size))


@rule("as_strided")
def _as_strided(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """The window of each example on its part of the memory."""
    value, size, stride, storage_offset = args
    front = batch.front(value)
    offset = front.storage_offset() if storage_offset is None else storage_offset
    return front.as_strided((front.shape[0], *size), (front.stride(0), *stride), offset)


@rule("repeat")
def _repeat(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    value, repeats = args
    front = batch.front(value)
    missing = len(repeats) - value._array.ndim
    if missing > 0:
        front = front.reshape(front.shape[:1] + (1,) * missing + front.shape[1:])
    return front.repeat((1, *repeats))


@rule("permute", "permute_copy")
def _permute(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    value, dims = args
    return applied(op, (batch.front(value), (0, *_behind(tuple(dims), value._array.ndim))))


@rule("t")
def _t(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    (value,) = args
    return batch.front(value).transpose(1, 2) if value._array.ndim == 2 else operators.alias(batch.front(value))


@rule("squeeze_all")
def _squeeze_all(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    (value,) = args
    dims = tuple(dim + 1 for dim, size in enumerate(value._array.shape) if size == 1)
    return operators.squeeze_dims(batch.front(value), dims)


@rule("sum_to_size")
def _sum_to_size(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    value, size = args
    lead = value._array.ndim - len(size)
    front = batch.front(value)
    dims = [*range(1, lead + 1)]
    dims += [dim + lead + 1 for dim, length in enumerate(size) if length == 1 and value._array.shape[dim + lead] != 1]
    summed = operators.sum_dim(front, tuple(dims), True) if dims else front
    return summed.reshape((front.shape[0], *size))


def in_rows(tensor: Tensor, size: int | None = None) -> Any:
    """The elements of each example in a row; of each of `size` examples, where they are not one dimension of their own."""
    if size is None:
        return tensor.reshape((tensor.shape[0], prod(tensor.shape[1:])))
    return tensor.reshape((size, tensor.numel() // size if size else 0))


_OF_ALL = {
    "sum_all": "sum_dim", "mean_all": "mean_dim", "prod_all": "prod_dim", "max_all": "amax", "min_all": "amin",
}  # fmt: skip


@rule(*_OF_ALL)
def _of_all(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    front = batch.front(args[0])
    flat = in_rows(front)
    dim = 1 if op.name == "prod_all" else (1,)
    return applied(OPERATORS[_OF_ALL[op.name]], (flat, dim, False, *args[1:]))


@rule("argmax", "argmin", "aminmax")
def _position(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    value, dim, keepdim = args
    if dim is not None or keepdim:
        return along(op, args, batch) if dim is not None else None
    front = batch.front(value)
    return applied(op, (in_rows(front), 1, False))


@rule("cat", "stack")
def _join(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    items, dim = args
    ndim = items[0]._array.ndim + (op.name == "stack")
    if any(item._array.ndim != items[0]._array.ndim for item in items):
        return None
    return applied(op, ([batch.full(item) for item in items], _behind(dim, ndim)))


# --- products ---------------------------------------------------------------------------------------------------


@rule("mm", "bmm")
def _matrix_product(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    first, second = args
    if op.name == "mm" and not batch.has(second):  # one tall matrix
        front = batch.front(first)
        return applied(op, (front.flatten(0, 1), second)).unflatten(0, front.shape[:2])
    return matmul(batch.front(first), batch.front(second))


@rule("mv")
def _matrix_vector(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    matrix, vector = args
    if not batch.has(matrix):
        return operators.mm(batch.front(vector), matrix.t())
    return matmul(batch.front(matrix), batch.front(vector).unsqueeze(-1)).squeeze(-1)


@rule("dot")
def _dot(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    first, second = args
    if batch.has(first) and batch.has(second):
        return (batch.front(first) * batch.front(second)).sum(-1)
    return matmul(batch.front(first), second) if batch.has(first) else matmul(batch.front(second), first)


@rule("vdot")
def _vdot(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    first, second = args
    return (batch.front(first).conj() * batch.front(second)).sum(-1)


@rule("addmm", "addmv", "baddbmm")
def _sum_and_product(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    added, first, second, beta, alpha = args
    vector = second._array.ndim == 1
    if not batch.has(added) and added._array.ndim < 2:  # one tall matrix
        if op.name == "addmv" and not batch.has(first):
            return operators.addmm(added, batch.front(second), first.t(), beta=beta, alpha=alpha)
        if op.name == "addmm" and not batch.has(second):
            front = batch.front(first)
            product = operators.addmm(added, front.flatten(0, 1), second, beta=beta, alpha=alpha)
            return product.unflatten(0, front.shape[:2])
    right = batch.front(second)
    product = matmul(batch.front(first), right.unsqueeze(-1) if vector else right)
    if vector:
        product = product.squeeze(-1)
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    offset = batch.front(added)
    if batch.has(added):
        missing = {"addmv": 1, "addmm": 2, "baddbmm": 3}[op.name] - added._array.ndim
        offset = offset.reshape(offset.shape[:1] + (1,) * missing + offset.shape[1:])
    return product + (offset if beta == 1 else offset * beta)


@rule("convolution")
def _convolution(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """Examples of images join their batch; examples of kernels become groups of channels."""
    image, weight, bias, stride, padding, dilation, transposed, output_padding, groups = args
    rest = (stride, padding, dilation, transposed, output_padding)
    size = batch.size
    if not size:
        return None
    if not batch.has(weight) and not batch.has(image):
        result = operators.convolution(image, weight, None, *rest, groups).unsqueeze(0)
    elif not batch.has(weight):
        front = batch.front(image)
        result = operators.convolution(
            front.reshape((-1, *front.shape[2:])), weight, None if batch.has(bias) else bias, *rest, groups
        )
        result = result.reshape((size, -1, *result.shape[1:]))
    else:
        kernels = batch.front(weight)
        images = batch.full(image).transpose(0, 1)
        images = images.reshape((images.shape[0], -1, *images.shape[3:]))
        kernels = kernels.reshape((-1, *kernels.shape[2:]))
        result = operators.convolution(images, kernels, None, *rest, groups * size)
        result = result.reshape((result.shape[0], size, -1, *result.shape[2:])).transpose(0, 1)
        if bias is not None and not batch.has(bias):
            result = result + bias.reshape((-1,) + (1,) * (result._array.ndim - 3))
    if batch.has(bias):
        offset = batch.front(bias)
        result = result + offset.reshape((size, 1, -1) + (1,) * (result._array.ndim - 3))
    return result


# --- layers -----------------------------------------------------------------------------------------------------


@rule(
    *"max_pool2d_with_indices avg_pool2d_of adaptive_avg_pool2d_of adaptive_max_pool2d_of".split(),
    *"max_pool3d_with_indices avg_pool3d_of adaptive_avg_pool3d_of adaptive_max_pool3d_of".split(),
)
def _pooling(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """Examples join the batch of images."""
    spatial = 3 if "3d" in op.name else 2
    front = batch.front(args[0])
    if not front._array.size:
        return None
    lead = front.shape[: -(spatial + 1)]
    results = applied(op, (front.reshape((-1, *front.shape[-(spatial + 1) :])), *args[1:]))
    if isinstance(results, tuple):
        return tuple(result.reshape((*lead, *result.shape[1:])) for result in results)
    return results.reshape((*lead, *results.shape[1:]))


@rule("native_layer_norm")
def _layer_norm(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    value, shape, weight, bias, eps = args
    if not batch.has(weight) and not batch.has(bias):
        return applied(op, (batch.front(value), shape, weight, bias, eps))
    front = batch.full(value)
    result, mean, rstd = applied(op, (front, shape, None, None, eps))
    for parameter, combine in ((weight, operators.mul), (bias, operators.add)):
        if parameter is not None:
            aligned = batch.front(parameter)
            if batch.has(parameter):
                missing = result._array.ndim - aligned._array.ndim
                aligned = aligned.reshape(aligned.shape[:1] + (1,) * missing + aligned.shape[1:])
            result = combine(result, aligned)
    return result, mean, rstd


@rule("native_dropout")
def _dropout(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    value, p, train = args
    front = batch.front(value)
    return applied(op, (front, p, train))


_LOSSES = (
    "mse_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits soft_margin_loss".split()
)


@rule(*_LOSSES)
def _elementwise_loss(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """The loss of each element, reduced for each example."""
    place = op.names.index("reduction")
    reduction = args[place]
    none = 0 if isinstance(reduction, int) else "none"
    each = elementwise(op, (*args[:place], none, *args[place + 1 :]), batch)
    return _reduced(each, reduction)


def _reduced(each: Any, reduction: Any) -> Any:
    if reduction in (0, "none"):
        return each
    flat = in_rows(each)
    return flat.mean(1) if reduction in (1, "mean") else flat.sum(1)


@rule("nll_loss_of")
def _nll_loss(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """The loss of each row of all examples at once, reduced for each example."""
    scores, target, weight, ignore_index, reduction = args
    if batch.has(weight):
        return None
    single = scores._array.ndim == 1
    rows, classes = batch.full(scores), batch.full(target)
    size = rows.shape[0]
    labels = classes.reshape((-1,))
    none = 0 if isinstance(reduction, int) else "none"
    each = applied(op, (rows.reshape((-1, rows.shape[-1])), labels, weight, ignore_index, none))
    if single:
        each = each.reshape((size,))
        if reduction in (1, "mean"):
            return each / _weights(labels, weight, ignore_index, each).reshape((size,))
        return each
    each = in_rows(each, size)
    if reduction in (0, "none"):
        return each
    if reduction in (2, "sum"):
        return each.sum(1)
    return each.sum(1) / in_rows(_weights(labels, weight, ignore_index, each), size).sum(1)


def _weights(labels: Any, weight: Any, ignore_index: int, like: Any) -> Any:
    kept = labels != ignore_index
    if weight is None:
        return kept.to(like.dtype)
    return weight[operators.select_where(kept, labels, labels.new_zeros(()))] * kept.to(like.dtype)


@rule("copy", "fill_tensor")
def _overwriting(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """What is overwritten gets examples, what is written lines up with it."""
    return applied(op, (batch.full(args[0]), _lined_up(args[1], args[0]._array.ndim, batch), *args[2:]))


def _lined_up(value: Any, rank: int, batch: Batch) -> Any:
    """The examples of `value` lined up with those of a tensor of `rank` dimensions, with which it is broadcast."""
    missing = rank - value._array.ndim
    front = batch.front(value)
    if missing <= 0 or not batch.has(value):
        return front
    return front.reshape(front.shape[:1] + (1,) * missing + front.shape[1:])


@rule("masked_fill_tensor")
def _masked_fill(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    value, mask, filling = args
    where = OPERATORS["select_where"]
    return elementwise(where, (mask, filling.to(value.dtype), value), batch)


@rule("masked_select")
def _masked_select(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    value, mask = args
    if batch.has(mask):
        raise RuntimeError(
            "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for each "
            "batch this would return a differently shaped Tensor."
        )
    shape = operators.broadcast_shapes(value.shape, mask.shape)
    front = _expand(op, (value, tuple(shape)), batch)
    return in_rows(front)[:, mask.expand(shape).reshape(-1)]


# --- gathering --------------------------------------------------------------------------------------------------


@rule(
    *"gather scatter_source scatter_add scatter_combined scatter_number scatter_number_combined scatter_reduce".split()
)
def _along_index(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """All tensors, the indices too, with the dimension of examples."""
    ndim = args[0]._array.ndim
    if not ndim:
        return None
    full = [
        batch.full(value) if isinstance(value, Tensor) else _behind(value, ndim) if name == "dim" else value
        for name, value in zip(op.names, args, strict=True)
    ]
    return applied(op, tuple(full))


@rule("select_backward", "slice_backward", "diagonal_backward", "unfold_backward")
def _part_backward(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    value, shape, *rest = args
    if not shape:
        return None
    front = batch.front(value)
    shifted = [
        _behind(argument, len(shape)) if name in DIMENSIONS else argument
        for name, argument in zip(op.names[2:], rest, strict=True)
    ]
    return applied(op, (front, (front.shape[0], *shape), *shifted))


@rule("index")
def _index(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    """The examples are one more index, or one more dimension in front."""
    value, indices = args
    keys = _keys(indices)
    given = [tensor for tensor, _ in indices.tensors if batch.has(tensor)]
    if not given:
        result = batch.front(value)[(slice(None), *keys)]
        if _together(indices):
            return result
        return result.movedim(max(tensor._array.ndim for tensor, _ in indices.tensors), 0)
    if any(tensor._array.dtype.char in "?B" for tensor, _ in indices.tensors):
        raise RuntimeError(
            "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with a "
            "boolean mask."
        )
    rank = max(tensor._array.ndim for tensor, _ in indices.tensors)
    lined_up = []
    for key in keys:
        if isinstance(key, Tensor) and batch.has(key):
            front = batch.front(key)
            key = front.reshape(front.shape[:1] + (1,) * (rank - key._array.ndim) + front.shape[1:])
        lined_up.append(key)
    first = next(place for place, key in enumerate(keys) if isinstance(key, Tensor))
    inside = _together(indices) and first > 0
    if not batch.has(value):
        result = value[tuple(lined_up)]
        return result.movedim(first, 0) if inside else result
    numbers = operators.arange(batch.size).reshape((-1,) + (1,) * rank)
    result = batch.front(value)[(numbers, *lined_up)]
    return (
        result.movedim(tuple(range(1, rank + 1)), tuple(range(first + 1, first + rank + 1)))
        if inside and rank
        else result
    )


@rule("index_backward")
def _index_backward(op: Operator, args: tuple[Any, ...], batch: Batch) -> Any:
    grad, shape, indices = args
    if any(batch.has(tensor) for tensor, _ in getattr(indices, "tensors", ())):
        return None
    front = batch.front(grad)
    moved = type(indices)((None, *indices))
    moved.tensors = getattr(indices, "tensors", ())
    if not _together(indices):
        return None
    return applied(op, (front, (front.shape[0], *shape), moved))


def _together(indices: Any) -> bool:
    """Whether the given indices stand side by side, so that their dimensions stay where they are."""
    places = [place for place, array in enumerate(indices) if array is not None]
    return places == list(range(places[0], places[-1] + 1)) if places else True


def _keys(indices: Any) -> tuple[Any, ...]:
    given = iter(indices.tensors)
    return tuple(slice(None) if array is None else next(given)[0] for array in indices)
