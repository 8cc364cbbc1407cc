"""Steps of optimizers on arrays, in place: every formula in one walk over memory, in tiles that stay in cache.

The operations and their order are PyTorch's, for one parameter at a time, so that results agree to the last places.
Half types are computed in float32 and rounded once per step.
"""

from collections.abc import Callable

import numpy
from numpy import ndarray

from ..runtime.floating import compute_dtype
from ..runtime.parallel import parallel_rows
from ..runtime.scalar import typed

_TILED = 1 << 14  # elements; smaller parameters are updated whole

_add, _subtract, _multiply, _divide, _sqrt = numpy.add, numpy.subtract, numpy.multiply, numpy.true_divide, numpy.sqrt


def _walk(update: Callable[..., None], arrays: list[ndarray]) -> None:
    """Call `update` with matching parts of the arrays, all but the second of which it writes."""
    if arrays[0].ndim == 0:
        arrays = [array.reshape(1) for array in arrays]  # views: operations on no dimensions give scalars
    param = arrays[0]
    half = compute_dtype(param.dtype) != param.dtype
    if param.size < _TILED and not half:
        update(*arrays)
        return
    if not all(array.flags.c_contiguous for array in arrays):
        wide = [array.astype(compute_dtype(array.dtype)) if half else array for array in arrays]
        update(*wide)
        if half:
            _write_back(arrays, wide)
        return
    flat = [array.reshape(-1) for array in arrays]

    def work(start: int, stop: int) -> None:
        parts = [array[start:stop] for array in flat]
        if not half:
            update(*parts)
            return
        wide = [part.astype(numpy.float32) for part in parts]
        update(*wide)
        _write_back(parts, wide)

    parallel_rows(work, param.size, param.itemsize * (len(arrays) + 2))


def _write_back(arrays: list[ndarray], wide: list[ndarray]) -> None:
    for number, (array, part) in enumerate(zip(arrays, wide, strict=True)):
        if number != 1:
            array[...] = part


def sgd_step(
    param: ndarray,
    grad: ndarray,
    momentum_buffer: ndarray | None,
    lr: float,
    momentum: float = 0,
    dampening: float = 0,
    weight_decay: float = 0,
    nesterov: bool = False,
    maximize: bool = False,
) -> ndarray | None:
    """A step of stochastic gradient descent: param -= lr * (grad + weight_decay * param), or its running mean.

    Args:
        param: changed in place, as is `momentum_buffer`.
        grad: not changed.
        momentum_buffer: what the last step returned; None in the first.
        lr, momentum, dampening, weight_decay, nesterov, maximize: as for `adjoint.optim.SGD`.

    Returns:
        The momentum buffer, made if `momentum` is not zero and there was none; otherwise None.
    """
    kind = compute_dtype(param.dtype)
    step, decay = typed(-lr, kind), typed(weight_decay, kind)
    first = momentum != 0 and momentum_buffer is None
    if first:
        momentum_buffer = numpy.empty(param.shape, param.dtype)
    keep, take, ahead = typed(momentum, kind), typed(1 - dampening, kind), typed(momentum, kind)

    def update(param: ndarray, grad: ndarray, buffer: ndarray | None = None) -> None:
        if maximize:
            grad = numpy.negative(grad)
        if weight_decay:
            grad = _multiply(param, decay) + grad
        if buffer is None:
            _add(param, _multiply(grad, step), param)
            return
        if first:
            numpy.copyto(buffer, grad)
        else:
            _multiply(buffer, keep, buffer)
            _add(buffer, grad if dampening == 0 else _multiply(grad, take), buffer)
        change = _multiply(buffer, ahead) + grad if nesterov else buffer
        _add(param, _multiply(change, step), param)

    if momentum == 0:
        _walk(update, [param, grad])
        return None
    assert momentum_buffer is not None
    _walk(update, [param, grad, momentum_buffer])
    return momentum_buffer


def adam_step(
    param: ndarray,
    grad: ndarray,
    exp_avg: ndarray,
    exp_avg_sq: ndarray,
    max_exp_avg_sq: ndarray | None,
    step: int,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float = 0,
    decoupled: bool = False,
    maximize: bool = False,
) -> None:
    """A step of Adam (Kingma and Ba, 2015), or of AdamW if `decoupled`, or of AMSGrad with `max_exp_avg_sq`.

    Args:
        param: changed in place, as are `exp_avg`, `exp_avg_sq` and `max_exp_avg_sq`.
        grad: not changed.
        step: the number of this step, counted from 1.
        lr, beta1, beta2, eps, weight_decay, maximize: as for `adjoint.optim.Adam`.
    """
    kind = compute_dtype(param.dtype)
    new, keep, square = typed(1 - beta1, kind), typed(beta2, kind), typed(1 - beta2, kind)
    old = typed(beta1, kind)
    small, decay, shrink = typed(eps, kind), typed(weight_decay, kind), typed(1 - lr * weight_decay, kind)
    root = numpy.asarray((1 - beta2**step) ** 0.5, kind)
    size = numpy.asarray(-(lr / (1 - beta1**step)), kind)
    light = 1 - beta1 < 0.5

    def update(param: ndarray, grad: ndarray, mean: ndarray, squares: ndarray, largest: ndarray | None = None) -> None:
        if maximize:
            grad = numpy.negative(grad)
        if weight_decay and decoupled:
            _multiply(param, shrink, param)
        elif weight_decay:
            grad = _multiply(param, decay) + grad
        scratch = _subtract(grad, mean)
        if light:
            _multiply(scratch, new, scratch)
            _add(mean, scratch, mean)
        else:
            _multiply(scratch, old, scratch)
            _subtract(grad, scratch, mean)
        _multiply(squares, keep, squares)
        _multiply(grad, square, scratch)
        _multiply(scratch, grad, scratch)
        _add(squares, scratch, squares)
        if largest is not None:
            numpy.maximum(largest, squares, out=largest)
            squares = largest
        _sqrt(squares, scratch)
        _divide(scratch, root, scratch)
        _add(scratch, small, scratch)
        _divide(_multiply(mean, size), scratch, scratch)
        _add(param, scratch, param)

    arrays = [param, grad, exp_avg, exp_avg_sq]
    _walk(update, arrays if max_exp_avg_sq is None else [*arrays, max_exp_avg_sq])
